"""What the last walk over the lanes found, for when walking becomes slow.

A claim looks for lanes from the lowest rank up. Entries of jobs that were claimed before stay in
its index until vacuum removes them, and a transaction that somebody holds open keeps it from doing
so: then every claim steps over all of them. So when a walk takes long, the next claims go on in the
lanes it found, from where the last one got to, and walk again only so often that walks are a small
part of the time. Until then a job in a lane that had none, or one that came back with an old rank,
is not seen.
"""

import time
from collections.abc import Sequence
from typing import Any

from msgspec.json import decode, encode

from penstock.store.contract import Claim

SLOW_US = 2_000
HUNGRY_SHARE = 20
BUSY_SHARE = 200
MAX_SECONDS = 5.0

_Lane = tuple[str, str, str, str, int]


class Survey:
    """The lanes of the last slow walk, and where in each to go on.

    A claim that looks only there is `partial`.
    With a clock that a test moves, nothing seen before is `trusted`: its time does not pass.
    """

    def __init__(self, *, trusted: bool) -> None:
        self._trusted = trusted
        self._lanes: dict[_Lane, int] | None = None
        self._asked: tuple[Any, ...] | None = None
        self._walk_seconds = 0.0
        self._walked_at = 0.0
        self._due_at: float | None = None
        self._hungry = False
        self.partial = False

    @property
    def ask_again_in_ms(self) -> int | None:
        """When the next waiting job falls due, or a walk may find what was not seen."""
        times = [] if self._due_at is None else [self._due_at]
        if self._lanes is not None and self._hungry:
            times.append(self._walk_at)
        return max(0, round((min(times) - time.monotonic()) * 1000)) if times else None

    def forget(self) -> None:
        """Walk again next time."""
        self._lanes = None

    def known(self, claim: Claim) -> str | None:
        """The lanes to go on in; none when it is time to walk."""
        self.partial = False
        if self._lanes is None or self._asked != _question(claim):
            return None
        if time.monotonic() >= self._walk_at:
            return None
        self.partial = True
        names = ("queue", "tenant_id", "type", "limit_key", "priority", "from_rank")
        rows = [dict(zip(names, (*lane, rank), strict=True)) for lane, rank in self._lanes.items()]
        return encode(rows).decode()

    @property
    def _walk_at(self) -> float:
        share = HUNGRY_SHARE if self._hungry else BUSY_SHARE
        return self._walked_at + min(share * self._walk_seconds, MAX_SECONDS)

    def walked(self, claim: Claim, lanes: str | None, took_us: int, due_in_ms: int | None) -> None:
        """Take what a walk found, and how long it was."""
        now = time.monotonic()
        self._walked_at, self._walk_seconds = now, took_us / 1e6
        self._due_at = None if due_in_ms is None else now + due_in_ms / 1000
        self._asked = _question(claim)
        if took_us < SLOW_US or lanes is None or not self._trusted:
            self._lanes = None
        else:
            found = decode(lanes)
            self._lanes = {
                (f["queue"], f["tenant_id"], f["type"], f["limit_key"], f["priority"]): 0
                for f in found
            }

    def claimed(self, claim: Claim, rows: Sequence[tuple[Any, ...]]) -> None:
        """Go on behind what was leased."""
        self._hungry = len(rows) < claim.limit
        if self._lanes is None:
            return
        for row in rows:
            rank, type_, queue, priority = row[6], row[9], row[10], row[11]
            lane = (queue, row[22], type_, row[31] or "", priority)
            if rank > self._lanes.get(lane, 0):
                self._lanes[lane] = rank


def _question(claim: Claim) -> tuple[Any, ...]:
    return claim.types, claim.queues, claim.max_priority
