"""Counters since the beginning: whole days, and of today what has been counted so far."""

from collections import defaultdict

from penstock.store.contract.rollups import (
    DAY_MS,
    FINE_MS,
    HOUR_MS,
    MINUTE_MS,
    Figure,
    step_at,
)
from penstock.store.relational.transaction import Transaction

Sums = dict[tuple[str, str, str], float]

LATE_MS = 2 * MINUTE_MS
"""A count may be committed so long after its time, and is folded then."""


class Totals:
    """Reads them. Past days do not change any more: their sum is kept, and each adds to it once."""

    def __init__(self) -> None:
        self._past: tuple[int, Sums] = (0, {})

    def read(self, tx: Transaction) -> list[Figure]:
        """Type, queue, name and value of every counter.

        Coarse steps are read as far as the last roll-up made them whole, and finer ones from
        there on, so that nothing is left out, counted twice or written.
        """
        folded_to = min(tx.value("rolled_up_at") or 0, tx.now)
        this_minute = step_at(max(0, folded_to - LATE_MS), MINUTE_MS)
        this_hour = step_at(this_minute, HOUR_MS)
        today = step_at(this_hour, DAY_MS)
        steps = {
            "hour": HOUR_MS,
            "minute": MINUTE_MS,
            "fine": FINE_MS,
            "today": today,
            "this_hour": this_hour,
            "this_minute": this_minute,
        }
        sums: Sums = defaultdict(float, self._until(tx, today))
        for type_, queue, name, value in tx.rows("recent_totals", steps):
            sums[type_, queue, name] += value
        return [(*named, value) for named, value in sorted(sums.items())]

    def _until(self, tx: Transaction, today: int) -> Sums:
        since, known = self._past
        if since == today:
            return known
        if since > today:  # the clock was put back
            since, known = 0, {}
        sums: Sums = defaultdict(float, known)
        days = {"day": DAY_MS, "since": since, "today": today}
        for type_, queue, name, value in tx.rows("past_totals", days):
            sums[type_, queue, name] += value
        self._past = today, sums
        return sums
