"""`penstock schedules`: what is enqueued again and again, and when."""

from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from penstock.cli.enqueue import call_options, parse_options, read_payload
from penstock.cli.output import (
    Fitted,
    JsonFlag,
    YesFlag,
    confirm,
    console,
    parse_span,
    parse_time,
    plain,
    table,
    write_json,
)
from penstock.cli.session import ask_app, bare_app, load, operate, operate_on
from penstock.model.clock import iso, milliseconds
from penstock.model.wording import ago, span
from penstock.operate.documents import decoded, document

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from rich.console import Console

    from penstock.app.penstock import Penstock
    from penstock.app.schedules import ScheduleView, Times
    from penstock.model.job import NewJob
    from penstock.model.schedule import Schedule
    from penstock.operate.actor import Operator

SHOWN_RUNS = 5
T = TypeVar("T")


def schedule_document(view: "ScheduleView") -> dict[str, Any]:
    """A schedule as a script wants to read it, with its next runs in its zone."""
    opened = document(view.schedule)
    opened["options"] = decoded(view.schedule.options)
    runs = [moment.isoformat(timespec="seconds") for moment in view.next_runs(SHOWN_RUNS)]
    return opened | {"next_runs": runs}


def schedule_table(views: "list[ScheduleView]", now: int) -> Fitted:
    """One line per schedule."""
    made = table("NAME", "TYPE", "WHEN", "ZONE", "STATE", "RUNS#", "LAST", "NEXT", note="DUE")
    for view in views:
        schedule = view.schedule
        following = view.next_runs(1)
        made.add_row(
            plain(schedule.name),
            plain(schedule.type),
            plain(when(schedule)),
            plain(schedule.zone),
            state(schedule),
            f"{schedule.run_count:,}",
            ago(schedule.last_run_at, now),
            local(following[0]) if following else "–",
            ago(schedule.next_run_at, now) if following else "",
        )
    return Fitted(made, "LAST", "NEXT", "RUNS", "ZONE")


def show_schedule(out: "Console", view: "ScheduleView", now: int) -> None:
    """Everything about one schedule."""
    schedule = view.schedule
    out.print(f"[bold]{plain(schedule.name)}[/]  {state(schedule)}")
    facts = {
        "type": plain(schedule.type),
        "tenant": plain(schedule.tenant_id),
        "when": plain(f"{when(schedule)}, {schedule.zone}"),
        "from": _moment(schedule.starts_at),
        "until": _moment(schedule.ends_at),
        "expires": _moment(schedule.expires_at),
        "misfire": schedule.misfire.value,
        "runs": runs(schedule),
        "last run": "" if schedule.last_run_at is None else ago(schedule.last_run_at, now),
        "payload": plain(schedule.payload),
        "options": plain(schedule.options),
    }
    for name, value in facts.items():
        if value:
            out.print(f"  [dim]{name:<9}[/] {value}", soft_wrap=True)
    show_runs(out, view, now)


def show_runs(out: "Console", view: "ScheduleView", now: int) -> None:
    """The next five runs, in the schedule's zone."""
    following = view.next_runs(SHOWN_RUNS)
    if not following:
        held = "it is paused" if view.paused else "it has ended"
        out.print(f"  No further runs: {held}.")
    for number, moment in enumerate(following):
        name = "next" if number == 0 else ""
        distance = ago(milliseconds(moment), now)
        out.print(f"  [dim]{name:<9}[/] {local(moment)}  [dim]{distance}[/]", soft_wrap=True)


def when(schedule: "Schedule") -> str:
    """The rule in a few words."""
    if schedule.expression is not None:
        return schedule.expression
    if schedule.interval_ms is not None:
        return f"every {span(schedule.interval_ms)}"
    return "once"


def runs(schedule: "Schedule") -> str:
    """How many there were, and of how many."""
    bound = "" if schedule.max_runs is None else f" of {schedule.max_runs:,}"
    return f"{schedule.run_count:,}{bound}"


