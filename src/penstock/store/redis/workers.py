"""The register of workers on Redis."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from msgspec.json import Decoder
from msgspec.structs import asdict

from penstock.store.contract import Beat, WorkerInfo
from penstock.store.contract.workers import COUNTED_TO, FORGET_AFTER_MS
from penstock.store.redis.courier import Courier
from penstock.store.redis.errors import encoded
from penstock.store.redis.keys import decode_lane

_beats: Decoder[Beat] = Decoder(Beat)


class RedisWorkers:
    """`Workers` on Redis."""

    def __init__(self, courier: Courier) -> None:
        self._courier = courier

    def beat(self, beat: Beat) -> None:
        """Write or refresh a worker's row."""
        self._courier.call_now("beat", beat.owner, encoded(beat))

    async def forget(self, owner: str) -> None:
        """Remove a worker that stopped."""
        await self._courier.call("forget_worker", owner, FORGET_AFTER_MS)

    async def list(self) -> list[WorkerInfo]:
        """All known workers, the freshest first."""
        return known(*await self._courier.call("list_workers"))

    async def waiting_types(self) -> dict[str, int]:
        """Types with queued jobs, and how many."""
        depths: dict[str, int] = {}
        for lane, depth in await self._courier.call("waiting_types"):
            type_ = decode_lane(lane)[2]
            depths[type_] = min(COUNTED_TO, depths.get(type_, 0) + int(depth))
        return depths

    async def running_types(self) -> dict[str, int]:
        """Types with jobs under a lease, and how many."""
        found: Counter[str] = Counter()
        for lane, leases in await self._courier.call("running_types"):
            found[decode_lane(lane)[2]] += int(leases)
        return dict(found)


def known(now: bytes, rows: Sequence[Sequence[Any]]) -> list[WorkerInfo]:
    """Workers from what `lua/list_workers.lua` answers."""
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
