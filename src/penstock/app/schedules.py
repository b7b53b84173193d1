"""Schedules as a program declares them: times, calls, and putting them into the store."""

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import msgspec

from penstock.app.arguments import encode
from penstock.app.job_type import JobType, Partial
from penstock.model.clock import from_iso, iso, milliseconds
from penstock.model.cron import aware, find_zone, parse_cron
from penstock.model.errors import InvalidArguments, InvalidSchedule, ScheduleOver
from penstock.model.ids import new_id
from penstock.model.job import NewJob
from penstock.model.options import check_name
from penstock.model.schedule import (
    Misfire,
    Schedule,
    ScheduleKind,
    first_tick,
    next_tick,
    next_ticks,
    options_of,
    render,
)

if TYPE_CHECKING:
    from penstock.store.contract import Store

LONGEST_INTERVAL_MS = 100 * 366 * 86_400_000
LAST_MOMENT_MS = from_iso("9000-01-01T00:00:00Z")


class TimeFields(TypedDict, total=False):
    """The times as keyword arguments: one of cron, every and at, and what bounds it."""

    cron: str | None
    every: float | timedelta | None
    at: datetime | None
    zone: str
    start: datetime | None
    end: datetime | None
    expires: datetime | None
    max_runs: int | None
    misfire: str


class Times(msgspec.Struct, frozen=True, kw_only=True):
    """Times that make sense; `starts_at` of a `once` is its moment."""

    kind: ScheduleKind
    expression: str | None = None
    interval_ms: int | None = None
    zone: str = "UTC"
    starts_at: int | None = None
    ends_at: int | None = None
    expires_at: int | None = None
    max_runs: int | None = None
    misfire: Misfire = Misfire.ONE

    def applied(self, schedule: Schedule, now: int, previous: Schedule | None) -> Schedule:
        """The schedule with these times, waiting for its next tick.

        An interval without a start counts on from where one of the same length began, and times
        that stay the same lose no tick that is due already.
        """
        given = msgspec.structs.asdict(self)
        if self.starts_at is None and self.interval_ms is not None:
            counted_on = previous is not None and previous.interval_ms == self.interval_ms
            started = previous.starts_at if previous is not None and counted_on else None
            given["starts_at"] = now + self.interval_ms if started is None else started
        made = msgspec.structs.replace(schedule, **given)
        waited_for = None if previous is None else previous.next_run_at
        if previous is not None and waited_for is not None and _same_times(previous, made):
            upcoming = next_tick(made, waited_for - 1)
        else:
            upcoming = first_tick(made, now)
        return msgspec.structs.replace(made, next_run_at=upcoming)

    def refuse_over(self, schedule: Schedule, now: int) -> None:
        """Say why a schedule would never run."""
        if self.max_runs is not None and schedule.run_count >= self.max_runs:
            had = f"above {schedule.run_count}, the runs it has had"
            raise ScheduleOver("max_runs", self.max_runs, had)
        if schedule.next_run_at is not None:
            return
        if self.kind is ScheduleKind.ONCE and self.starts_at is not None and self.starts_at < now:
            raise ScheduleOver("at", iso(self.starts_at), f"after now, which is {iso(now)}")
        name, value = ("end", self.ends_at) if self.ends_at else ("expires", self.expires_at)
        raise ScheduleOver(name, iso(value or 0), "after its first run")


def times_of(fields: Mapping[str, Any]) -> Times:
    """The times of `cron="0 3 * * *", zone="Europe/Berlin"` and the like."""
    unknown = sorted(fields.keys() - TimeFields.__annotations__.keys())
    if unknown:
        known = ", ".join(TimeFields.__annotations__)
        raise InvalidSchedule(unknown[0], fields[unknown[0]], f"left out; known are {known}")
    given = {name: value for name, value in fields.items() if value is not None}
    if not isinstance(given.get("zone", "UTC"), str):
        raise InvalidSchedule("zone", given["zone"], "the name of a time zone")
    find_zone(given.get("zone", "UTC"))
    made = Times(
        **_kind(given),
        zone=given.get("zone", "UTC"),
        ends_at=_moment("end", given),
        expires_at=_moment("expires", given),
        max_runs=_max_runs(given.get("max_runs")),
        misfire=_misfire(given.get("misfire", Misfire.ONE)),
    )
    for name, late in (("end", made.ends_at), ("expires", made.expires_at)):
        if late is not None and made.starts_at is not None and late <= made.starts_at:
            raise InvalidSchedule(name, iso(late), f"after its start, {iso(made.starts_at)}")
    return made


