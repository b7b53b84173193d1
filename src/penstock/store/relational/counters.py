"""Counters gathered during an operation and written as a handful of upserts."""

from collections import Counter
from collections.abc import Sequence

from msgspec.json import encode

from penstock.model.histogram import step_of
from penstock.model.settlement import Buried, Completed, HandedBack, Settlement
from penstock.store.contract.rollups import FINE_MS, attempts_name, step_at
from penstock.store.relational.transaction import Transaction

_TERMINAL = frozenset({"completed", "cancelled", "dead"})


class Counters:
    """Sums per type, queue and name."""

    __slots__ = ("_sums",)

    def __init__(self) -> None:
        self._sums: Counter[tuple[str, str, str]] = Counter()

    def add(self, type_: str, queue: str, name: str, by: int = 1) -> None:
        """Count something."""
        if by:
            self._sums[type_, queue, name] += by

    def end(self, type_: str, queue: str, name: str, attempts: int) -> None:
        """Count a job that ended otherwise than by its own execution."""
        self.add(type_, queue, name)
        self.add(type_, queue, attempts_name(attempts))

    def end_job(self, tx: Transaction, job_id: str, name: str) -> None:
        """Count a waiting job that ended, of which only the id is at hand."""
        for type_, queue, attempts in tx.rows("counted_as", (job_id,)):
            self.end(type_, queue, name, attempts)

    def ended(self, settlements: Sequence[Settlement], name: str) -> None:
        """Count executions that ended alike, with their durations and waits."""
        for (type_, queue), alike in _by_lane(settlements).items():
            self.add(type_, queue, name, len(alike))
            self.add(type_, queue, "started", sum(map(_ran, alike)))
            self.add(type_, queue, "duration_sum", sum([s.duration_ms for s in alike]))
            self.add(type_, queue, "wait_sum", sum([s.wait_ms for s in alike]))
            for ms, count in Counter([s.duration_ms for s in alike]).items():
                self.add(type_, queue, f"duration:{step_of(ms)}", count)
            for ms, count in Counter([s.wait_ms for s in alike]).items():
                self.add(type_, queue, f"wait:{step_of(ms)}", count)
            if name in _TERMINAL:
                for attempts, count in Counter(map(_attempts, alike)).items():
                    self.add(type_, queue, attempts_name(attempts), count)

    def document(self) -> str:
        """The sums, as `[[type, queue, name, by], …]`."""
        return encode([(*name, by) for name, by in self._sums.items()]).decode()

    def write(self, tx: Transaction) -> None:
        """Add the sums to the current step of ten seconds."""
        if not self._sums:
            return
        bucket = step_at(tx.now, FINE_MS)
        tx.run("add_metrics", {"step": FINE_MS, "bucket": bucket, "sums": self.document()})


def _by_lane(settlements: Sequence[Settlement]) -> dict[tuple[str, str], list[Settlement]]:
    lanes: dict[tuple[str, str], list[Settlement]] = {}
    for settlement in settlements:
        lanes.setdefault((settlement.type, settlement.queue), []).append(settlement)
    return lanes


def _ran(settlement: Settlement) -> bool:
    return not isinstance(settlement, HandedBack) or settlement.started


def _attempts(settlement: Settlement) -> int:
    """How many the job had taken when this execution ended it."""
    return settlement.attempts + isinstance(settlement, Completed | Buried)
