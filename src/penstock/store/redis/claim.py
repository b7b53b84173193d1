"""Leasing jobs; whose turn it was is remembered here, so that the server keeps no such state."""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from msgspec import Struct
from msgspec.json import decode, encode
from msgspec.structs import replace

from penstock.model.controls import (
    EVERY,
    Breaker,
    BreakerState,
    Limit,
    LimitKind,
    LimitName,
    LimitScope,
    LimitState,
    Pause,
    PauseScope,
    Starts,
    leased_under,
    rate_state,
)
from penstock.model.failure import Failure
from penstock.model.job import Lease
from penstock.model.outcome import Buried
from penstock.model.retry import ErrorClass
from penstock.store.contract import Claim, Claimed, Slots
from penstock.store.redis.keys import decode_doc, decode_lane
from penstock.store.redis.scripts import Scripts
from penstock.store.redis.settle import settle


class Gates:
    """Pauses, limits and breakers at one moment."""

    def __init__(self, answer: Sequence[Any]) -> None:
        now, pauses, limits, depths, slots, rates, breakers, probes, leases, holders = answer
        self.now = int(now)
        self.pauses = paused(pauses, ())
        self.limits = sorted(
            (_limit(field, text) for field, text in (*_pairs(limits), *_pairs(depths))),
            key=lambda limit: (limit.scope, limit.name, limit.kind),
        )
        self.breakers = sorted((_breaker(*row) for row in breakers), key=lambda s: s.breaker.name)
        self._probes = {probe.decode() for probe in probes}
        self._slots = {_names(field, 3): int(count) for field, count in _pairs(slots)}
        self._starts = {_names(field, 2): _starts(text) for field, text in _pairs(rates)}
        self._leased = leased_under(
            (owner.decode(), *decode_lane(lane), *counts) for lane, owner, *counts in leases
        )
        self._holders = {_names(name, 2): _texts(ids) for name, ids in holders}

    def breakers_on(self, type_: str) -> list[BreakerState]:
        """Those that guard a type; a probe counts only while it runs."""
        return [
            state if state.probe_id in self._probes else replace(state, probe_id=None)
            for state in self.breakers
            if type_ in state.breaker.types
        ]

    def state(self, limit: Limit, depth: int = 0) -> LimitState:
        """How much of a limit is taken, and by whom; `depth` is how many jobs are queued there."""
        if limit.kind is LimitKind.RATE:
            starts = self._starts.get((limit.scope, limit.name), [])
            return rate_state(limit, starts, self.now)
        if limit.kind is LimitKind.DEPTH:
            return LimitState(limit=limit, used=0 if limit.name == EVERY else depth)
        owners = self._leased.get((limit.scope, limit.name), {})
        used = sum(
            has.taken(self._slots.get((limit.scope, owner, limit.name), 0))
            for owner, has in owners.items()
        )
        holders = self._holders.get((limit.scope, limit.name), ())
        return LimitState(limit=limit, used=used, holders=holders)


async def look_at_gates(scripts: Scripts, about: Sequence[LimitName] = ()) -> Gates:
    """Everything that may hold jobs back; who holds slots under these names is told as well."""
    names = (f"{scope}\n{name}" for scope, name in about)
    return Gates(await scripts.call("look_at_gates", *names))


async def queue_depths(scripts: Scripts, queues: Sequence[str]) -> dict[str, int]:
    """How many jobs are queued in each."""
    if not queues:
        return {}
    fields = (f"queued {queue}" for queue in queues)
    [found] = await scripts.ask(("HMGET", f"{scripts.prefix}depths", *fields))
    return {queue: int(count or 0) for queue, count in zip(queues, found, strict=True)}


def pause(scope: str, name: str, text: bytes) -> Pause:
    """A pause as it is stored."""
    created_at, reason, paused_by = decode(text, type=tuple[int, str | None, str | None])
    return Pause(
        scope=PauseScope(scope),
        name=name,
        reason=reason,
        paused_by=paused_by,
        created_at=created_at,
    )


def paused(lanes: Sequence[bytes], jobs: Sequence[bytes]) -> list[Pause]:
    """Pauses as their two hashes have them, the oldest first."""
    found = [pause(PauseScope.JOB, job_id.decode(), text) for job_id, text in _pairs(jobs)]
    for field, text in _pairs(lanes):
        scope, name = _names(field, 2)
        found.append(pause(scope, name, text))
    return sorted(found, key=lambda paused: (paused.created_at, paused.scope, paused.name))


