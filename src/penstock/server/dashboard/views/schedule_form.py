"""The form that makes or changes a schedule, with a look at when it would run."""

from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import replace
from starlette.responses import Response

from penstock.app.schedules import ScheduleView, Times, new_schedule, times_of
from penstock.model.cron import aware, find_zone
from penstock.model.errors import InvalidSchedule, PenstockError
from penstock.model.job import OPTIONS, NewJob
from penstock.model.schedule import Misfire, Schedule, ScheduleKind
from penstock.model.store_errors import StoreError
from penstock.server.api.schedules import MIN_SECONDS
from penstock.server.dashboard.render import pretty
from penstock.server.dashboard.request import Entered, Form, ScheduleVisit, Visit, problems_of
from penstock.server.dashboard.route import page_router
from penstock.server.dashboard.views.enqueue import as_text, entered, outline
from penstock.server.dashboard.views.schedules import MISFIRES, Name, Tenant, Tick, place_of, ticks
from penstock.server.problems import Refusal

router = page_router()

OFFERED = [each for each in OPTIONS.values() if each.in_schedules and not each.local]
FIELDS = (
    *("name", "tenant", "type", "payload", "kind", "cron", "every", "at", "zone", "start", "end"),
    *("expires", "max_runs", "misfire", "new", *(option.name for option in OFFERED)),
)
WHEN = {"cron": "cron", "interval": "every", "once": "at"}
FIELD_OF = {"interval": "every", "time": "cron", "expression": "cron"}
SHOWN = ("id", "type", "payload", "tenant_id", "created_by", *(each.field for each in OFFERED))
LOCAL = "%Y-%m-%dT%H:%M:%S"


@router.get("/schedules/new")
async def new_schedule_form(visit: ScheduleVisit, type: str = "") -> Response:  # noqa: A002
    """An empty form."""
    values = {"type": type, "kind": "cron", "zone": "UTC", "misfire": "one", "new": "yes"}
    chosen = visit.server.app.types.get(type)
    if chosen is not None:
        values["payload"] = outline(chosen)
    return await _form(visit, Entered(values))


@router.get("/schedules/edit")
async def edit(visit: ScheduleVisit, name: Name, tenant: Tenant = "") -> Response:
    """The form with a schedule in it."""
    found = (await visit.operator.schedules.get(name, tenant)).schedule
    return await _form(visit, Entered(_values(found)))


@router.post("/schedules/edit")
async def put(visit: ScheduleVisit) -> Response:
    """Make or change a schedule, or only look at when it would run."""
    form = visit.form
    values = {name: form.get(name) for name in FIELDS}
    try:
        if form.get("preview"):
            return await _form(visit, Entered(values), _preview(form, visit.now))
        view = await visit.operator.schedules.put(form.get("name"), await _job(visit), _times(form))
    except StoreError:
        raise
    except (Refusal, PenstockError) as error:
        return await _form(visit, Entered(values, problems_of(error, FIELDS, FIELD_OF)))
    return visit.redirect(place_of(view.schedule), f"{view.name} is scheduled.")


async def _form(visit: Visit, filled: Entered, preview: list[Tick] | None = None) -> Response:
    return await visit.page(
        "schedule_form.html",
        "schedules",
        status=filled.status,
        live=False,
        values=filled.values,
        problems=filled.problems,
        preview=preview,
        types=sorted({type_.name for type_ in visit.server.app.types.values()}),
        misfires=MISFIRES,
        options=OFFERED,
        defaults=dict.fromkeys((option.name for option in OFFERED), "as the type says"),
    )


def _preview(form: Form, now: int) -> list[Tick]:
    """When a schedule with these times would run."""
    times = _times(form)
    sample = new_schedule(form.get("name") or "preview", NewJob(id="", type=""), None)
    made = times.applied(sample, now, None)
    times.refuse_over(made, now)
    return ticks(ScheduleView(made))


async def _job(visit: Visit) -> NewJob:
    """The job to enqueue; what the form does not show of a schedule's options stays."""
    form = visit.form
    chosen = {each.name: entered(form, each) for each in OFFERED if form.get(each.name)}
    payload = form.json("payload", "{}")
    job = visit.operator.schedules.new_job(form.get("type"), payload, form.get("tenant"), **chosen)
    before = await visit.server.app.store.schedules.get(form.get("name"), job.tenant_id)
    if before is not None and form.get("new"):
        there = "There is already a schedule of this name; edit that one."
        raise Refusal(422, there, field="name")
    if before is None or before.type != job.type:
        return job
    shown = {name: getattr(job, name) for name in SHOWN}
    return replace(_job_of(before), **shown)


def _job_of(schedule: Schedule) -> NewJob:
    """The job that a schedule keeps, without its payload."""
    try:
        kept = msgspec.json.decode(schedule.options, type=dict[str, Any])
        return msgspec.convert({**kept, "id": "", "type": schedule.type}, NewJob)
    except msgspec.MsgspecError as error:
        problem = f"the fields of a job ({error})"
        raise InvalidSchedule("options", schedule.options, problem) from None


def _times(form: Form) -> Times:
    """The times that a form says; those of a browser have no zone, and mean the schedule's."""
    field = WHEN.get(form.get("kind"))
    if field is None:
        raise Refusal(422, "Choose cron, interval or once.", field="kind")
    if not form.get(field):
        raise Refusal(422, "Enter a time.", field=field)
    zone = form.get("zone") or "UTC"
    given: dict[str, Any] = {"zone": zone, "misfire": form.get("misfire") or Misfire.ONE.value}
    match field:
        case "cron":
            given[field] = form.get(field)
        case "every":
            given[field] = _seconds(form, field)
        case _:
            given[field] = _moment(field, form.get(field), zone)
    for name in ("start", "end", "expires"):
        if form.get(name) and not (name == "start" and field == "at"):
            given[name] = _moment(name, form.get(name), zone)
    if form.get("max_runs"):
        given["max_runs"] = form.whole("max_runs")
    return times_of(given)


def _seconds(form: Form, field: str) -> float | None:
    seconds = form.number(field)
    if seconds is not None and seconds < MIN_SECONDS:
        raise Refusal(422, "Leave at least a second between runs.", field=field)
    return seconds


def _moment(name: str, text: str, zone: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidSchedule(name, text, "a time such as 2030-01-31T08:00") from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=find_zone(zone))


def _values(schedule: Schedule) -> dict[str, str]:
    """What the form shows of a schedule."""
    zone = find_zone(schedule.zone)
    job = _job_of(schedule)

    def local(at: int | None) -> str:
        return "" if at is None else aware(at, zone).strftime(LOCAL)

    once = schedule.kind is ScheduleKind.ONCE
    # An interval that keeps its length counts on from where it began.
    begins = "" if schedule.kind is ScheduleKind.INTERVAL else local(schedule.starts_at)
    every = "" if schedule.interval_ms is None else f"{schedule.interval_ms / 1000:g}"
    return {
        "name": schedule.name,
        "tenant": schedule.tenant_id,
        "type": schedule.type,
        "payload": pretty(schedule.payload),
        "kind": schedule.kind.value,
        "cron": schedule.expression or "",
        "every": every,
        "at": begins if once else "",
        "zone": schedule.zone,
        "start": "" if once else begins,
        "end": local(schedule.ends_at),
        "expires": local(schedule.expires_at),
        "max_runs": "" if schedule.max_runs is None else str(schedule.max_runs),
        "misfire": schedule.misfire.value,
        "new": "",
    } | {option.name: as_text(option, job) for option in OFFERED}