def state(schedule: "Schedule") -> str:
    """On, paused or over."""
    if not schedule.enabled:
        return "[magenta]paused[/]"
    return "[green]on[/]" if schedule.next_run_at is not None else "[bright_black]over[/]"


def local(moment: "datetime") -> str:
    """A time in its zone, with the offset that tells two passes of an hour apart."""
    return moment.strftime("%a %Y-%m-%d %H:%M:%S %z")


def _moment(ms: int | None) -> str:
    return "" if ms is None else iso(ms)


app = typer.Typer(no_args_is_help=True, help="See and change recurring jobs.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The schedule's name.")]
Tenant = Annotated[str, typer.Option(help="Whose schedule it is.", show_default=False)]
Moment = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="ISO-8601; without an offset, in the zone."),
]


@app.command("ls")
def ls(
    ctx: typer.Context,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="How many.")] = 1000,
    as_json: JsonFlag = False,
) -> None:
    """List the schedules, by name, each with its next run in its zone."""
    from penstock.cli.schedules import schedule_document, schedule_table

    found, now = _look(ctx, lambda app: app.schedules.list(limit=limit))
    if as_json:
        write_json([schedule_document(view) for view in found])
    elif found:
        console().print(schedule_table(found, now))
    else:
        typer.echo("No schedules; add one with `penstock schedules add`.")


@app.command("show")
def show(ctx: typer.Context, name: Name, tenant: Tenant = "", as_json: JsonFlag = False) -> None:
    """Show a schedule and its next five runs in its zone."""
    tell(*_look(ctx, lambda app: app.schedules.get(name, tenant)), as_json=as_json)


@app.command("add")
@call_options(of_schedule=True)
def add(
    ctx: typer.Context,
    name: Name,
    type_name: Annotated[str, typer.Argument(metavar="TYPE", help="The job type's name.")],
    cron: Annotated[
        str | None, typer.Option(metavar="LINE", help="5 fields, or 6 with seconds first.")
    ] = None,
    every: Annotated[
        str | None, typer.Option(metavar="SPAN", help="An interval: 90, 15m, 2h, 1d.")
    ] = None,
    at: Moment = None,
    zone: Annotated[str, typer.Option(help="An IANA time zone.")] = "UTC",
    start: Moment = None,
    end: Moment = None,
    expires: Moment = None,
    max_runs: Annotated[int | None, typer.Option(help="End after this many runs.")] = None,
    misfire: Annotated[
        str, typer.Option(help="Missed times: one (the latest), all, or skip.")
    ] = "one",
    arguments: Annotated[
        str,
        typer.Option(
            "--args", metavar="JSON", help="The arguments by name, with placeholders; @FILE or -."
        ),
    ] = "{}",
    tenant: Tenant = "",
    target: Annotated[
        str | None,
        typer.Option("--app", metavar="MODULE:APP", help="Check the arguments against the type."),
    ] = None,
    as_json: JsonFlag = False,
    **given: Any,
) -> None:
    """Add a schedule, or change the one of this name; its counts are kept."""
    from penstock.app.schedules import times_of

    seconds = None if every is None else parse_span(every, "every") / 1000
    fields: dict[str, Any] = {"cron": cron, "every": seconds, "zone": zone, "max_runs": max_runs}
    moments = {"at": at, "start": start, "end": end, "expires": expires}
    fields |= {key: parse_time(text, key, zone) for key, text in moments.items()}
    times = times_of(fields | {"misfire": misfire})
    options = parse_options(given | {"tenant": tenant or None})
    app_, job = template(ctx, target, type_name, name, read_payload(arguments), options, times)
    tell(*put(app_, name, job, times), as_json=as_json)


@app.command("pause")
def pause(ctx: typer.Context, name: Name, tenant: Tenant = "", as_json: JsonFlag = False) -> None:
    """Fire nothing until resumed, through restarts and deploys."""
    tell(*changed(ctx, lambda it: it.schedules.pause(name, tenant)), as_json=as_json)


