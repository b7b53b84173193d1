"""The leader's passes and the register of workers on Redis."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.json import Decoder, decode
from msgspec.structs import asdict

from penstock.model.states import Status
from penstock.store.contract import Beat, Fate, Pruned, Rescued, Retention, WorkerInfo
from penstock.store.contract.upkeep import COUNTED_TO, FORGET_AFTER_MS
from penstock.store.redis.changes import erase_changes
from penstock.store.redis.errors import encoded
from penstock.store.redis.keys import decode_lane
from penstock.store.redis.release import sweep
from penstock.store.redis.scripts import Scripts

_beats: Decoder[Beat] = Decoder(Beat)


class RedisWorkers:
    """`Workers` on Redis."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    def beat(self, beat: Beat) -> None:
        """Write or refresh a worker's row."""
        self._scripts.call_now("beat", beat.owner, encoded(beat))

    async def forget(self, owner: str) -> None:
        """Remove a worker that stopped."""
        await self._scripts.call("forget_worker", owner, FORGET_AFTER_MS)

    async def list(self) -> list[WorkerInfo]:
        """Return all known workers, the freshest first."""
        return known(*await self._scripts.call("list_workers"))

    async def waiting_types(self) -> dict[str, int]:
        """Types with queued jobs, and how many."""
        depths: dict[str, int] = {}
        for lane, depth in await self._scripts.call("waiting_types"):
            type_ = decode_lane(lane)[2]
            depths[type_] = min(COUNTED_TO, depths.get(type_, 0) + int(depth))
        return depths

    async def running_types(self) -> dict[str, int]:
        """Types with jobs under a lease, and how many."""
        found: Counter[str] = Counter()
        for lane, leases in await self._scripts.call("running_types"):
            found[decode_lane(lane)[2]] += int(leases)
        return dict(found)


def known(now: bytes, rows: Sequence[Sequence[Any]]) -> list[WorkerInfo]:
    """Workers from what `lua/scripts/list_workers.lua` answers."""
    found = [
        WorkerInfo(
            **asdict(_beats.decode(told)),
            started_at=int(started_at),
            heartbeat_at=int(heartbeat_at),
            heartbeat_age_ms=int(now) - int(heartbeat_at),
        )
        for told, started_at, heartbeat_at in rows
    ]
    found.sort(key=lambda worker: (-worker.heartbeat_at, worker.owner))
    return found


async def prune(scripts: Scripts, retention: Retention, limit: int) -> Pruned:
    """Delete ended jobs past their retention, with their history, oldest first."""
    deleted = 0
    more = False
    for status, keep_ms in retention.keep_ms.items():
        spared = await _spared(scripts, status, retention.keep_last)
        found = int(await scripts.call("prune", status.value, keep_ms, limit, *spared))
        deleted += found
        more = more or found == limit
    now, own = await _own_past(scripts, retention, limit)
    removed = int(await scripts.call("prune_jobs", now + 1, *own)) if own else 0
    deleted += removed
    more = more or removed == limit
    purged = await _prune_letters(scripts, retention, limit)
    deleted += purged
    more = more or purged == limit
    await scripts.call("tidy", limit)
    return Pruned(deleted, more)


async def _own_past(scripts: Scripts, retention: Retention, limit: int) -> tuple[int, list[bytes]]:
    """The time, and jobs that said themselves that they are to be removed by now."""
    own = f"{scripts.prefix}ended:own"
    now, [any_own] = await scripts.look(("EXISTS", own))
    if not any_own or not retention.keep_ms:
        return now, []
    [ids] = await scripts.ask(("ZRANGEBYSCORE", own, "-inf", now, "LIMIT", 0, limit))
    return now, ids


async def _prune_letters(scripts: Scripts, retention: Retention, limit: int) -> int:
    """Delete dead letters past the retention of closed ones, with their jobs; say how many."""
    spared = await _spared(scripts, Status.DEAD_LETTER, retention.keep_last)
    purged = 0
    looked_at = b"-1"
    while looked_at and purged < limit:
        asked = (retention.keep_closed_ms, looked_at, limit - purged, *spared)
        looked_at, found = await scripts.call("prune_letters", *asked)
        purged += found
    return purged


