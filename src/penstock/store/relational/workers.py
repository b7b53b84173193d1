"""The register of workers in SQL."""

from collections import Counter

from msgspec.json import decode, encode
from msgspec.structs import asdict

from penstock.store.contract import Beat, WorkerInfo
from penstock.store.contract.upkeep import COUNTED_TO, FORGET_AFTER_MS
from penstock.store.relational.transaction import StorePart, Transaction, reads, writes, writes_now


def known(tx: Transaction) -> list[WorkerInfo]:
    """Return all known workers, the freshest first."""
    names = WorkerInfo.__struct_fields__[:-1]
    found = []
    for row in tx.rows("workers"):
        fields = dict(zip(names, row, strict=True))
        fields["queues"] = None if fields["queues"] is None else tuple(decode(fields["queues"]))
        fields["types"] = tuple(decode(fields["types"]))
        fields["declared_queues"] = tuple(decode(fields["declared_queues"]))
        found.append(WorkerInfo(**fields, heartbeat_age_ms=tx.now - fields["heartbeat_at"]))
    return found


class RelationalWorkers(StorePart):
    """`Workers` in SQL."""

    @writes_now
    def beat(self, tx: Transaction, beat: Beat) -> None:
        """Write or refresh a worker's row."""
        row = asdict(beat) | {
            "now": tx.now,
            "queues": None if beat.queues is None else encode(beat.queues).decode(),
            "types": encode(beat.types).decode(),
            "declared_queues": encode(beat.declared_queues).decode(),
        }
        tx.run("beat", row)

    @writes
    def forget(self, tx: Transaction, owner: str) -> None:
        """Remove a worker that stopped, and those nobody heard of for an hour."""
        tx.run("forget_worker", (owner,))
        tx.run("forget_stale_workers", (tx.now - FORGET_AFTER_MS,))

    @reads
    def list(self, tx: Transaction) -> "list[WorkerInfo]":
        """Return all known workers, the freshest first."""
        return known(tx)

    @reads
    def waiting_types(self, tx: Transaction) -> dict[str, int]:
        """Types with queued jobs, and how many, counted up to a thousand each."""
        return dict(tx.rows("waiting_types", {"most": COUNTED_TO}))

    @reads
    def running_types(self, tx: Transaction) -> dict[str, int]:
        """Types with jobs under a lease, and how many."""
        found: Counter[str] = Counter()
        for _, _, _, type_, _, leases, _ in tx.rows("leased_lanes"):
            found[type_] += leases
        return dict(found)
