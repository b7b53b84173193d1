"""Records of another store as the keys of this one, for `adopt.lua` and `adopt_jobs.lua`."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import DecodeError, Raw, Struct, convert
from msgspec.json import decode, encode

from penstock.model.schedule import Schedule
from penstock.model.states import TERMINAL, Status
from penstock.store.contract import COLUMNS, Part, Row
from penstock.store.contract.metrics import DAY_MS, LONGEST
from penstock.store.redis.changes import encode_change
from penstock.store.redis.dead import Command, Listed, lists_of
from penstock.store.redis.keys import Doc, encode_doc, encode_lane, label

Arguments = list[Any]

MOST_ARGUMENTS = 2_000
_PLACE = (
    "status", "priority", "waiting_on", "scheduled_at", "expires_at", "lease_owner",
    "lease_left_ms", "parent_job_id", "schedule_id",
)  # fmt: skip
_KEPT = (
    "status", "payload", "error", "error_details", "expires_at", "lease_owner",
    "cancel_requested_at", "cancel_reason", "progress_percent", "progress_message", "progress",
    "checkpoint", "created_at", "updated_at", "scheduled_at", "queued_at", "started_at",
    "completed_at", "failed_at", "key_scope",
)  # fmt: skip
_COUNTS = ("fence", "attempts", "snoozes", "rescues", "returns", "waiting_on")


class _Snapshot(Struct):
    """A dead job as other stores remember it."""

    payload: Raw = Raw(b"null")
    priority: int = 5
    category: str = "general"
    max_retries: int | None = None
    timeout_ms: int = 0
    created_at: int = 0
    scheduled_at: int = 0
    workspace_id: str | None = None
    created_by: str | None = None
    parent_job_id: str | None = None
    key: str | None = None
    tags: tuple[str, ...] = ()
    checkpoint: str | None = None


def jobs_as_arguments(rows: Sequence[Row]) -> Arguments:
    """Jobs as `adopt_jobs.lua` takes them."""
    arguments: Arguments = []
    for row in rows:
        job = dict(zip(COLUMNS[Part.JOBS], row, strict=True))
        lane = encode_lane(job["queue"], job["tenant_id"], job["type"], job["limit_key"])
        fields = _fields(job, lane)
        arguments += (job["id"], encode(_place(job, lane)), len(fields), *fields)
    return arguments


def commands_of(part: Part, rows: Sequence[Row], now: int, deaths: int) -> Arguments:
    """Records as `adopt.lua` takes them; `deaths` is the number of the last dead letter."""
    commands: Iterable[Command]
    if part is Part.DEAD_LETTERS:
        commands = _letters(rows, deaths)
    elif part is Part.METRICS:
        commands = _metrics(rows, now)
    else:
        commands = _COMMANDS[part](rows)
    arguments: Arguments = []
    for command, key, given in commands:
        for first in range(0, len(given), MOST_ARGUMENTS):
            some = given[first : first + MOST_ARGUMENTS]
            arguments += (len(some), command, key, *some)
    return arguments


def _place(job: dict[str, Any], lane: str) -> dict[str, Any]:
    """What decides where a job stands."""
    place = {name: job[name] for name in _PLACE if job[name] is not None}
    place["lane"] = lane
    if job["status"] == Status.IN_PROGRESS:
        place["started"] = job["started_at"] is not None
        place["stops"] = job["cancel_requested_at"] is not None
        place.setdefault("lease_left_ms", 0)
    elif Status(job["status"]) in TERMINAL:
        place["ended_at"] = job["completed_at"] or job["updated_at"]
        if job["keep_completed"] is not None or job["keep_failed"] is not None:
            place["keep"] = encode((job["keep_completed"], job["keep_failed"])).decode()
    return place


def _fields(job: dict[str, Any], lane: str) -> Arguments:
    """The hash of a job, without what goes without saying."""
    fields: dict[str, Any] = {name: job[name] for name in _KEPT if job[name] is not None}
    fields |= {name: job[name] for name in _COUNTS if job[name]}
    fields |= {"lane": lane, "doc": _doc(job)}
    if job["priority"] != 5:
        fields["priority"] = job["priority"]
    if job["key"] is not None:
        fields["key"] = encode((job["tenant_id"], job["type"], job["key"]))
    if job["order_key"] is not None:
        fields["line"] = encode((job["tenant_id"], job["order_key"]))
    if job["keep_completed"] is not None or job["keep_failed"] is not None:
        fields["keep"] = encode((job["keep_completed"], job["keep_failed"]))
    if job["result"] is not None and (job["result"], job["status"]) != ("null", Status.COMPLETED):
        fields["result"] = job["result"]
    return [word for pair in fields.items() for word in pair]


def _doc(job: dict[str, Any]) -> str:
    return encode_doc(*((job | {"tags": job["tags"] or None})[n] for n in Doc.__struct_fields__))


def _executions(rows: Sequence[Row]) -> Iterator[Command]:
    for row in rows:
        job_id, fence, status, started_at, ended_at, wait, duration, cpu, memory, worker, *told = (
            row
        )
        ran = (ended_at, worker or "", status, started_at, wait, duration, cpu, memory, *told[:4])
        yield "HSET", f"job:{job_id}", (f"x{fence}", encode(ran))


def _logs(rows: Sequence[Row]) -> Iterator[Command]:
    lines: dict[str, list[bytes]] = {}
    for job_id, fence, at, level, message in rows:
        lines.setdefault(job_id, []).append(encode((at, fence, level, message)))
    return (("RPUSH", f"logs:{job_id}", told) for job_id, told in lines.items())


def _letters(rows: Sequence[Row], deaths: int) -> Iterator[Command]:
    for death, row in enumerate(rows, deaths + 1):
        letter = dict(zip(COLUMNS[Part.DEAD_LETTERS], row, strict=True))
        fields = _letter(letter)
        yield "HSET", f"dead:{letter['job_id']}", [word for pair in fields.items() for word in pair]
        yield "ZADD", "dead", (death, letter["job_id"])
        yield from lists_of(convert(letter, Listed), death)
    yield "SET", "dead:seq", (deaths + len(rows),)


def _letter(letter: dict[str, Any]) -> dict[str, Any]:
    snapshot = _snapshot(letter["snapshot"])
    doc = encode_doc(
        snapshot.max_retries,
        snapshot.timeout_ms,
        snapshot.category,
        None,
        None,
        None,
        snapshot.created_by,
        snapshot.tags or None,
        snapshot.workspace_id,
        snapshot.parent_job_id,
        None,
        None,
        snapshot.key,
    )
    told = (
        "reason", "error", "error_code", "fingerprint", "attempts", "rescues", "resolution",
        "notes", "resolved_by", "resolved_at", "created_at", "canary_of",
    )  # fmt: skip
    fields = {name: letter[name] for name in told if letter[name] is not None}
    return fields | {
        "lane": encode_lane(letter["queue"], letter["tenant_id"], letter["type"], None),
        "doc": doc,
        "payload": bytes(snapshot.payload),
        "checkpoint": snapshot.checkpoint or "",
        "priority": snapshot.priority,
        "scheduled_at": snapshot.scheduled_at,
        "made_at": snapshot.created_at,
        "executions": _history(letter["executions"]),
    }


def _snapshot(document: str) -> _Snapshot:
    try:
        return decode(document, type=_Snapshot)
    except DecodeError:  # edited by hand: the letter goes on without it
        return _Snapshot(payload=Raw(document.encode()))


def _history(document: str) -> bytes:
    try:
        found: list[dict[str, Any]] = decode(document, type=list[dict[str, Any]])
    except DecodeError:
        return b"[]"
    return encode([(about.get("fence", 0), _ran(about)) for about in found])


def _ran(about: Mapping[str, Any]) -> tuple[Any, ...]:
    began = (about.get("ended_at") or 0, about.get("worker") or "", about.get("status") or "")
    spent = (about.get("started_at") or 0, None, about.get("duration_ms"), None, None)
    return (*began, *spent, about.get("error_class"), about.get("error_code"), about.get("error"))


def _keys(rows: Sequence[Row]) -> Iterator[Command]:
    for tenant_id, type_, key, job_id, scope, expires_at in rows:
        field = encode((tenant_id, type_, key))
        ends = "-" if expires_at is None else expires_at
        yield "HSET", "keys", (field, f"{scope} {ends} {job_id}")
        if expires_at is not None:
            yield "ZADD", "keys:expiring", (expires_at, field)


def _dependencies(rows: Sequence[Row]) -> Iterator[Command]:
    for row in rows:
        child, parent, kind, argument, position, condition, on_failure, on_requeue, *rest = row
        outcome, result, _, closed_at = rest
        field = f"{parent}\n{kind}\n{argument}"
        terms = encode((on_failure, on_requeue, position, condition)).decode()
        value = f"{outcome or '-'} {'-' if closed_at is None else closed_at} {terms}"
        yield "HSET", f"edges:{child}", (field, value)
        yield (
            "ZADD",
            f"children:{parent}",
            (int(outcome is not None), f"{child}\n{kind}\n{argument}"),
        )
        if outcome is None:
            yield "SADD", "edges:open", (parent,)
        if result is not None:
            yield "HSET", f"inputs:{child}", (field, result)


def _lines(rows: Sequence[Row]) -> Iterator[Command]:
    for tenant_id, order_key, last_id in rows:
        yield "HSET", "lines", (encode((tenant_id, order_key)), last_id)


def _schedules(rows: Sequence[Row]) -> Iterator[Command]:
    for row in rows:
        given = dict(zip(COLUMNS[Part.SCHEDULES], row, strict=True))
        schedule = convert(given, Schedule)
        name = encode((schedule.tenant_id, schedule.name))
        kept = ("next_run_at", "expires_at", "last_run_at", "run_count", "revision")
        fields: dict[str, Any] = {"name": name, "doc": encode(schedule)}
        fields |= {each: given[each] for each in (*kept, "created_at", "updated_at")}
        fields["enabled"] = int(schedule.enabled)
        told = [word for pair in fields.items() if pair[1] is not None for word in pair]
        yield "HSET", f"schedule:{schedule.id}", told
        yield "HSET", "schedules", (name, schedule.id)
        if schedule.enabled and schedule.next_run_at is not None:
            yield "ZADD", "schedules:due", (schedule.next_run_at, schedule.id)
        if schedule.expires_at is not None:
            yield "ZADD", "schedules:expiring", (schedule.expires_at, schedule.id)


def _pauses(rows: Sequence[Row]) -> Iterator[Command]:
    for scope, name, reason, by, created_at in rows:
        value = encode((created_at, reason, by))
        if scope == "job":
            yield "HSET", "pauses:jobs", (name, value)
        else:
            yield "HSET", "pauses", (f"{scope}\n{name}", value)


def _limits(rows: Sequence[Row]) -> Iterator[Command]:
    for scope, name, kind, capacity, interval_ms, by_operator, _ in rows:
        key = "limits:depth" if kind == "depth" else "limits"
        value = encode((capacity, interval_ms, bool(by_operator)))
        yield "HSET", key, (f"{scope}\n{kind}\n{name}", value)


def _rates(rows: Sequence[Row]) -> Iterator[Command]:
    for scope, name, starts in rows:
        yield "HSET", "rates", (f"{scope}\n{name}", starts)


def _breakers(rows: Sequence[Row]) -> Iterator[Command]:
    for name, types, failures, cool_down_ms, failed, opened_at, probe_id, _ in rows:
        yield "HSET", "breakers", (name, encode((types, failures, cool_down_ms)))
        opened = "-" if opened_at is None else opened_at
        yield "HSET", "breakers:state", (name, f"{failed} {opened} {probe_id or '-'}")


def _metrics(rows: Sequence[Row], now: int) -> Iterator[Command]:
    for resolution, bucket, type_, queue, name, value in rows:
        yield "ZADD", f"metrics:{resolution}", (bucket, bucket)
        field = f"{name}\n{label(type_, queue)}"
        yield "HSET", f"metrics:{resolution}:{bucket}", (field, round(value))
        if resolution == DAY_MS and not name.startswith(("gauge:", LONGEST)) and "@" not in name:
            yield "HINCRBY", "metrics:totals", (field, round(value))
    # All steps were folded before they were read; older ones are not whole any more.
    yield "HSET", "meta", ("rolled_up_at", now)


def _records(rows: Sequence[Row]) -> Iterator[Command]:
    for kind, name, document, revision, updated_at, expires_at in rows:
        field = f"{kind}\n{name}"
        ends = "-" if expires_at is None else expires_at
        yield "HSET", "records", (field, f"{revision} {updated_at} {ends} {document}")
        yield "ZADD", "records:names", (0, field)
        if expires_at is not None:
            yield "ZADD", "records:expiring", (expires_at, field)


def _audit(rows: Sequence[Row]) -> Iterator[Command]:
    for row in rows:
        yield "ZADD", "audit", (row[0], encode(row))


def _followers(rows: Sequence[Row]) -> Iterator[Command]:
    for name, statuses in rows:
        yield "HSET", "followers", (name, encode(statuses))
        for status in statuses:
            yield "SADD", f"followers:{status}", (name,)


def _changes(rows: Sequence[Row]) -> Iterator[Command]:
    for follower, job_id, type_, queue, tenant_id, status, fence, at in rows:
        lane = encode_lane(queue, tenant_id, type_, None)
        change = encode_change(status, fence, at, lane, job_id)
        yield "XADD", f"changes:{follower}", ("*", "change", change)


_COMMANDS: dict[Part, Callable[[Sequence[Row]], Iterator[Command]]] = {
    Part.EXECUTIONS: _executions,
    Part.LOGS: _logs,
    Part.KEYS: _keys,
    Part.DEPENDENCIES: _dependencies,
    Part.LINES: _lines,
    Part.SCHEDULES: _schedules,
    Part.PAUSES: _pauses,
    Part.LIMITS: _limits,
    Part.RATES: _rates,
    Part.BREAKERS: _breakers,
    Part.RECORDS: _records,
    Part.AUDIT: _audit,
    Part.FOLLOWERS: _followers,
    Part.CHANGES: _changes,
}
