"""Moving a whole installation into or out of Redis."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from msgspec import DecodeError
from msgspec.json import Decoder, decode

from penstock.model.job import rank
from penstock.model.states import Status
from penstock.model.store_errors import StoreError
from penstock.store.contract import COLUMNS, Bookmark, Page, Part, Row, Tally
from penstock.store.contract.metrics import STEPS_KEPT_MS
from penstock.store.contract.transfer import AT_ONCE as JOBS_AT_ONCE
from penstock.store.contract.transfer import PAGE_BYTES, size_of
from penstock.store.redis.changes import follower_names, page_of_changes
from penstock.store.redis.dead import RedisDeadLetters
from penstock.store.redis.documents import number, text
from penstock.store.redis.keys import AS_IN_JOB, Ran, decode_doc, decode_lane
from penstock.store.redis.records import page_of_entries, row_of
from penstock.store.redis.schedules import RedisSchedules
from penstock.store.redis.scripts import Scripts
from penstock.store.redis.transfer_in import Arguments, commands_of, jobs_as_arguments

Fields = dict[bytes, bytes]

_ran: Decoder[Ran] = Decoder(Ran)
_COUNTS = ("attempts", "snoozes", "rescues", "returns", "fence", "waiting_on")
_TEXTS = (
    "error", "error_details", "lease_owner", "cancel_reason", "progress_message", "progress",
    "checkpoint",
)  # fmt: skip
_MOMENTS = (
    "expires_at", "cancel_requested_at", "queued_at", "started_at", "completed_at", "failed_at",
)  # fmt: skip


Reading = Callable[[Scripts, Sequence[str]], Awaitable[list[Row]]]


async def page_by_job(scripts: Scripts, part: Part, after: str | None, limit: int) -> Page:
    """Records that are kept with jobs or dead letters, in the order of those."""
    name = "dead" if part is Part.DEAD_LETTERS else "jobs"
    rows: list[Row] = []
    size = 0
    while True:
        ids, after = await _ids(scripts, name, after, min(JOBS_AT_ONCE, limit))
        read = await BY_JOB[part](scripts, ids)
        rows += read
        size += size_of(read)
        if after is None or len(rows) >= limit or size >= PAGE_BYTES:
            return Page(rows, after)


async def _jobs(scripts: Scripts, ids: Sequence[str]) -> list[Row]:
    hashes = await _hashes(scripts, "job", ids)
    left = await _leases_left(scripts, ids, hashes)
    rows: list[Row] = []
    for job_id, found in zip(ids, hashes, strict=True):
        try:
            rows.append(_job(job_id, found, left.get(job_id)))
        except (DecodeError, KeyError, ValueError) as error:
            problem = (
                f"holds job {job_id}, whose document cannot be read ({error}); have a worker "
                f"dead-letter it, remove it with `penstock dead purge {job_id}`, and try again"
            )
            raise StoreError(scripts.server.url, problem) from error
    return rows


async def _letters(scripts: Scripts, ids: Sequence[str]) -> list[Row]:
    reader = RedisDeadLetters(scripts)
    found = await asyncio.gather(*(reader.get(job_id) for job_id in ids))
    names = COLUMNS[Part.DEAD_LETTERS]
    return [tuple(getattr(letter, name) for name in names) for letter in found if letter]


async def _executions(scripts: Scripts, ids: Sequence[str]) -> list[Row]:
    hashes = await _hashes(scripts, "job", ids)
    return [
        _execution(job_id, int(name[1:]), found)
        for job_id, found in zip(ids, hashes, strict=True)
        for name in sorted(found, key=lambda name: (len(name), name))
        if name[:1] == b"x" and name[1:].isdigit()
    ]


async def _logs(scripts: Scripts, ids: Sequence[str]) -> list[Row]:
    found = await scripts.call("read_all", "LRANGE", "logs:", *ids)
    rows: list[Row] = []
    for job_id, lines in zip(ids, found, strict=True):
        for line in lines:
            at, fence, level, message = decode(line)
            rows.append((job_id, fence, at, level, message))
    return rows


async def _dependencies(scripts: Scripts, ids: Sequence[str]) -> list[Row]:
    edges = await _hashes(scripts, "edges", ids)
    waiting = [job_id for job_id, found in zip(ids, edges, strict=True) if found]
    inputs = dict(zip(waiting, await _hashes(scripts, "inputs", waiting), strict=True))
    asked = (("HGET", f"{scripts.prefix}job:{job_id}", "created_at") for job_id in waiting)
    made = dict(zip(waiting, await scripts.ask(*asked), strict=True))
    return [
        _edge(job_id, field, value, inputs[job_id].get(field), int(made[job_id]))
        for job_id, found in zip(ids, edges, strict=True)
        for field, value in sorted(found.items())
    ]


BY_JOB: Mapping[Part, Reading] = MappingProxyType(
    {
        Part.JOBS: _jobs,
        Part.EXECUTIONS: _executions,
        Part.LOGS: _logs,
        Part.DEAD_LETTERS: _letters,
        Part.DEPENDENCIES: _dependencies,
    }
)
"""What is kept with each job, and read job by job."""


async def _ids(
    scripts: Scripts, name: str, after: str | None, limit: int
) -> tuple[list[str], str | None]:
    """Ids by their number, and that of the last one unless there are no more."""
    asked = ("ZRANGEBYSCORE", scripts.prefix + name, f"({after or 0}", "+inf")
    [found] = await scripts.ask((*asked, "WITHSCORES", "LIMIT", 0, limit))
    ids = [job_id.decode() for job_id in found[::2]]
    return ids, str(int(found[-1])) if len(ids) == limit else None


async def _hashes(scripts: Scripts, kind: str, ids: Sequence[str]) -> list[Fields]:
    found = await scripts.call("read_all", "HGETALL", f"{kind}:", *ids)
    return [dict(zip(fields[::2], fields[1::2], strict=True)) for fields in found]


async def _leases_left(
    scripts: Scripts, ids: Sequence[str], hashes: Sequence[Fields]
) -> dict[str, int]:
    """How long the leases of running jobs still last, by the clock of leases."""
    leased = [
        (job_id, found.get(b"lease_owner", b"").decode())
        for job_id, found in zip(ids, hashes, strict=True)
        if found.get(b"status") == b"in_progress"
    ]
    asked = (("ZSCORE", f"{scripts.prefix}leases:{owner}", job_id) for job_id, owner in leased)
    now, scores = await scripts.look(*asked)
    told = scripts.times()[1]
    monotonic = told if isinstance(told, int) else now
    return {
        job_id: int(float(score)) - monotonic
        for (job_id, _), score in zip(leased, scores, strict=True)
        if score is not None
    }


def _job(job_id: str, found: Fields, lease_left_ms: int | None) -> Row:
    doc = decode_doc(found[b"doc"])
    queue, tenant_id, type_, limit_key = decode_lane(found[b"lane"])
    status = found[b"status"].decode()
    made = int(found[b"created_at"])
    priority = number(found.get(b"priority")) or 5
    scheduled_at = number(found.get(b"scheduled_at")) or made
    result = text(found.get(b"result"))
    percent = found.get(b"progress_percent")
    row: dict[str, Any] = {
        "id": job_id,
        "type": type_,
        "queue": queue,
        "status": status,
        "priority": priority,
        "rank": rank(scheduled_at, priority),
        "payload": found.get(b"payload", b"").decode("utf-8", "replace"),
        "result": "null" if result is None and status == Status.COMPLETED else result,
        "timeout_ms": number(found.get(b"timeout_ms")) or doc.timeout_ms,
        "scheduled_at": scheduled_at,
        "lease_left_ms": lease_left_ms,
        "progress_percent": float(percent) if percent else None,
        "tenant_id": tenant_id,
        "limit_key": limit_key,
        "tags": list(doc.tags) if doc.tags else None,
        "created_at": made,
    }
    row |= {name: number(found.get(name.encode())) or 0 for name in _COUNTS}
    row |= {name: text(found.get(name.encode())) for name in _TEXTS}
    row |= {name: number(found.get(name.encode())) for name in _MOMENTS}
    row |= {name: getattr(doc, name) for name in AS_IN_JOB}
    latest = max(made, *(row[name] or 0 for name in ("queued_at", "started_at", "completed_at")))
    row["updated_at"] = number(found.get(b"updated_at")) or latest
    if status == Status.COMPLETED:
        row["lease_owner"] = None
        if row["completed_at"] is None:
            _fill_in(row, found)
    return tuple(row[name] for name in COLUMNS[Part.JOBS])


def _fill_in(row: dict[str, Any], found: Fields) -> None:
    """What the last execution of a completed job tells of it."""
    last = found.get(b"x%d" % row["fence"])
    if last is not None:
        ran = _ran.decode(last)
        row["attempts"] += 1
        row["started_at"] = ran.started_at
        row["completed_at"] = row["updated_at"] = ran.ended_at


def _execution(job_id: str, fence: int, found: Fields) -> Row:
    ran = _ran.decode(found[b"x%d" % fence])
    completed = ran.status == Status.COMPLETED
    result = (text(found.get(b"result")) or "null") if completed else None
    return (
        job_id, fence, ran.status, ran.started_at, ran.ended_at, ran.wait_ms, ran.duration_ms,
        ran.cpu_ms, ran.memory_kb, ran.worker or None, ran.error_class, ran.error_code, ran.error,
        ran.error_stack, result,
    )  # fmt: skip


def _edge(child: str, field: bytes, value: bytes, result: bytes | None, made: int) -> Row:
    parent, kind, argument = field.decode().split("\n", 2)
    outcome, closed_at, terms = value.decode().split(" ", 2)
    on_failure, on_requeue, position, condition = decode(terms)
    is_open = outcome == "-"
    return (
        child, parent, kind, argument, position, condition, on_failure, on_requeue,
        None if is_open else outcome, text(result), made, None if is_open else int(closed_at),
    )  # fmt: skip


METRIC_RESOLUTIONS = tuple(STEPS_KEPT_MS)
AT_ONCE = 500
MANY = 10_000_000


async def listing(scripts: Scripts, part: Part) -> list[Row]:
    """All records of a part, always in the same order."""
    rows = await _READINGS[part](scripts)
    return sorted(rows, key=repr)


async def _keys(scripts: Scripts) -> list[Row]:
    rows: list[Row] = []
    for field, value in await _fields(scripts, "keys"):
        scope, expires_at, job_id = value.decode().split(" ", 2)
        moment = None if expires_at == "-" else int(expires_at)
        rows.append((*decode(field), job_id, scope, moment))
    return rows


async def _lines(scripts: Scripts) -> list[Row]:
    return [(*decode(line), last.decode()) for line, last in await _fields(scripts, "lines")]


async def _schedules(scripts: Scripts) -> list[Row]:
    known = await RedisSchedules(scripts).known(MANY)
    names = COLUMNS[Part.SCHEDULES]
    return [tuple(getattr(schedule, name) for name in names) for schedule in known]


async def _pauses(scripts: Scripts) -> list[Row]:
    rows: list[Row] = []
    for field, value in await _fields(scripts, "pauses"):
        scope, name = field.decode().split("\n", 1)
        rows.append(_pause(scope, name, value))
    for field, value in await _fields(scripts, "pauses:jobs"):
        rows.append(_pause("job", field.decode(), value))
    return rows


def _pause(scope: str, name: str, value: bytes) -> Row:
    created_at, reason, by = decode(value)
    return scope, name, reason, by, created_at


async def _limits(scripts: Scripts) -> list[Row]:
    now, _ = await scripts.look()
    rows: list[Row] = []
    for name in ("limits", "limits:depth"):
        for field, value in await _fields(scripts, name):
            scope, kind, about = field.decode().split("\n", 2)
            capacity, interval_ms, by_operator = decode(value)
            rows.append((scope, about, kind, capacity, interval_ms, bool(by_operator), now))
    return rows


async def _rates(scripts: Scripts) -> list[Row]:
    fields = await _fields(scripts, "rates")
    return [(*field.decode().split("\n", 1), starts.decode()) for field, starts in fields]


async def _breakers(scripts: Scripts) -> list[Row]:
    now, _ = await scripts.look()
    states = dict(await _fields(scripts, "breakers:state"))
    rows: list[Row] = []
    for name, definition in await _fields(scripts, "breakers"):
        types, failures, cool_down_ms = decode(definition)
        failed, opened_at, probe_id = states.get(name, b"0 - -").decode().split(" ", 2)
        opened = None if opened_at == "-" else int(opened_at)
        probe = None if probe_id == "-" else probe_id
        terms = (types, failures, cool_down_ms, int(failed), opened, probe, now)
        rows.append((name.decode(), *terms))
    return rows


async def _metrics(scripts: Scripts) -> list[Row]:
    rows: list[Row] = []
    for resolution in METRIC_RESOLUTIONS:
        key = f"{scripts.prefix}metrics:{resolution}"
        [steps] = await scripts.ask(("ZRANGE", key, 0, -1))
        for first in range(0, len(steps), AT_ONCE):
            some = [int(step) for step in steps[first : first + AT_ONCE]]
            found = await scripts.ask(*(("HGETALL", f"{key}:{step}") for step in some))
            for step, fields in zip(some, found, strict=True):
                rows += (_metric(resolution, step, *pair) for pair in _pairs(fields))
    return rows


def _metric(resolution: int, step: int, field: bytes, value: bytes) -> Row:
    name, _, label = field.rpartition(b"\n")
    type_, queue = decode(label)
    return resolution, step, type_, queue, name.decode(), float(value)


async def _records(scripts: Scripts) -> list[Row]:
    return [row_of(field, value) for field, value in await _fields(scripts, "records")]


async def _followers(scripts: Scripts) -> list[Row]:
    fields = await _fields(scripts, "followers")
    return [(name.decode(), decode(statuses)) for name, statuses in fields]


_READINGS: dict[Part, Callable[[Scripts], Awaitable[list[Row]]]] = {
    Part.KEYS: _keys,
    Part.LINES: _lines,
    Part.SCHEDULES: _schedules,
    Part.PAUSES: _pauses,
    Part.LIMITS: _limits,
    Part.RATES: _rates,
    Part.BREAKERS: _breakers,
    Part.METRICS: _metrics,
    Part.RECORDS: _records,
    Part.FOLLOWERS: _followers,
}


async def _fields(scripts: Scripts, name: str) -> list[tuple[bytes, bytes]]:
    [found] = await scripts.ask(("HGETALL", scripts.prefix + name))
    return _pairs(found)


def _pairs(flat: Sequence[Any]) -> list[tuple[Any, Any]]:
    return list(zip(flat[::2], flat[1::2], strict=True))


_SIZES = {
    Part.DEAD_LETTERS: ("ZCARD", ("dead",)),
    Part.KEYS: ("HLEN", ("keys",)),
    Part.LINES: ("HLEN", ("lines",)),
    Part.SCHEDULES: ("HLEN", ("schedules",)),
    Part.PAUSES: ("HLEN", ("pauses", "pauses:jobs")),
    Part.LIMITS: ("HLEN", ("limits", "limits:depth")),
    Part.RATES: ("HLEN", ("rates",)),
    Part.BREAKERS: ("HLEN", ("breakers",)),
    Part.RECORDS: ("HLEN", ("records",)),
    Part.AUDIT: ("ZCARD", ("audit",)),
    Part.FOLLOWERS: ("HLEN", ("followers",)),
}


class RedisTransfer:
    """`Transfer` on Redis."""

    tables = None

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts
        self._listed: dict[Part, list[Row]] = {}

    async def tally(self) -> Tally:
        """Count everything."""
        parts: Counter[Part] = Counter(dict.fromkeys(Part, 0))
        for part, (command, names) in _SIZES.items():
            parts[part] = sum(await self._ask_all(command, names))
        streams = [f"changes:{name}" for name in await follower_names(self._scripts)]
        parts[Part.CHANGES] = sum(await self._ask_all("XLEN", streams))
        for resolution in METRIC_RESOLUTIONS:
            [steps] = await self._scripts.ask(
                ("ZRANGE", f"{self._scripts.prefix}metrics:{resolution}", 0, -1)
            )
            hashes = [f"metrics:{resolution}:{int(step)}" for step in steps]
            parts[Part.METRICS] += sum(await self._ask_all("HLEN", hashes))
        statuses: Counter[str] = Counter()
        fences = attempts = 0
        after: Any = 0
        while after != b"":
            after, *counts = await self._scripts.call("tally_jobs", after, AT_ONCE)
            executions, logs, edges, fence_sum, attempt_sum, *by_status = counts
            parts[Part.EXECUTIONS] += executions
            parts[Part.LOGS] += logs
            parts[Part.DEPENDENCIES] += edges
            fences, attempts = fences + int(fence_sum), attempts + int(attempt_sum)
            for status, count in zip(by_status[::2], by_status[1::2], strict=True):
                statuses[status.decode()] += count
        parts[Part.JOBS] = statuses.total()
        return Tally(dict(parts), dict(statuses), fences, attempts)

    async def page(self, part: Part, after: str | None, limit: int) -> Page:
        """Read some records of a part."""
        if part in BY_JOB:
            return await page_by_job(self._scripts, part, after, limit)
        if part is Part.AUDIT:
            return await page_of_entries(self._scripts, after, limit)
        if part is Part.CHANGES:
            return await page_of_changes(self._scripts, after, limit)
        if after is None or part not in self._listed:
            self._listed = {part: await listing(self._scripts, part)}
        begin = int(after or 0)
        found = self._listed[part][begin : begin + limit]
        ends = begin + limit >= len(self._listed[part])
        return Page(found, None if ends else str(begin + limit))

    async def adopt(self, part: Part, rows: Sequence[Row], bookmark: Bookmark) -> bool:
        """Write records as they are, and the bookmark."""
        where = (bookmark.move, part.value, bookmark.before or "", bookmark.after)
        if part is Part.JOBS:
            written = await self._scripts.call("adopt_jobs", *where, *jobs_as_arguments(rows))
        else:
            commands = await self._commands(part, rows)
            written = await self._scripts.call("adopt", *where, *commands)
        return bool(written)

    async def marks(self) -> dict[str, str]:
        """What is written here about a move."""
        [found] = await self._scripts.ask(("HGETALL", self._scripts.prefix + "moves"))
        texts = [text.decode() for text in found]
        return dict(zip(texts[::2], texts[1::2], strict=True))

    async def mark(self, changes: Mapping[str, str | None]) -> None:
        """Write or remove some of it."""
        told = [word for name, value in changes.items() for word in (str(name), value or "")]
        await self._scripts.call("set_marks", *told)

    async def clear(self) -> None:
        """Delete everything; the marks go last, so that an interrupted one is begun again."""
        prefix = self._scripts.prefix
        await self.unlink(f"{prefix}meta", f"{prefix}moves")
        self._listed = {}
        await self._scripts.ask(
            ("HDEL", f"{prefix}meta", "rolled_up_at"), ("DEL", f"{prefix}moves")
        )

    async def unlink(self, *kept: str) -> None:
        """Delete all keys but some."""
        prefix = self._scripts.prefix
        spared = {name.encode() for name in kept}
        cursor: Any = 0
        while True:
            asked = ("SCAN", cursor, "MATCH", f"{prefix}*", "COUNT", 1000)
            [[cursor, found]] = await self._scripts.ask(asked)
            gone = [key for key in found if key not in spared]
            if gone:
                await self._scripts.ask(("UNLINK", *gone))
            if int(cursor) == 0:
                return

    async def _commands(self, part: Part, rows: Sequence[Row]) -> Arguments:
        now, [deaths] = await self._scripts.look(("GET", self._scripts.prefix + "dead:seq"))
        return commands_of(part, rows, now, int(deaths or 0))

    async def _ask_all(self, command: str, names: Sequence[str]) -> list[int]:
        prefix = self._scripts.prefix
        sizes: list[int] = []
        for first in range(0, len(names), AT_ONCE):
            some = names[first : first + AT_ONCE]
            sizes += await self._scripts.ask(*((command, prefix + name) for name in some))
        return sizes
