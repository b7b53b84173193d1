"""Counters since the beginning: a sum that every roll-up brings forward, and what came after it."""

from collections.abc import Iterator

from msgspec.json import encode

from penstock.store.contract.rollups import DAY_MS, FINE_MS, HOUR_MS, MINUTE_MS, Figure, step_at
from penstock.store.relational.transaction import Transaction

LATE_MS = 2 * MINUTE_MS
"""A count may be committed so long after its time, and is folded then."""

DAYS_AT_ONCE = 30
"""So many days are added to the sum at once, where it begins with a long history."""

Piece = tuple[int, int, int]
"""The steps of one resolution from one time until another."""

FOR_EVER = 2**62
SUM: Piece = (0, 0, 1)
"""Where the sum is: one step of a resolution that no other has."""


def totals(tx: Transaction) -> list[Figure]:
    """Type, queue, name and value of every counter, by name."""
    since, until = _summed_to(tx), _folded_until(tx)
    asked = [SUM, *pieces(since, until), (FINE_MS, until, FOR_EVER)]
    return tx.rows("totals", {"pieces": encode(asked).decode()})


def sum_up(tx: Transaction) -> int:
    """Add to the sum what no roll-up will change any more; how far it reaches then."""
    since, until = _summed_to(tx), _folded_until(tx)
    first = tx.value("first_day_after", {"day": DAY_MS, "since": since})
    if first is not None:
        until = min(until, first + DAYS_AT_ONCE * DAY_MS)
    tx.run("add_to_sum", {"pieces": encode([*pieces(since, until)]).decode()})
    tx.run("remember_sum", (until,))
    return until


def pieces(since: int, until: int) -> Iterator[Piece]:
    """The fewest steps that cover a time, both ends on a minute: finer ones only at its ends."""
    hour = min(until, -step_at(-since, HOUR_MS))
    day = max(hour, min(step_at(until, HOUR_MS), -step_at(-hour, DAY_MS)))
    last_day = max(day, step_at(until, DAY_MS))
    last_hour = max(last_day, step_at(until, HOUR_MS))
    for piece in (
        (MINUTE_MS, since, hour),
        (HOUR_MS, hour, day),
        (DAY_MS, day, last_day),
        (HOUR_MS, last_day, last_hour),
        (MINUTE_MS, last_hour, until),
    ):
        if piece[1] < piece[2]:
            yield piece


def _folded_until(tx: Transaction) -> int:
    """The minute before which all steps are whole, and never before the end of the sum."""
    folded_to = min(tx.value("rolled_up_at") or 0, tx.now)
    return max(_summed_to(tx), step_at(max(0, folded_to - LATE_MS), MINUTE_MS))


def _summed_to(tx: Transaction) -> int:
    return tx.value("summed_to") or 0