async def _spared(scripts: Scripts, status: Status, keep_last: Mapping[str, int]) -> list[bytes]:
    """The last jobs of each type that are kept whatever their age."""
    left = Counter(keep_last)
    spared: dict[bytes, None] = {}
    looked_at = b"0"
    while looked_at and any(count > 0 for count in left.values()):
        asked = (status.value, looked_at, *keep_last)
        looked_at, rows = await scripts.call("last_of_types", *asked)
        for job_id, type_ in rows:
            name = type_.decode()
            if left[name] > 0 and job_id not in spared:
                left[name] -= 1
                spared[job_id] = None
    return list(spared)


class RedisUpkeep:
    """`Upkeep` on Redis."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def lead(self, role: str, owner: str, term_ms: int) -> bool:
        """Take or keep the leadership for a term."""
        return bool(await self._scripts.call("lead", role, owner, term_ms))

    async def resign(self, role: str, owner: str) -> None:
        """Give the leadership up at once."""
        await self._scripts.call("resign", role, owner)

    async def stage(self, limit: int = 1000) -> int:
        """Queue waiting jobs that fell due."""
        queued: int = await self._scripts.call("stage", limit)
        return queued

    async def expire(self, limit: int = 1000) -> list[str]:
        """Dead-letter waiting jobs past their expiry."""
        return [job_id.decode() for job_id in await self._scripts.call("expire", limit)]

    async def rescue(
        self, *, owner: str | None = None, max_rescues: int = 3, limit: int = 1000
    ) -> list[Rescued]:
        """Take away leases that ran out, or all leases of a dead owner."""
        taken = await self._scripts.call("rescue", owner or "", max_rescues, limit)
        rows = ([part.decode() for part in row] for row in taken)
        return [Rescued(job_id, type_, name, Fate(fate)) for job_id, type_, name, fate in rows]

    async def release(self, limit: int = 1000) -> int:
        """Close edges whose parent has ended."""
        return await sweep(self._scripts, limit)

    async def erase(self, ids: Sequence[str]) -> int:
        """Delete ended jobs and their dead letters at once."""
        if not ids:
            return 0
        erased = int(await self._scripts.call("erase", *ids))
        theirs = {*ids}
        await erase_changes(self._scripts, lambda change: change.job_id in theirs)
        return erased

    async def erase_keys(self, tenant_id: str) -> int:
        """Delete all unique keys of a tenant, page by page."""
        keys, erased, cursor = f"{self._scripts.prefix}keys", 0, b"0"
        while True:
            [[cursor, found]] = await self._scripts.ask(("HSCAN", keys, cursor, "COUNT", 1000))
            theirs = [field for field in found[::2] if decode(field)[0] == tenant_id]
            if theirs:
                gone, _ = await self._scripts.ask(
                    ("HDEL", keys, *theirs), ("ZREM", f"{keys}:expiring", *theirs)
                )
                erased += gone
            if int(cursor) == 0:
                return erased

    async def prune(self, retention: Retention, limit: int = 1000) -> Pruned:
        """Delete ended jobs past their retention."""
        return await prune(self._scripts, retention, limit)

    async def prunable(self, retention: Retention, limit: int = 1000) -> list[str]:
        """The ids of jobs past the retention of their status."""
        found: list[bytes] = []
        for status, keep_ms in retention.keep_ms.items():
            spared = await _spared(self._scripts, status, retention.keep_last)
            found += await self._scripts.call("prunable", status.value, keep_ms, limit, *spared)
        _, own = await _own_past(self._scripts, retention, limit)
        found += own
        return [job_id.decode() for job_id in found]

    async def prune_jobs(self, ids: Sequence[str], before: int) -> int:
        """Delete those of some jobs that ended before a time."""
        return int(await self._scripts.call("prune_jobs", before, *ids)) if ids else 0
