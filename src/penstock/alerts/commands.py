"""`penstock alerts`: what is wrong, by which rule, and who knows of it."""

from typing import TYPE_CHECKING, Annotated, Any

from penstock.alerts.alerts import Alerts
from penstock.alerts.api import alert_document, rules_document
from penstock.alerts.judge import rules_of
from penstock.extension import Shown
from penstock.model.alert import Alert
from penstock.model.alert_rules import Rule, shown
from penstock.model.errors import InvalidOption, PenstockError
from penstock.model.not_found import NotFound
from penstock.model.wording import ago, counted, span
from penstock.operate.actor import Operator
from penstock.operate.documents import document
from penstock.operate.notices import NotDelivered, deliver

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

Name = Annotated[str, "The alert, as `alerts ls` names it."]


async def ls(
    app: "Penstock",
    everything: Annotated[bool, "--all", "Also those that are over."] = False,
) -> Shown:
    """List the alerts that stand: pending ones have not been wrong for long enough yet."""
    found = await Alerts(app).list()
    chosen = [alert for alert in found if everything or alert.stands]
    nothing = "No alert is active." if found else "No alerts yet."
    people = [_row(alert, app.store.clock.now()) for alert in chosen] or nothing
    return Shown(people, [alert_document(alert) for alert in chosen])


async def show(app: "Penstock", name: Name) -> Shown:
    """Show one alert with its last turns, newest first."""
    alert, now = await Alerts(app).get(name), app.store.clock.now()
    turns = list(reversed(alert.history))
    rows = [
        {
            "when": ago(turn.at, now),
            "state": turn.state,
            "value": turn.value,
            "by": turn.by or "",
            "note": turn.note or "",
        }
        for turn in turns
    ]
    history = {"history": [document(turn) for turn in turns]}
    return Shown(([_row(alert, now)], alert.action or None, rows), alert_document(alert) | history)


async def ack(
    app: "Penstock",
    actor: str,
    name: Name,
    note: Annotated[str | None, "What you found out, or will do."] = None,
) -> Shown:
    """Say that you know of an alert that fires; it stays until it is over."""
    found = await Alerts(app, Operator(app, actor).actor).acknowledge(name, note)
    told = f"Alert {name} is acknowledged by {found.acknowledged_by}."
    return Shown(told, alert_document(found))


async def rules(app: "Penstock") -> Shown:
    """List the rules that hold, and the routes of their notices without secrets."""
    settings = app.settings.alerts
    routes = [
        f"Route {name}: {', '.join(shown(url) for url in settings.urls(name))}"
        for name in settings.routes
    ] or ["No route is named, so alerts are shown and nobody is told."]
    return Shown(([_rule_row(rule) for rule in rules_of(app)], *routes), rules_document(app))


async def try_routes(
    app: "Penstock", route: Annotated[str | None, "Only this route, instead of all."] = None
) -> Shown:
    """Send a notice over every route now, and say which arrived."""
    settings = app.settings.alerts
    if route is not None and route not in settings.routes:
        known = ", ".join(settings.routes) or "none is named"
        told = f"There is no route {route!r} (known: {known}); see `penstock alerts rules`."
        raise NotFound(told)
    if not settings.routes:
        told = "No route is named; add one under [penstock.alerts.routes] in penstock.toml."
        raise PenstockError(told)
    chosen = [route] if route is not None else list(settings.routes)
    tries = [
        _tried(app, name, number) for name in chosen for number in range(len(settings.urls(name)))
    ]
    people = tuple(f"{t['route']} {t['service']}: {t['error'] or 'delivered'}" for t in tries)
    failed = sum(each["error"] is not None for each in tries)
    sentence = f"{counted(failed, 'notice')} of {len(tries)} did not arrive." if failed else ""
    return Shown(people, tries, sentence)


def _row(alert: Alert, now: int) -> dict[str, Any]:
    return {
        "alert": alert.name,
        "state": alert.state,
        "severity": alert.severity,
        "since": ago(alert.turned_at, now),
        "known_to": alert.acknowledged_by,
        "what": alert.text,
    }


def _rule_row(rule: Rule) -> dict[str, Any]:
    return {
        "rule": rule.name,
        "severity": rule.severity,
        "fires_at": rule.condition,
        "for": span(rule.duration * 1000) if rule.duration else None,
        "route": rule.route,
        "measures": rule.measure.meaning + rule.about,
    }


def _tried(app: "Penstock", route: str, number: int) -> dict[str, Any]:
    error: str | None = None
    try:
        words = "Alerts of this installation arrive here."
        deliver(app, route, number, "A test of Penstock's alerts", words)
    except (NotDelivered, InvalidOption) as refused:
        error = str(refused)
    service = shown(app.settings.alerts.urls(route)[number])
    return {"route": route, "service": service, "error": error}
