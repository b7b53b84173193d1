"""What an operator may do to jobs: cancel, requeue, amend, have them wait for more."""

from collections.abc import Sequence

from msgspec.json import encode

from penstock.model.dependency import Edge
from penstock.model.failure import MESSAGE_LIMIT
from penstock.model.redact import redact
from penstock.store.redis.courier import Courier
from penstock.store.redis.release import decided, edges_as_rows


async def cancel(courier: Courier, ids: Sequence[str], reason: str) -> dict[str, str]:
    """Cancel waiting jobs at once and ask running ones to stop; their status afterwards."""
    if not ids:
        return {}
    told = redact(str(reason))[:MESSAGE_LIMIT]
    statuses = await decided(courier, "cancel", told, *ids)
    return {job_id: status.decode() for job_id, status in zip(ids, statuses, strict=True)}


async def requeue(
    courier: Courier, ids: Sequence[str], spread_ms: float, delay_ms: float
) -> list[str]:
    """Give ended jobs a fresh budget, all of them or none, each due a while after the last."""
    if ids:
        due = [round(delay_ms + place * spread_ms) for place in range(len(ids))]
        pairs = zip(ids, due, strict=True)
        await decided(courier, "requeue", *(part for pair in pairs for part in pair))
    return list(ids)


async def amend(courier: Courier, job_id: str, payload: str) -> None:
    """Give an ended job other arguments, for its next requeue."""
    await decided(courier, "amend", job_id, payload)


async def depend(courier: Courier, child_id: str, edges: Sequence[Edge]) -> None:
    """Have a job that has not joined the queue yet wait for more parents."""
    await decided(courier, "depend", child_id, encode(edges_as_rows(edges)))
