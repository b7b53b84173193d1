"""Schedules: when they run next, in their own zone, and an operator's hand on them."""

from datetime import UTC, datetime
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Query
from msgspec import Struct
from starlette.responses import Response

from penstock.app.schedules import ScheduleView
from penstock.model.schedule import Schedule, ScheduleKind
from penstock.model.wording import span
from penstock.operate.documents import decoded
from penstock.server.dashboard.render import Find, PageNumber, named, piece
from penstock.server.dashboard.request import (
    OperateVisit,
    Question,
    ReadVisit,
    ScheduleVisit,
    Visit,
    ask,
)
from penstock.server.dashboard.route import page_router
from penstock.store.contract import JobFilter

router = page_router()

LISTED = 10_000
RUNS_AHEAD = 5
JOBS_SHOWN = 10
MISFIRES = {
    "skip": "what was missed is left out",
    "one": "what was missed is run once",
    "all": "everything missed is run",
}

Name = Annotated[str, Query(max_length=128)]
Tenant = Annotated[str, Query(max_length=255)]


class Tick(Struct, frozen=True):
    """A time at which a schedule runs: its moment, and what the clocks of its zone show."""

    at: int
    local: str


class Row(Struct, frozen=True):
    """A schedule, when it runs in words, and its next run."""

    view: ScheduleView
    when: str
    next: Tick | None
    path: str


@router.get("/schedules")
async def schedules(
    visit: ReadVisit, tenant: Tenant = "", page: PageNumber = 1, find: Find = ""
) -> Response:
    """All schedules, by name."""
    known = await visit.operator.schedules.list(tenant or None, LISTED)
    found = piece(named(find, known, lambda view: view.name), page)
    return await visit.page(
        "schedules.html",
        "schedules",
        rows=[_row(view) for view in found.rows],
        piece=found,
        tenant=tenant,
        find=find,
    )


@router.get("/schedules/show")
async def schedule_page(visit: ReadVisit, name: Name, tenant: Tenant = "") -> Response:
    """One schedule, with its next runs and the jobs it has made."""
    view = await visit.operator.schedules.get(name, tenant)
    jobs = await visit.server.app.store.reader.search(
        JobFilter(schedule_id=view.schedule.id, tenant_id=visit.caller.tenant_id, limit=JOBS_SHOWN)
    )
    return await visit.page(
        "schedule.html",
        "schedules",
        view=view,
        schedule=view.schedule,
        when=when_it_runs(view.schedule),
        ticks=ticks(view),
        misfire=MISFIRES[view.schedule.misfire],
        options=decoded(view.schedule.options),
        jobs=jobs.jobs,
        query=_query(view.schedule),
    )


@router.post("/schedules/pause")
async def pause(visit: OperateVisit) -> Response:
    """Fire nothing until resumed."""
    view = await visit.operator.schedules.pause(*_named(visit))
    return _back(visit, view, f"{view.name} is paused.")


@router.post("/schedules/resume")
async def resume(visit: OperateVisit) -> Response:
    """Go on from now."""
    view = await visit.operator.schedules.resume(*_named(visit))
    return _back(visit, view, f"{view.name} is resumed.")


@router.post("/schedules/run")
async def run(visit: ScheduleVisit) -> Response:
    """Enqueue one job of it now, beside its times."""
    job_id = await visit.operator.schedules.run(*_named(visit))
    return visit.redirect(f"jobs/{job_id}", "The schedule has enqueued this job.")


@router.get("/schedules/remove")
async def ask_to_remove(visit: OperateVisit, name: Name, tenant: Tenant = "") -> Response:
    """Ask before a schedule is removed."""
    schedule = (await visit.operator.schedules.get(name, tenant)).schedule
    question = Question(
        title=f"Remove the schedule {schedule.name}?",
        text="It enqueues no more jobs; those it has enqueued stay. If code declares it, it comes "
        "back when that code starts again.",
        label="Remove it",
        action="schedules/remove",
        back=place_of(schedule),
        facts={
            "Type": schedule.type,
            "When": when_it_runs(schedule),
            "Runs so far": schedule.run_count,
        },
        hidden={"name": schedule.name, "tenant": schedule.tenant_id},
    )
    return await ask(visit, "schedules", question)


@router.post("/schedules/remove")
async def remove(visit: OperateVisit) -> Response:
    """Remove a schedule."""
    name, tenant = _named(visit)
    await visit.operator.schedules.remove(name, tenant)
    return visit.redirect("schedules", f"{name} is removed.")


def when_it_runs(schedule: Schedule) -> str:
    """When a schedule runs, in a few words."""
    match schedule.kind:
        case ScheduleKind.CRON:
            return f"{schedule.expression} ({schedule.zone})"
        case ScheduleKind.INTERVAL:
            return f"every {span(schedule.interval_ms)}"
        case ScheduleKind.ONCE:
            return f"once ({schedule.zone})"


def ticks(view: ScheduleView, count: int = RUNS_AHEAD) -> list[Tick]:
    """The next runs."""
    return [tick_of(moment) for moment in view.next_runs(count)]


def tick_of(moment: datetime) -> Tick:
    """A time of a zone, with its moment."""
    at = int(moment.astimezone(UTC).timestamp() * 1000)
    return Tick(at, moment.strftime("%a %Y-%m-%d %H:%M:%S %Z"))


def place_of(schedule: Schedule) -> str:
    """The path of a schedule's page."""
    return f"schedules/show?{_query(schedule)}"


def _row(view: ScheduleView) -> Row:
    upcoming = None if view.next_run is None else tick_of(view.next_run)
    return Row(view, when_it_runs(view.schedule), upcoming, place_of(view.schedule))


def _query(schedule: Schedule) -> str:
    named = {"name": schedule.name, "tenant": schedule.tenant_id}
    return urlencode({name: value for name, value in named.items() if value})


def _named(visit: Visit) -> tuple[str, str]:
    return visit.form.get("name"), visit.form.get("tenant")


def _back(visit: Visit, view: ScheduleView, text: str) -> Response:
    return visit.back(text, otherwise=place_of(view.schedule))