def _pairs(flat: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
    return list(zip(flat[::2], flat[1::2], strict=True))


def _names(field: bytes, parts: int) -> tuple[str, ...]:
    return tuple(field.decode().split("\n", parts - 1))


def _texts(values: Sequence[bytes]) -> tuple[str, ...]:
    return tuple(value.decode() for value in values)


def _limit(field: bytes, text: bytes) -> Limit:
    scope, kind, name = _names(field, 3)
    capacity, interval_ms, by_operator = decode(text, type=tuple[int, int | None, bool])
    return Limit(
        scope=LimitScope(scope),
        name=name,
        kind=LimitKind(kind),
        capacity=capacity,
        interval_ms=interval_ms,
        by_operator=by_operator,
    )


def _starts(text: bytes) -> Starts:
    return decode(text, type=list[tuple[int, int]])


def _breaker(name: bytes, definition: bytes, state: bytes) -> BreakerState:
    types, failures, cool_down_ms = decode(definition, type=tuple[tuple[str, ...], int, int])
    failed, opened_at, probe_id = state.decode().split(" ", 2)
    breaker = Breaker(name=name.decode(), types=types, failures=failures, cool_down_ms=cool_down_ms)
    return BreakerState(
        breaker=breaker,
        failed=int(failed),
        opened_at=None if opened_at == "-" else int(opened_at),
        probe_id=None if probe_id == "-" else probe_id,
    )


class _ClaimArguments(Struct):
    """A claim as `claim.lua` takes it."""

    owner: str
    types: list[str]
    limit: int
    start: int
    lease_ms: int
    type_lease_ms: dict[str, int]
    queues: list[str] | None
    max_priority: int | None
    ahead: float
    at_most: dict[str, int] | None
    last_tenant: str
    walked_to: str


class Claims:
    """Grants leases; tenants alternate across the claims of one process."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts
        self._last_tenant = ""
        self._walked_to = ""

    async def claim(self, claim: Claim) -> Claimed:
        """Stage and expire what fell due, then lease up to the limit."""
        asked = _ClaimArguments(
            owner=claim.owner,
            types=[_spelled(type_) for type_ in claim.types],
            limit=claim.limit,
            start=claim.start,
            lease_ms=claim.lease_ms,
            type_lease_ms=dict(claim.type_lease_ms),
            queues=None if claim.queues is None else list(claim.queues),
            max_priority=claim.max_priority,
            ahead=claim.ahead,
            at_most=dict(claim.at_most) or None,
            last_tenant=self._last_tenant,
            walked_to=self._walked_to,
        )
        answer = await self._scripts.call("claim", encode(asked))
        now, ask_again, last_tenant, walked_to, slots, *runs = answer
        self._last_tenant, self._walked_to = last_tenant.decode(), walked_to.decode()
        leases: list[Lease] = []
        unreadable: list[Buried] = []
        for run in runs:
            try:
                leases += _leases(int(now), *run)
            except (ValueError, TypeError) as error:
                unreadable += _burials(int(now), run, error)
        if unreadable:
            await settle(self._scripts, claim.owner, unreadable)
        return Claimed(leases, int(ask_again) if ask_again else None, _slots_of(slots))


@cache
def _spelled(type_: str) -> str:
    return encode(type_).decode()


def _slots_of(rows: list[tuple[bytes, bytes, int]]) -> Slots:
    return {(LimitScope(scope.decode()), name.decode()): slots for scope, name, slots in rows}


def _burials(now: int, run: list[Any], error: Exception) -> Iterator[Buried]:
    """End the leases of a run that cannot be read, so that it holds up nobody else."""
    lane, _, _, _, _, fence, _, _, *granted = run
    queue, _, type_, _ = decode_lane(lane)
    for member in granted[::2]:
        job_id = member[1:].decode()
        words = f"The stored document of job {job_id} cannot be read ({error}); enqueue it again."
        failure = Failure.because(ErrorClass.INVALID_INPUT, "CorruptJob", words)
        yield Buried(
            id=job_id, fence=fence, type=type_, queue=queue, started_at=now, failure=failure
        )


_NOTHING = (None,) * 5


def _number(text: bytes | None) -> int:
    return int(text) if text else 0


def _leases(
    now: int,
    lane: bytes,
    doc: bytes,
    created_at: bytes,
    queued_at: bytes,
    expires_at: bytes | None,
    fence: int,
    started: int,
    earlier: list[bytes | None],
    *granted: bytes,
) -> Iterator[Lease]:
    """The leases of one run, see `claim.lua`."""
    queue, tenant_id, type_, limit_key = decode_lane(lane)
    fixed = decode_doc(doc)
    attempts, snoozes, rescues, timeout_ms, checkpoint = earlier or _NOTHING
    common = Lease(
        "",
        fence,
        type_,
        queue,
        0,
        "",
        _number(attempts),
        _number(snoozes),
        _number(rescues),
        fixed.max_retries,
        fixed.retry_delay_ms,
        fixed.backoff_multiplier,
        int(timeout_ms) if timeout_ms else fixed.timeout_ms,
        int(expires_at) if expires_at else None,
        checkpoint.decode() if checkpoint else None,
        tenant_id,
        fixed.workspace_id,
        fixed.parent_job_id,
        fixed.key,
        fixed.metadata,
        fixed.trace_context,
        int(created_at),
        int(queued_at),
        now if started else None,
        limit_key or None,
    )
    for member, payload in zip(granted[::2], granted[1::2], strict=True):
        yield replace(
            common,
            id=member[1:].decode(),
            priority=member[0] - 47,
            payload=payload.decode("utf-8", "replace"),
        )
