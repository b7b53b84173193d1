"""Reading what is not kept with a job as records to be moved elsewhere, each part as a whole."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from msgspec.json import decode

from penstock.store.contract import COLUMNS, Part, Row
from penstock.store.contract.rollups import STEPS_KEPT_MS
from penstock.store.redis.courier import Courier
from penstock.store.redis.records import row_of
from penstock.store.redis.schedules import RedisSchedules

METRIC_RESOLUTIONS = tuple(STEPS_KEPT_MS)
AT_ONCE = 500
MANY = 10_000_000


async def listing(courier: Courier, part: Part) -> list[Row]:
    """All records of a part, always in the same order."""
    rows = await _READINGS[part](courier)
    return sorted(rows, key=repr)


async def _keys(courier: Courier) -> list[Row]:
    rows: list[Row] = []
    for field, value in await _fields(courier, "keys"):
        scope, expires_at, job_id = value.decode().split(" ", 2)
        moment = None if expires_at == "-" else int(expires_at)
        rows.append((*decode(field), job_id, scope, moment))
    return rows


async def _lines(courier: Courier) -> list[Row]:
    return [(*decode(line), last.decode()) for line, last in await _fields(courier, "lines")]


async def _schedules(courier: Courier) -> list[Row]:
    known = await RedisSchedules(courier).known(MANY)
    names = COLUMNS[Part.SCHEDULES]
    return [tuple(getattr(schedule, name) for name in names) for schedule in known]


async def _pauses(courier: Courier) -> list[Row]:
    rows: list[Row] = []
    for field, value in await _fields(courier, "pauses"):
        scope, name = field.decode().split("\n", 1)
        rows.append(_pause(scope, name, value))
    for field, value in await _fields(courier, "pauses:jobs"):
        rows.append(_pause("job", field.decode(), value))
    return rows


def _pause(scope: str, name: str, value: bytes) -> Row:
    created_at, reason, by = decode(value)
    return scope, name, reason, by, created_at


async def _limits(courier: Courier) -> list[Row]:
    now, _ = await courier.look()
    rows: list[Row] = []
    for name in ("limits", "limits:depth"):
        for field, value in await _fields(courier, name):
            scope, kind, about = field.decode().split("\n", 2)
            capacity, interval_ms, by_operator = decode(value)
            rows.append((scope, about, kind, capacity, interval_ms, bool(by_operator), now))
    return rows


async def _rates(courier: Courier) -> list[Row]:
    fields = await _fields(courier, "rates")
    return [(*field.decode().split("\n", 1), starts.decode()) for field, starts in fields]


async def _breakers(courier: Courier) -> list[Row]:
    now, _ = await courier.look()
    states = dict(await _fields(courier, "breakers:state"))
    rows: list[Row] = []
    for name, definition in await _fields(courier, "breakers"):
        types, failures, cool_down_ms = decode(definition)
        failed, opened_at, probe_id = states.get(name, b"0 - -").decode().split(" ", 2)
        opened = None if opened_at == "-" else int(opened_at)
        probe = None if probe_id == "-" else probe_id
        terms = (types, failures, cool_down_ms, int(failed), opened, probe, now)
        rows.append((name.decode(), *terms))
    return rows


async def _metrics(courier: Courier) -> list[Row]:
    rows: list[Row] = []
    for resolution in METRIC_RESOLUTIONS:
        key = f"{courier.prefix}metrics:{resolution}"
        [steps] = await courier.ask(("ZRANGE", key, 0, -1))
        for first in range(0, len(steps), AT_ONCE):
            some = [int(step) for step in steps[first : first + AT_ONCE]]
            found = await courier.ask(*(("HGETALL", f"{key}:{step}") for step in some))
            for step, fields in zip(some, found, strict=True):
                rows += (_metric(resolution, step, *pair) for pair in _pairs(fields))
    return rows


def _metric(resolution: int, step: int, field: bytes, value: bytes) -> Row:
    name, _, label = field.rpartition(b"\n")
    type_, queue = decode(label)
    return resolution, step, type_, queue, name.decode(), float(value)


async def _records(courier: Courier) -> list[Row]:
    return [row_of(field, value) for field, value in await _fields(courier, "records")]


_READINGS: dict[Part, Callable[[Courier], Awaitable[list[Row]]]] = {
    Part.KEYS: _keys,
    Part.LINES: _lines,
    Part.SCHEDULES: _schedules,
    Part.PAUSES: _pauses,
    Part.LIMITS: _limits,
    Part.RATES: _rates,
    Part.BREAKERS: _breakers,
    Part.METRICS: _metrics,
    Part.RECORDS: _records,
}


async def _fields(courier: Courier, name: str) -> list[tuple[bytes, bytes]]:
    [found] = await courier.ask(("HGETALL", courier.prefix + name))
    return _pairs(found)


def _pairs(flat: Sequence[Any]) -> list[tuple[Any, Any]]:
    return list(zip(flat[::2], flat[1::2], strict=True))
