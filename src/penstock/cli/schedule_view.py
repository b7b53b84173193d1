"""Schedules as tables and documents."""

from typing import TYPE_CHECKING, Any

from penstock.cli.output import Fitted, plain, table
from penstock.client.documents import decoded, document
from penstock.model.clock import iso, milliseconds
from penstock.model.spans import ago, span

if TYPE_CHECKING:
    from datetime import datetime

    from rich.console import Console

    from penstock.client.schedules import ScheduleView
    from penstock.model.schedule import Schedule

SHOWN_RUNS = 5


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
        held = "it is paused" if view.paused else "it is over"
        out.print(f"  No runs to come: {held}.")
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
