"""`penstock alerts`: what is wrong, by which rule, and who knows of it."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli import exits
from penstock.cli.output import JsonFlag, console, plain, table, write_json
from penstock.cli.root import NotFound, Refused, say
from penstock.cli.session import ask_app, bare_app, operate
from penstock.model.wording import ago, counted, span
from penstock.operate.documents import alert_document, document, rules_document

if TYPE_CHECKING:
    from rich.table import Table

    from penstock.app.penstock import Penstock
    from penstock.model.alert import Alert
    from penstock.model.alert_rules import Rule

app = typer.Typer(no_args_is_help=True, help="See alerts and their rules, and acknowledge them.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The alert, as `alerts ls` names it.")]
STYLES = {"firing": "red", "pending": "yellow", "resolved": "green", "quiet": "bright_black"}


@app.command("ls")
def ls(
    ctx: typer.Context,
    everything: Annotated[
        bool, typer.Option("--all", help="Also those that are over, and their last turn.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """List the alerts that stand: pending ones have not been wrong for long enough yet."""

    async def look(penstock: "Penstock") -> "tuple[list[Alert], int]":
        from penstock.operate.alerts import Alerts

        return await Alerts(penstock).list(), penstock.store.clock.now()

    found, now = ask_app(bare_app(ctx), look)
    chosen = [alert for alert in found if everything or alert.stands]
    if as_json:
        write_json([alert_document(alert) for alert in chosen])
    elif chosen:
        console().print(alert_table(chosen, now))
    else:
        typer.echo("No alert stands." if found else "No alert stands, and none ever did.")


@app.command("show")
def show(ctx: typer.Context, name: Name, as_json: JsonFlag = False) -> None:
    """Show one alert with its last turns, newest first."""

    async def look(penstock: "Penstock") -> "tuple[Alert, int]":
        from penstock.operate.alerts import Alerts

        return await Alerts(penstock).get(name), penstock.store.clock.now()

    alert, now = ask_app(bare_app(ctx), look)
    if as_json:
        turns = [document(turn) for turn in reversed(alert.history)]
        write_json(alert_document(alert) | {"history": turns})
        return
    out = console()
    out.print(alert_table([alert], now))
    if alert.action:
        out.print(f"[bold]{plain(alert.action)}[/]")
    made = table("WHEN", "STATE", "VALUE#", "BY", note="NOTE")
    for turn in reversed(alert.history):
        value = "–" if turn.value is None else f"{turn.value:,g}"
        who, words = plain(turn.by or ""), plain(turn.note or "")
        made.add_row(ago(turn.at, now), _state(turn.state), value, who, words)
    out.print(made)


@app.command("ack")
def ack(
    ctx: typer.Context,
    name: Name,
    note: Annotated[str | None, typer.Option(help="What you found, or will do.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Say that you know of an alert that fires; it stays until it is over."""
    found = operate(ctx, lambda operator: operator.alerts.acknowledge(name, note))
    if as_json:
        write_json(alert_document(found))
    else:
        typer.echo(f"Alert {name} is acknowledged by {found.acknowledged_by}.")


@app.command("rules")
def rules(ctx: typer.Context, as_json: JsonFlag = False) -> None:
    """List the rules that hold, and the routes of their notices without secrets."""
    from penstock.model.alert_rules import shown

    settings = bare_app(ctx).settings.alerts
    if as_json:
        write_json(rules_document(settings))
        return
    out = console()
    out.print(rule_table(settings.standing))
    for name in settings.routes:
        services = ", ".join(shown(url) for url in settings.urls(name))
        out.print(f"Route {plain(name)}: {plain(services)}")
    if not settings.routes:
        out.print("[dim]No route is named, so alerts are shown and nobody is told.[/]")


@app.command("test")
def try_routes(
    ctx: typer.Context,
    route: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only this route.", show_default="all")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Send a notice over every route now, and say which arrived."""
    penstock = bare_app(ctx)
    settings = penstock.settings.alerts
    if route is not None and route not in settings.routes:
        known = ", ".join(settings.routes) or "none is named"
        raise NotFound(
            f"There is no route {route!r} (known: {known}); see `penstock alerts rules`."
        )
    if not settings.routes:
        raise Refused("No route is named; add one under [penstock.alerts.routes] in penstock.toml.")
    chosen = [route] if route is not None else list(settings.routes)
    tries = [
        _tried(penstock, name, number)
        for name in chosen
        for number in range(len(settings.urls(name)))
    ]
    if as_json:
        write_json(tries)
    for each in tries if not as_json else ():
        verdict = "delivered" if each["error"] is None else each["error"]
        typer.echo(f"{each['route']} {each['service']}: {verdict}")
    failed = sum(each["error"] is not None for each in tries)
    if failed:
        sentence = f"{counted(failed, 'notice')} of {len(tries)} did not arrive."
        raise typer.Exit(say(sentence, exits.FAILED))


def alert_table(found: "list[Alert]", now: int) -> "Table":
    """One line per alert."""
    made = table("ALERT", "STATE", "SEVERITY", "SINCE", "KNOWN TO", note="WHAT")
    for alert in found:
        made.add_row(
            plain(alert.name),
            _state(alert.state),
            alert.severity,
            ago(alert.turned_at, now),
            plain(alert.acknowledged_by or "–"),
            plain(alert.text),
        )
    return made


def rule_table(found: "list[Rule]") -> "Table":
    """One line per rule."""
    from penstock.model.alert_rules import MEASURES

    made = table("RULE", "SEVERITY", "FIRES AT", "FOR#", "ROUTE", note="MEASURES")
    for rule in found:
        made.add_row(
            plain(rule.name),
            rule.severity,
            rule.condition,
            span(rule.duration * 1000) if rule.duration else "–",
            plain(rule.route or "–"),
            plain(MEASURES[rule.metric].meaning + rule.about),
        )
    return made


def _tried(penstock: "Penstock", route: str, number: int) -> dict[str, Any]:
    from penstock.model.alert_rules import shown
    from penstock.model.errors import InvalidOption
    from penstock.operate.alerts import NotDelivered, deliver

    error: str | None = None
    try:
        words = "Alerts of this installation arrive here."
        deliver(penstock, route, number, "A test of Penstock's alerts", words)
    except (NotDelivered, InvalidOption) as refused:
        error = str(refused)
    service = shown(penstock.settings.alerts.urls(route)[number])
    return {"route": route, "service": service, "error": error}


def _state(state: str) -> str:
    return f"[{STYLES[state]}]{state}[/]"
