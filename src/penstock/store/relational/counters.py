"""Counters gathered during an operation and written as a handful of upserts."""

from collections import Counter
from collections.abc import Sequence

from msgspec.json import encode

from penstock.model.histogram import step_of
from penstock.model.settlement import Settlement
from penstock.store.contract.rollups import FINE_MS, step_at
from penstock.store.relational.transaction import Transaction


class Counters:
    """Sums per type, queue and name."""

    __slots__ = ("_sums",)

    def __init__(self) -> None:
        self._sums: Counter[tuple[str, str, str]] = Counter()

    def add(self, type_: str, queue: str, name: str, by: int = 1) -> None:
        """Count something."""
        self._sums[type_, queue, name] += by

    def add_job(self, tx: Transaction, job_id: str, name: str) -> None:
        """Count something that happened to a waiting job, of which only the id is at hand."""
        for type_, queue in tx.rows("type_and_queue", (job_id,)):
            self.add(type_, queue, name)

    def ended(self, settlements: Sequence[Settlement], name: str) -> None:
        """Count executions that ended alike, with their durations and waits."""
        lanes: dict[tuple[str, str], list[Settlement]] = {}
        for s in settlements:
            lanes.setdefault((s.type, s.queue), []).append(s)
        for (type_, queue), alike in lanes.items():
            self.add(type_, queue, name, len(alike))
            for ms, count in Counter([s.duration_ms for s in alike]).items():
                self.add(type_, queue, f"duration:{step_of(ms)}", count)
            for ms, count in Counter([s.wait_ms for s in alike]).items():
                self.add(type_, queue, f"wait:{step_of(ms)}", count)

    def document(self) -> str:
        """The sums, as `[[type, queue, name, by], …]`."""
        return encode([(*name, by) for name, by in self._sums.items()]).decode()

    def write(self, tx: Transaction) -> None:
        """Add the sums to the current step of ten seconds."""
        if not self._sums:
            return
        bucket = step_at(tx.now, FINE_MS)
        tx.run("add_metrics", {"step": FINE_MS, "bucket": bucket, "sums": self.document()})
