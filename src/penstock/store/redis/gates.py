"""One look at everything that may hold jobs back, and how much of it is taken."""

from collections.abc import Sequence
from typing import Any

from msgspec.json import decode
from msgspec.structs import replace

from penstock.model.breaker import Breaker, BreakerState
from penstock.model.limits import (
    EVERY,
    Limit,
    LimitKind,
    LimitName,
    LimitScope,
    LimitState,
    Starts,
    leased_under,
    rate_state,
)
from penstock.model.pause import Pause, PauseScope
from penstock.store.redis.courier import Courier
from penstock.store.redis.keys import decode_lane


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


async def look_at_gates(courier: Courier, about: Sequence[LimitName] = ()) -> Gates:
    """Everything that may hold jobs back; who holds slots under these names is told as well."""
    names = (f"{scope}\n{name}" for scope, name in about)
    return Gates(await courier.call("look_at_gates", *names))


async def queue_depths(courier: Courier, queues: Sequence[str]) -> dict[str, int]:
    """How many jobs are queued in each."""
    if not queues:
        return {}
    fields = (f"queued {queue}" for queue in queues)
    [found] = await courier.ask(("HMGET", f"{courier.prefix}depths", *fields))
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
