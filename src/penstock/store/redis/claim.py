"""Leasing jobs; whose turn it was is remembered here, so that the server keeps no such state."""

from collections.abc import Iterator
from functools import cache
from typing import Any

from msgspec import Struct
from msgspec.json import encode
from msgspec.structs import replace

from penstock.model.failure import Failure
from penstock.model.job import Lease
from penstock.model.limits import LimitScope
from penstock.model.retry import ErrorClass
from penstock.model.settlement import Buried
from penstock.store.contract import Claim, Claimed, Slots
from penstock.store.redis.courier import Courier
from penstock.store.redis.keys import decode_doc, decode_lane
from penstock.store.redis.settle import settle


class _Asked(Struct):
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
    last_tenant: str
    walked_to: str


class Claims:
    """Grants leases; tenants alternate across the claims of one process."""

    def __init__(self, courier: Courier) -> None:
        self._courier = courier
        self._last_tenant = ""
        self._walked_to = ""

    async def claim(self, claim: Claim) -> Claimed:
        """Stage and expire what fell due, then lease up to the limit."""
        asked = _Asked(
            owner=claim.owner,
            types=[_spelled(type_) for type_ in claim.types],
            limit=claim.limit,
            start=claim.start,
            lease_ms=claim.lease_ms,
            type_lease_ms=dict(claim.type_lease_ms),
            queues=None if claim.queues is None else list(claim.queues),
            max_priority=claim.max_priority,
            ahead=claim.ahead,
            last_tenant=self._last_tenant,
            walked_to=self._walked_to,
        )
        answer = await self._courier.call("claim", encode(asked))
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
            await settle(self._courier, claim.owner, unreadable)
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
