"""Counters gathered during an operation and written as a handful of upserts."""

from collections import Counter

from penstock.model.histogram import step_of
from penstock.store.sqlite.transaction import Transaction

FINE_MS = 10_000


class Counters:
    """Sums per type, queue and name."""

    __slots__ = ("_sums",)

    def __init__(self) -> None:
        self._sums: Counter[tuple[str, str, str]] = Counter()

    def add(self, type_: str, queue: str, name: str, by: int = 1) -> None:
        """Count something."""
        self._sums[type_, queue, name] += by

    def time(self, type_: str, queue: str, duration_ms: int, wait_ms: int) -> None:
        """Count an execution's duration and the wait before it."""
        self._sums[type_, queue, f"duration:{step_of(duration_ms)}"] += 1
        self._sums[type_, queue, f"wait:{step_of(wait_ms)}"] += 1

    def write(self, tx: Transaction) -> None:
        """Add the sums to the current step of ten seconds."""
        bucket = tx.now // FINE_MS * FINE_MS
        tx.many("add_metric", [(FINE_MS, bucket, *name, by) for name, by in self._sums.items()])
