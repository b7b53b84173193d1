"""Deleting what has ended and is no longer wanted."""

from collections import Counter
from collections.abc import Mapping

from penstock.model.states import Status
from penstock.store.contract import Pruned, Retention
from penstock.store.redis.courier import Courier


async def prune(courier: Courier, retention: Retention, limit: int) -> Pruned:
    """Delete ended jobs past their retention, with their history, oldest first."""
    deleted = 0
    more = False
    for status, keep_ms in retention.keep_ms.items():
        spared = await _spared(courier, status, retention.keep_last)
        found = int(await courier.call("prune", status.value, keep_ms, limit, *spared))
        deleted += found
        more = more or found == limit
    purged = await _prune_letters(courier, retention, limit)
    deleted += purged
    more = more or purged == limit
    await courier.call("tidy", limit)
    return Pruned(deleted, more)


async def _prune_letters(courier: Courier, retention: Retention, limit: int) -> int:
    """Delete dead letters past the retention of closed ones, with their jobs; say how many."""
    spared = await _spared(courier, Status.DEAD_LETTER, retention.keep_last)
    purged = 0
    looked_at = b"-1"
    while looked_at and purged < limit:
        asked = (retention.keep_closed_ms, looked_at, limit - purged, *spared)
        looked_at, found = await courier.call("prune_letters", *asked)
        purged += found
    return purged


async def _spared(courier: Courier, status: Status, keep_last: Mapping[str, int]) -> list[bytes]:
    """The last jobs of each type that are kept whatever their age."""
    left = Counter(keep_last)
    spared: dict[bytes, None] = {}
    looked_at = b"0"
    while looked_at and any(count > 0 for count in left.values()):
        asked = (status.value, looked_at, *keep_last)
        looked_at, rows = await courier.call("last_of_types", *asked)
        for job_id, type_ in rows:
            name = type_.decode()
            if left[name] > 0 and job_id not in spared:
                left[name] -= 1
                spared[job_id] = None
    return list(spared)