def _same_times(one: Schedule, other: Schedule) -> bool:
    names = ("kind", "expression", "interval_ms", "zone", "starts_at")
    return all(getattr(one, name) == getattr(other, name) for name in names)


def _kind(given: dict[str, Any]) -> dict[str, Any]:
    told = [name for name in ("cron", "every", "at") if name in given]
    if len(told) != 1:
        said = " and ".join(told) or "missing"
        raise InvalidSchedule("time", said, "told by one of cron, every and at")
    if "at" in given:
        if "start" in given:
            raise InvalidSchedule("start", given["start"], "left out, because at is its start")
        return {"kind": ScheduleKind.ONCE, "starts_at": _moment("at", given)}
    starts_at = _moment("start", given)
    if "every" in given:
        interval = _interval_ms(given["every"])
        return {"kind": ScheduleKind.INTERVAL, "interval_ms": interval, "starts_at": starts_at}
    if not isinstance(given["cron"], str):
        raise InvalidSchedule("cron", given["cron"], "a text of 5 or 6 fields")
    parse_cron(given["cron"])
    return {"kind": ScheduleKind.CRON, "expression": given["cron"], "starts_at": starts_at}


def _interval_ms(every: Any) -> int:
    seconds = every.total_seconds() if isinstance(every, timedelta) else every
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if is_number and 1 <= seconds * 1000 <= LONGEST_INTERVAL_MS:
        return round(seconds * 1000)
    raise InvalidSchedule(
        "interval", every, "a timedelta or seconds above 0 (from 0.001 to 100 years)"
    )


def _moment(name: str, given: dict[str, Any]) -> int | None:
    value = given.get(name)
    if value is None:
        return None
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise InvalidSchedule(name, value, "a time with its zone, such as datetime.now(UTC)")
    ms = milliseconds(value)
    if not 0 <= ms < LAST_MOMENT_MS:
        raise InvalidSchedule(name, value, "a time in the years 1970 to 8999")
    return ms


def _max_runs(value: Any) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value < 1 << 53:
        raise InvalidSchedule("max_runs", value, "a whole number above 0")
    return value


def _misfire(value: Any) -> Misfire:
    try:
        return Misfire(value)
    except ValueError:
        raise InvalidSchedule("misfire", value, f"one of {', '.join(Misfire)}") from None


By = Literal["call", "declaration", "operator"]


class ScheduleView:
    """A schedule as it stood when it was read; its times are in its own zone."""

    __slots__ = ("schedule",)

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule

    def __repr__(self) -> str:
        return f"<schedule {self.name!r}>"

    @property
    def name(self) -> str:
        """Its name, unique within its tenant."""
        return self.schedule.name

    @property
    def paused(self) -> bool:
        """Whether somebody holds it."""
        return not self.schedule.enabled

    @property
    def runs(self) -> int:
        """How many jobs its ticks have enqueued."""
        return self.schedule.run_count

    @property
    def last_run(self) -> datetime | None:
        """The tick it fired last."""
        return self._local(self.schedule.last_run_at)

    @property
    def next_run(self) -> datetime | None:
        """The tick it waits for; none if it is paused or over."""
        return self._local(self.schedule.next_run_at if self.schedule.enabled else None)

    def next_runs(self, count: int = 5) -> list[datetime]:
        """The ticks to come; none of a schedule that somebody edited into nonsense."""
        upcoming = self.schedule.next_run_at
        if upcoming is None or self.paused:
            return []
        try:
            zone = find_zone(self.schedule.zone)
            return [aware(tick, zone) for tick in next_ticks(self.schedule, upcoming - 1, count)]
        except (InvalidSchedule, OverflowError):
            return []

    def _local(self, ms: int | None) -> datetime | None:
        try:
            return None if ms is None else aware(ms, find_zone(self.schedule.zone))
        except (InvalidSchedule, OverflowError):
            return None


