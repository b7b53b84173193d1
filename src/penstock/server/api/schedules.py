"""Schedules: list, look at, put, remove, pause, resume, run now."""

from typing import Annotated, Any

from fastapi import Query
from pydantic import AwareDatetime, ConfigDict, Field

from penstock.app.arguments import encode
from penstock.app.schedules import ScheduleView, times_of
from penstock.model.job import MAX_PAGE
from penstock.model.options import MAX_TEXT
from penstock.model.schedule import Misfire, ScheduleKind
from penstock.operate.documents import decoded, document
from penstock.server.api.models import CallOptions, Document, JobId, Moment, Name, PageSize, Word
from penstock.server.api.router import api_router
from penstock.server.guard import MayOperate, MayRead, MaySchedule
from penstock.server.state import Here

router = api_router("/api/schedules", "schedules")

MAX_LISTED = 100_000
MIN_SECONDS = 1.0
"""Code may have something run more often; whoever comes over the network could flood with it."""

MAX_RUNS_SHOWN = 100
Tenant = Annotated[
    str,
    Query(
        max_length=MAX_TEXT, description="Whose schedule; a caller bound to a tenant has its own."
    ),
]
RunsShown = Annotated[int, Query(ge=0, le=MAX_RUNS_SHOWN, description="How many of its next runs.")]


class NewSchedule(Document):
    """What to enqueue and when: one of `cron`, `every` and `at`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "report",
                    "payload": {"day": "{{ tick.date }}"},
                    "cron": "0 3 * * *",
                    "zone": "Europe/Berlin",
                }
            ]
        }
    )

    type: Name = Field(description="The registered name of the job type.")
    payload: dict[str, Any] = Field({}, description="The arguments; may hold placeholders.")
    cron: str | None = Field(None, max_length=200, description="Five or six fields.")
    every: float | None = Field(
        None, ge=MIN_SECONDS, description="Seconds between two runs; one at least."
    )
    at: AwareDatetime | None = Field(None, description="Once, at this time.")
    zone: str = Field("UTC", max_length=64, description="An IANA time zone.")
    start: AwareDatetime | None = None
    end: AwareDatetime | None = None
    expires: AwareDatetime | None = Field(None, description="When it is removed by itself.")
    max_runs: int | None = Field(None, ge=1, lt=1 << 53)
    misfire: Misfire = Field(Misfire.ONE, description="What to do about times that were missed.")
    options: CallOptions = Field(
        default_factory=lambda: CallOptions.model_validate({}),
        description="How its jobs are to be run.",
    )


class Schedule(Document):
    """A schedule as it stands; its runs are told in its own zone."""

    id: str
    name: str
    type: str
    kind: ScheduleKind
    tenant_id: str
    payload: Any
    options: Any
    expression: str | None
    interval_ms: int | None
    zone: str
    misfire: Misfire
    paused: bool
    starts_at: Moment | None
    ends_at: Moment | None
    expires_at: Moment | None
    max_runs: int | None
    runs: int
    last_run: Moment | None
    next_run: Moment | None
    next_runs: list[Moment]
    by_operator: bool
    created_by: str | None
    created_at: Moment
    updated_at: Moment
    revision: int


class ScheduleList(Document):
    """A page of schedules, by name."""

    schedules: list[Schedule]
    next: str | None = Field(
        description="Send it as `after` for the following page; null when there is none."
    )


class ScheduleRun(Document):
    """The job that a schedule enqueued beside its times."""

    id: JobId


@router.get("", operation_id="list_schedules")
async def list_schedules(
    server: Here,
    caller: MayRead,
    tenant: Word | None = None,
    runs: RunsShown = 1,
    after: Annotated[str, Query(max_length=400, description="The `next` of the page before.")] = "",
    limit: PageSize = MAX_PAGE,
) -> ScheduleList:
    """The schedules, by name."""
    known = await server.operator(caller).schedules.list(tenant, MAX_LISTED)
    name, _, owner = after.rpartition("\n")
    found = [each for each in known if not after or _place(each) > (name, owner)]
    shown = found[:limit]
    return ScheduleList.model_construct(
        schedules=[_document(each, runs) for each in shown],
        next="\n".join(_place(shown[-1])) if len(found) > limit else None,
    )


@router.get("/{name:path}", operation_id="get_schedule")
async def get_schedule(
    server: Here, caller: MayRead, name: str, tenant: Tenant = "", runs: RunsShown = 5
) -> Schedule:
    """One schedule, with its next runs in its own zone."""
    return _document(await server.operator(caller).schedules.get(name, tenant), runs)


@router.put("/{name:path}", operation_id="put_schedule")
async def put_schedule(
    server: Here, caller: MaySchedule, name: str, new: NewSchedule, tenant: Tenant = ""
) -> Schedule:
    """Create a schedule or change the one of this name; its counts are kept."""
    given = new.model_dump(include={"cron", "every", "at", "zone", "start", "end", "expires"})
    times = times_of(given | {"max_runs": new.max_runs, "misfire": new.misfire})
    chosen = new.options.model_dump(exclude_unset=True, exclude_none=True)
    if "tags" in chosen:
        chosen["tags"] = tuple(chosen["tags"])
    schedules = server.operator(caller).schedules
    job = schedules.new_job(new.type, encode(new.payload), tenant, **chosen)
    return _document(await schedules.put(name, job, times), 5)


@router.delete("/{name:path}", operation_id="remove_schedule", status_code=204)
async def remove_schedule(server: Here, caller: MayOperate, name: str, tenant: Tenant = "") -> None:
    """Remove a schedule; jobs it enqueued stay."""
    await server.operator(caller).schedules.remove(name, tenant)


@router.post("/{name:path}/pause", operation_id="pause_schedule")
async def pause_schedule(
    server: Here, caller: MayOperate, name: str, tenant: Tenant = ""
) -> Schedule:
    """Fire nothing until resumed, through restarts and deploys."""
    return _document(await server.operator(caller).schedules.pause(name, tenant), 5)


@router.post("/{name:path}/resume", operation_id="resume_schedule")
async def resume_schedule(
    server: Here, caller: MayOperate, name: str, tenant: Tenant = ""
) -> Schedule:
    """Go on from now; times that passed meanwhile are not made up for."""
    return _document(await server.operator(caller).schedules.resume(name, tenant), 5)


@router.post("/{name:path}/run", operation_id="run_schedule", status_code=201)
async def run_schedule(
    server: Here, caller: MaySchedule, name: str, tenant: Tenant = ""
) -> ScheduleRun:
    """Enqueue one job of it now; its own times stay as they are."""
    return ScheduleRun(id=await server.operator(caller).schedules.run(name, tenant))


def _place(view: ScheduleView) -> tuple[str, str]:
    """Where a schedule stands in the list."""
    return view.name, view.schedule.tenant_id


def _document(view: ScheduleView, runs: int) -> Schedule:
    opened = document(view.schedule) | {"options": decoded(view.schedule.options)}
    known: dict[str, Any] = {n: opened[n] for n in Schedule.model_fields if n in opened}
    return Schedule.model_construct(
        **known,
        paused=view.paused,
        runs=view.runs,
        last_run=view.last_run and view.last_run.isoformat(),
        next_run=view.next_run and view.next_run.isoformat(),
        next_runs=[moment.isoformat() for moment in view.next_runs(runs)],
    )
