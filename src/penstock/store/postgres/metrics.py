"""Figures on PostgreSQL, where counters are gathered only when they are rolled up."""

from collections.abc import Sequence

from penstock.store.contract import QueueDepth
from penstock.store.contract.rollups import FINE_MS
from penstock.store.relational.metrics import RelationalMetrics, roll_up
from penstock.store.relational.transaction import Transaction


class PostgresMetrics(RelationalMetrics):
    """`Metrics` on PostgreSQL."""

    def fold(self, tx: Transaction, sampled: Sequence[QueueDepth]) -> int:
        """Gather what settles have appended, then roll up."""
        tx.lock("roll-up")
        tx.run("gather_counts", {"fine": FINE_MS})
        return roll_up(tx, sampled)