async def put(store: "Store", name: str, job: NewJob, times: Times, *, by: By) -> ScheduleView:
    """Create or change a schedule; one that already is so is left alone.

    Whoever declares it again at every start changes nothing that an operator did meanwhile.
    """
    now = store.clock.now()
    previous = await store.schedules.get(name, job.tenant_id)
    told, known = fingerprint(job, times), declared(previous)
    if previous is not None and known == told and may_stay(previous, by):
        return ScheduleView(previous)
    made = times.applied(new_schedule(name, job, previous), now, previous)
    times.refuse_over(made, now)
    kept = known if by == "operator" else told
    metadata = None if kept is None else encode({"declared": kept})
    made = msgspec.structs.replace(made, by_operator=by == "operator", metadata=metadata)
    return ScheduleView(await store.schedules.put(made))


async def put_call(
    store: "Store",
    name: str,
    call: "Partial[Any] | JobType[..., ..., Any]",
    arguments: Mapping[str, Any] | None,
    fields: Mapping[str, Any],
) -> ScheduleView:
    """Check a call and its times, then put the schedule."""
    times = times_of(fields)
    job = template_job(call, arguments)
    check_template(call if isinstance(call, JobType) else call.type, name, job, times)
    return await put(store, name, job, times, by="call")


def template_job(
    call: "Partial[Any] | JobType[..., ..., Any]", arguments: Mapping[str, Any] | None
) -> NewJob:
    """The job to enqueue at every tick; its payload may hold placeholders."""
    partial = call.partial() if isinstance(call, JobType) else call
    if not isinstance(partial, Partial):
        raise InvalidSchedule("call", call, "a job type or a call made with its new()")
    job = partial.job
    if job.scheduled_at is not None or job.after:
        raise InvalidSchedule("call", partial.type.name, "one without the options at and after")
    if not arguments:
        return job
    try:
        payload = encode(msgspec.json.decode(job.payload) | dict(arguments))
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        name = partial.type.name
        raise InvalidArguments(name, "payload", "something JSON can hold", str(error)) from error
    return msgspec.structs.replace(job, payload=payload)


def check_template(type_: JobType[..., ..., Any], name: str, job: NewJob, times: Times) -> None:
    """Fill in the placeholders, and check what comes out like any other call."""
    for payload in samples(name, job, times):
        type_.from_payload(payload, type_.defaults)


def samples(name: str, job: NewJob, times: Times) -> tuple[str, str]:
    """The payloads of a first and a later tick."""
    check_name("name", name)
    sample = msgspec.structs.replace(new_schedule(name, job, None), zone=times.zone)
    return render(sample, 0, 1, None), render(sample, 0, 2, 0)


def new_schedule(name: str, job: NewJob, previous: Schedule | None) -> Schedule:
    """A schedule of this job without its times; what the store counts is taken over."""
    return Schedule(
        id=new_id() if previous is None else previous.id,
        name=name,
        type=job.type,
        kind=ScheduleKind.ONCE,
        tenant_id=job.tenant_id,
        payload=job.payload,
        options=options_of(job),
        enabled=previous is None or previous.enabled,
        run_count=0 if previous is None else previous.run_count,
        last_run_at=None if previous is None else previous.last_run_at,
        created_by=job.created_by,
    )


def may_stay(schedule: Schedule, by: By) -> bool:
    """Whether a schedule that was declared just so is left as it is now."""
    return by == "declaration" or (by == "call" and not schedule.by_operator)


def fingerprint(job: NewJob, times: Times) -> str:
    """A short name for all that was declared, to tell a changed declaration from a repeated one."""
    told = msgspec.json.encode((job.type, job.payload, options_of(job), times))
    return hashlib.sha256(told).hexdigest()[:16]


def declared(schedule: Schedule | None) -> str | None:
    """The fingerprint of what code declared last."""
    if schedule is None or schedule.metadata is None:
        return None
    try:
        found = msgspec.json.decode(schedule.metadata)
    except msgspec.MsgspecError:
        return None
    return found.get("declared") if isinstance(found, dict) else None