@app.command("resume")
def resume(ctx: typer.Context, name: Name, tenant: Tenant = "", as_json: JsonFlag = False) -> None:
    """Go on from now; times that passed meanwhile are not made up for."""
    tell(*changed(ctx, lambda it: it.schedules.resume(name, tenant)), as_json=as_json)


@app.command("rm")
def rm(
    ctx: typer.Context,
    name: Name,
    tenant: Tenant = "",
    yes: YesFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Remove a schedule; jobs it enqueued stay."""
    _look(ctx, lambda app: app.schedules.get(name, tenant))
    confirm(f"Remove the schedule {plain(name)}?", yes=yes)
    operate(ctx, lambda operator: operator.schedules.remove(name, tenant))
    if as_json:
        write_json({"removed": name})
    else:
        typer.echo(f"Removed {name}.")


@app.command("run")
def run_now(ctx: typer.Context, name: Name, tenant: Tenant = "", as_json: JsonFlag = False) -> None:
    """Enqueue one job of a schedule now; its own times stay as they are."""
    job_id = operate(ctx, lambda operator: operator.schedules.run(name, tenant))
    if as_json:
        write_json({"id": job_id, "schedule": name})
    else:
        typer.echo(f"Enqueued {job_id} (schedule {name}).")


def _look(ctx: typer.Context, question: "Callable[[Penstock], Awaitable[T]]") -> "tuple[T, int]":
    """What an application knows of schedules, and when."""

    async def timed(app: "Penstock") -> "tuple[T, int]":
        return await question(app), app.store.clock.now()

    looked_at = bare_app(ctx)
    # What is there already may be looked at, wherever it is kept.
    looked_at.settings = looked_at.settings.replace(allow_volatile=True)
    return ask_app(looked_at, timed)


def changed(
    ctx: typer.Context, action: "Callable[[Operator], Awaitable[ScheduleView]]"
) -> "tuple[ScheduleView, int]":
    """What an operator's action has made of a schedule, and when."""

    async def act(operator: "Operator") -> "tuple[ScheduleView, int]":
        return await action(operator), operator.app.store.clock.now()

    return operate(ctx, act)


def template(
    ctx: typer.Context,
    target: str | None,
    type_name: str,
    name: str,
    payload: str,
    options: dict[str, Any],
    times: "Times",
) -> "tuple[Penstock, NewJob]":
    """The application and the job to enqueue at every tick, checked against its type if known."""
    from msgspec.structs import replace

    from penstock.app.options import with_options
    from penstock.app.schedules import check_template, samples
    from penstock.cli.enqueue import untyped_job
    from penstock.model.ids import new_id

    if target is None:
        bare = bare_app(ctx)
        job = untyped_job(bare.settings, type_name, payload, options)
        samples(name, job, times)
        return bare, job
    application = load(ctx, target)
    type_ = application.find_type(type_name)
    chosen = application.checked(with_options(type_.defaults, **options))
    job = replace(chosen, id=new_id(), payload=payload)
    check_template(type_, name, job, times)
    return application, job


def put(
    application: "Penstock", name: str, job: "NewJob", times: "Times"
) -> "tuple[ScheduleView, int]":
    """Write it as an operator's word, which no deploy overrules until its declaration changes."""

    async def act(operator: "Operator") -> "tuple[ScheduleView, int]":
        written = await operator.schedules.put(name, job, times, checked=True)
        return written, operator.app.store.clock.now()

    return operate_on(application, act, create=True)


def tell(view: "ScheduleView", now: int, *, as_json: bool) -> None:
    """What has become of a schedule."""
    from penstock.cli.schedules import schedule_document, show_schedule

    if as_json:
        write_json(schedule_document(view))
    else:
        show_schedule(console(), view, now)
