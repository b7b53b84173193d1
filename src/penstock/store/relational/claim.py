"""Leasing jobs: tenants take turns, and within a tenant the lowest rank goes first."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from heapq import heapify, heappop, heapreplace
from itertools import islice, takewhile
from typing import Any

from penstock.model.job import PRIORITY_STEP_MS, Lease
from penstock.store.contract import Claim, Claimed
from penstock.store.relational.expire import expire
from penstock.store.relational.gates import Gates, Lane
from penstock.store.relational.order import stage_ordered
from penstock.store.relational.transaction import Transaction

Seq = int | str
"""What a dialect names a job by, while it is being claimed."""

Candidate = tuple[int, int, Seq]
"""A job that may be leased: its rank, what orders jobs of one rank, and its name."""

Pick = tuple[Seq, str, bool]
"""A job to lease: its seq, its type, and whether it starts at once."""

MAX_LANES = 512
MAX_VISITS = 4_096
MIN_CHUNK = 16
STAGE_FIRST = 200
"""How many due jobs a claim queues at least, so that the most urgent of them is among them."""


class Turns:
    """Whose turn it was, so that tenants alternate across claims."""

    __slots__ = ("last_tenant", "walked_to")

    def __init__(self) -> None:
        self.last_tenant = ""
        self.walked_to: Lane | None = None


class Claims(ABC):
    """Grants leases, tenants in turn."""

    def __init__(self, turns: Turns | None = None) -> None:
        self._turns = turns or Turns()

    @abstractmethod
    def candidates(
        self, tx: Transaction, lane: Lane, claim: Claim, chunk: int
    ) -> Iterator[Candidate]:
        """A lane's jobs by rank, each once, fetched in chunks as they are asked for."""

    @abstractmethod
    def lease(
        self, tx: Transaction, claim: Claim, seqs: list[Seq], lease_ms: int, start: bool
    ) -> Mapping[Seq, Lease]:
        """Lease those of the jobs that are still queued, and release the keys that end with it."""

    def lanes_after(self, tx: Transaction, start: Lane | None) -> Iterator[Lane]:
        """Every lane behind one of them, or all."""
        lane = following(tx, start)
        while lane is not None:
            yield lane
            lane = following(tx, lane)

    def claim(self, tx: Transaction, claim: Claim) -> Claimed:
        """Stage and expire what fell due, then lease up to the limit."""
        expire(tx, STAGE_FIRST)
        stage(tx, max(STAGE_FIRST, claim.limit))
        gates = Gates(tx, claim)
        chosen = self._choose(tx, self._lanes(tx, claim, gates), claim, gates)
        leases: dict[Seq, Lease] = {}
        for group in _groups(chosen, claim):
            leases |= self.lease(tx, claim, *group)
        # One that was cancelled and requeued while we looked may have been chosen twice.
        in_turn = [leases.pop(seq) for seq, _, _ in chosen if seq in leases]
        slots = gates.write(in_turn)
        return Claimed(in_turn, _ask_again_in(tx, gates), slots)

    def _lanes(self, tx: Transaction, claim: Claim, gates: Gates) -> list[Lane]:
        """The lanes to choose from; where there are too many, each claim walks on from the last."""
        found: list[Lane] = []
        for visited, lane in enumerate(self._round(tx, self._turns.walked_to), 1):
            if _wanted(lane, claim) and gates.open(lane):
                found.append(lane)
            if len(found) == MAX_LANES or visited == MAX_VISITS:
                self._turns.walked_to = lane
                return found
        self._turns.walked_to = None
        return found

    def _round(self, tx: Transaction, start: Lane | None) -> Iterator[Lane]:
        """Every lane once, beginning behind one of them and going round."""
        yield from self.lanes_after(tx, start)
        if start is not None:
            yield from takewhile(lambda lane: lane <= start, self.lanes_after(tx, None))

    def _choose(self, tx: Transaction, lanes: list[Lane], claim: Claim, gates: Gates) -> list[Pick]:
        """What to lease, in the order it should start."""
        if len(lanes) == 1 and gates.quiet:
            return self._first_of(tx, lanes[0], claim)
        by_tenant: dict[str, list[Lane]] = {}
        for lane in lanes:
            by_tenant.setdefault(lane[1], []).append(lane)
        chunk = max(MIN_CHUNK, claim.limit // max(1, len(lanes)))
        order = sorted(by_tenant, key=lambda tenant: (tenant <= self._turns.last_tenant, tenant))
        # Whose turn does not come is not looked at: there may be hundreds.
        turns: Iterable[_Tenant] = (
            _Tenant(tenant, {x: self.candidates(tx, x, claim, chunk) for x in by_tenant[tenant]})
            for tenant in order
        )
        picked: list[Pick] = []
        while len(picked) < claim.limit:
            left: list[_Tenant] = []
            for tenant in turns:
                pick = tenant.next(gates)
                if pick is None:
                    continue
                left.append(tenant)
                picked.append(pick)
                self._turns.last_tenant = tenant.name
                if len(picked) == claim.limit:
                    break
            if not left:
                break
            turns = left
        return picked

    def _first_of(self, tx: Transaction, lane: Lane, claim: Claim) -> list[Pick]:
        """One lane and nothing in its way: no turns to take."""
        most = claim.most(lane[2])
        first = islice(self.candidates(tx, lane, claim, max(1, most)), most)
        return [(seq, lane[2], place < claim.start) for place, (*_, seq) in enumerate(first)]


class _Tenant:
    """One tenant's lanes as one line, the lowest rank first."""

    def __init__(self, name: str, lanes: Mapping[Lane, Iterator[Candidate]]) -> None:
        self.name = name
        self._heads = [
            (*first, lane, rest) for lane, rest in lanes.items() if (first := next(rest, None))
        ]
        heapify(self._heads)

    def next(self, gates: Gates) -> Pick | None:
        """The next job that may be leased; a lane whose limit is full is left out."""
        while self._heads:
            _, _, seq, lane, rest = self._heads[0]
            starts = gates.admit(lane)
            following = None if starts is None else next(rest, None)
            if following is None:
                heappop(self._heads)
            else:
                heapreplace(self._heads, (*following, lane, rest))
            if starts is not None:
                return seq, lane[2], starts
        return None


def stage(tx: Transaction, limit: int) -> int:
    """Queue waiting jobs that fell due."""
    due = tx.value("next_due")
    if due is None or due > tx.now:
        return 0
    tx.changed = True
    queued = tx.run("stage", {"now": tx.now, "limit": limit, "priority_weight": PRIORITY_STEP_MS})
    return queued + stage_ordered(tx, limit)


def following(tx: Transaction, lane: Lane | None) -> Lane | None:
    """Return the lane behind another, or the first."""
    found: Any = tx.row("first_lane") if lane is None else tx.row("next_lane", lane)
    if found is None or found[3] is not None:
        return found  # type: ignore[no-any-return]
    # A process of an older version is still at work: it enqueues without a limit key.
    tx.run("adopt_lane", found[:3])
    tx.changed = True
    return (*found[:3], "")


def _wanted(lane: Lane, claim: Claim) -> bool:
    queue, _, type_, _ = lane
    return (claim.queues is None or queue in claim.queues) and type_ in claim.types


def _groups(chosen: list[Pick], claim: Claim) -> Iterator[tuple[list[Seq], int, bool]]:
    """Seqs that share a lease length and a start mark, so that one statement leases them."""
    groups: dict[tuple[int, bool], list[Seq]] = {}
    for seq, type_, starts in chosen:
        lease_ms = claim.type_lease_ms.get(type_, claim.lease_ms)
        groups.setdefault((lease_ms, starts), []).append(seq)
    for (lease_ms, starts), seqs in groups.items():
        yield seqs, lease_ms, starts


def _ask_again_in(tx: Transaction, gates: Gates) -> int | None:
    due = tx.value("next_due")
    waits = [] if due is None else [max(0, due - tx.now)]
    if gates.retry_in_ms is not None:
        waits.append(gates.retry_in_ms)
    return min(waits, default=None)
