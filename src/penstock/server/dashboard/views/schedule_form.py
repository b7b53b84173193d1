"""The form that makes or changes a schedule, with a look at when it would run."""

from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from starlette.responses import Response

from penstock.client.schedules import ScheduleView, new_schedule
from penstock.client.times import Times, times_of
from penstock.model.errors import InvalidOption, PenstockError, StoreError, UnknownType
from penstock.model.ids import new_id
from penstock.model.job import NewJob
from penstock.model.refused import InvalidSchedule
from penstock.model.schedule import Misfire, Schedule, ScheduleKind
from penstock.model.zone import aware, find_zone
from penstock.server.access.scopes import Scope
from penstock.server.dashboard.outline import outline
from penstock.server.dashboard.render import pretty
from penstock.server.dashboard.route import page_router
from penstock.server.dashboard.views.schedules import MISFIRES, Name, Tenant, Tick, place_of, ticks
from penstock.server.dashboard.visit import Operating, Visit
from penstock.server.problems import field_of

router = page_router()

FIELDS = (
    *("name", "tenant", "type", "payload", "kind", "cron", "every", "at", "zone", "start", "end"),
    *("expires", "max_runs", "misfire", "queue", "priority", "new"),
)
WHEN = {"cron": "cron", "interval": "every", "once": "at"}
FIELD_OF = {"interval": "every", "time": "cron", "expression": "cron"}
SHOWN = ("id", "type", "payload", "tenant_id", "created_by", "queue", "priority")
LOCAL = "%Y-%m-%dT%H:%M:%S"


class Entered(Struct, frozen=True):
    """What stands in the form, what is wrong with it by field, and when it would run."""

    values: dict[str, str]
    problems: dict[str, str] = {}
    preview: list[Tick] | None = None


class Wrong(Exception):
    """A form that cannot be sent on: the field, and why."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(why)
        self.field = field
        self.why = why


@router.get("/schedules/new")
async def new_schedule_form(visit: Operating, type: str = "") -> Response:  # noqa: A002
    """An empty form."""
    values = {"type": type, "kind": "cron", "zone": "UTC", "misfire": "one", "new": "yes"}
    chosen = visit.server.app.types.get(type)
    if chosen is not None:
        values["payload"] = outline(chosen)
    return await _form(visit, Entered(values))


@router.get("/schedules/edit")
async def edit(visit: Operating, name: Name, tenant: Tenant = "") -> Response:
    """The form with a schedule in it."""
    found = (await visit.operator.schedules.get(name, tenant)).schedule
    return await _form(visit, Entered(_values(found)))


@router.post("/schedules/edit")
async def put(visit: Operating) -> Response:
    """Make or change a schedule, or only look at when it would run."""
    values = {name: visit.form.get(name) for name in FIELDS}
    try:
        if visit.form.get("preview"):
            return await _form(visit, Entered(values, {}, _preview(visit, values)))
        view = await visit.operator.schedules.put(
            values["name"], await _job(visit, values), _times(values)
        )
    except StoreError:
        raise
    except Wrong as wrong:
        return await _form(visit, Entered(values, {wrong.field: wrong.why}))
    except PenstockError as error:
        field = "type" if isinstance(error, UnknownType) else field_of(error) or "payload"
        field = FIELD_OF.get(field, field)
        problems = {field if field in FIELDS else "payload": str(error)}
        return await _form(visit, Entered(values, problems))
    return visit.redirect(place_of(view.schedule), f"{view.name} is scheduled.")


async def _form(visit: Visit, entered: Entered) -> Response:
    return await visit.page(
        "schedule_form.html",
        "schedules",
        status=422 if entered.problems else 200,
        live=False,
        values=entered.values,
        problems=entered.problems,
        preview=entered.preview,
        types=sorted({type_.name for type_ in visit.server.app.types.values()}),
        kinds={"cron": "cron", "interval": "interval", "once": "once"},
        misfires=MISFIRES,
        may_operate=visit.caller.may(Scope.OPERATE),
    )


def _preview(visit: Visit, values: dict[str, str]) -> list[Tick]:
    """When a schedule with these times would run."""
    times = _times(values)
    now = visit.server.app.store.clock.now()
    sample = new_schedule(values["name"] or "preview", NewJob(id="", type=""), None)
    made = times.applied(sample, now, None)
    times.refuse_over(made, now)
    return ticks(ScheduleView(made))


async def _job(visit: Visit, values: dict[str, str]) -> NewJob:
    """The job to enqueue; what the form does not show of a schedule's options stays."""
    tenant = visit.caller.tenant_id or values["tenant"]
    type_ = visit.server.app.find_type(values["type"])
    chosen: dict[str, Any] = {"tenant": tenant, "created_by": visit.caller.actor}
    if values["queue"]:
        chosen["queue"] = values["queue"]
    if values["priority"]:
        chosen["priority"] = _whole("priority", values["priority"])
    options = visit.server.app.checked(type_.defaults.with_(**chosen))
    job = options.new_job(new_id(), type_.name, _payload(values["payload"]))
    before = await visit.server.app.store.schedules.get(values["name"], tenant)
    if before is not None and values["new"]:
        raise Wrong("name", "There is a schedule of this name already; change that one.")
    if before is None or before.type != type_.name:
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


def _payload(text: str) -> str:
    try:
        found = msgspec.json.decode(text or "{}", type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as error:
        raise Wrong("payload", f"This is no JSON object: {error}.") from None
    return msgspec.json.encode(found).decode()


def _times(values: dict[str, str]) -> Times:
    """The times that a form says; those of a browser have no zone, and mean the schedule's."""
    field = WHEN.get(values["kind"])
    if field is None:
        raise Wrong("kind", "Choose cron, interval or once.")
    if not values[field]:
        raise Wrong(field, "Say when.")
    zone = values["zone"] or "UTC"
    given: dict[str, Any] = {"zone": zone, "misfire": values["misfire"] or Misfire.ONE.value}
    match field:
        case "cron":
            given[field] = values[field]
        case "every":
            given[field] = _seconds(field, values[field])
        case _:
            given[field] = _moment(field, values[field], zone)
    for name in ("start", "end", "expires"):
        if values[name] and not (name == "start" and field == "at"):
            given[name] = _moment(name, values[name], zone)
    if values["max_runs"]:
        given["max_runs"] = _whole("max_runs", values["max_runs"])
    return times_of(given)


def _moment(name: str, text: str, zone: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidSchedule(name, text, "a time such as 2030-01-31T08:00") from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=find_zone(zone))


def _seconds(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise Wrong(name, f"{text!r} is no number of seconds.") from None


def _whole(name: str, text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 15:
        raise InvalidOption(name, text, "a whole number")
    return int(text)


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
        "queue": job.queue,
        "priority": str(job.priority),
        "new": "",
    }
