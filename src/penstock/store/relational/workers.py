"""The register of workers in SQL."""

from collections import Counter

from msgspec.json import decode, encode
from msgspec.structs import asdict

from penstock.store.contract import Beat, WorkerInfo
from penstock.store.contract.upkeep import COUNTED_TO, FORGET_AFTER_MS
from penstock.store.relational.transaction import Database, Transaction


def write_beat(tx: Transaction, beat: Beat) -> None:
    """Write or refresh a worker's row."""
    row = asdict(beat) | {
        "queues": None if beat.queues is None else encode(beat.queues).decode(),
        "types": encode(beat.types).decode(),
        "now": tx.now,
    }
    tx.run("beat", row)


def forget(tx: Transaction, owner: str) -> None:
    """Remove a worker that stopped, and those nobody heard of for an hour."""
    tx.run("forget_worker", (owner,))
    tx.run("forget_stale_workers", (tx.now - FORGET_AFTER_MS,))


def known(tx: Transaction) -> list[WorkerInfo]:
    """All known workers, the freshest first."""
    names = WorkerInfo.__struct_fields__[:-1]
    found = []
    for row in tx.rows("workers"):
        fields = dict(zip(names, row, strict=True))
        fields["queues"] = None if fields["queues"] is None else tuple(decode(fields["queues"]))
        fields["types"] = tuple(decode(fields["types"]))
        found.append(WorkerInfo(**fields, heartbeat_age_ms=tx.now - fields["heartbeat_at"]))
    return found


def waiting_types(tx: Transaction) -> dict[str, int]:
    """Types with queued jobs, and how many, counted up to a thousand each."""
    return dict(tx.rows("waiting_types", {"most": COUNTED_TO}))


def running_types(tx: Transaction) -> dict[str, int]:
    """Types with jobs under a lease, and how many."""
    found: Counter[str] = Counter()
    for _, _, _, type_, _, leases, _ in tx.rows("leased_lanes"):
        found[type_] += leases
    return dict(found)


class RelationalWorkers:
    """`Workers` in SQL."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def beat(self, beat: Beat) -> None:
        """Write or refresh a worker's row."""
        self._db.write_now(lambda tx: write_beat(tx, beat))

    async def forget(self, owner: str) -> None:
        """Remove a worker that stopped."""
        await self._db.write(lambda tx: forget(tx, owner))

    async def list(self) -> list[WorkerInfo]:
        """All known workers, the freshest first."""
        return await self._db.read(known)

    async def waiting_types(self) -> dict[str, int]:
        """Types with queued jobs, and how many."""
        return await self._db.read(waiting_types)

    async def running_types(self) -> dict[str, int]:
        """Types with jobs under a lease, and how many."""
        return await self._db.read(running_types)
