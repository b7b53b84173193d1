"""Leasing jobs: tenants take turns, and within a tenant the lowest rank goes first."""

from collections.abc import Iterator
from heapq import merge
from itertools import count, islice
from typing import Any

from msgspec.json import Decoder, encode

from penstock.model.job import KeyScope, Lease
from penstock.model.rank import PRIORITY_STEP_MS
from penstock.store.contract import Claim, Claimed
from penstock.store.sqlite.expire import expire
from penstock.store.sqlite.transaction import Transaction, readable

Lane = tuple[str, str, str]

MAX_LANES = 512
MIN_CHUNK = 16
STAGE_FIRST = 200


class Granted(Lease, frozen=True):
    """A lease as its row is read."""

    seq: int
    key_scope: str | None


_ranked: Decoder[list[tuple[int, int]]] = Decoder(list[tuple[int, int]])
_leases: Decoder[list[Granted]] = Decoder(list[Granted])


class Claims:
    """Grants leases; remembers whose turn it was, so that tenants alternate across claims."""

    def __init__(self) -> None:
        self._last_tenant = ""
        self._walked_to: Lane | None = None

    def claim(self, tx: Transaction, claim: Claim) -> Claimed:
        """Stage and expire what fell due, then lease up to the limit."""
        expire(tx, STAGE_FIRST)
        stage(tx, STAGE_FIRST)
        chosen = self._choose(tx, self._lanes(tx, claim), claim)
        leases: dict[int, Lease] = {
            lease.seq: lease
            for group in _groups(chosen, claim)
            for lease in _lease(tx, claim, *group)
        }
        in_turn = [leases[seq] for _, seq, _ in chosen if seq in leases]
        return Claimed(in_turn, _next_due_in(tx))

    def _lanes(self, tx: Transaction, claim: Claim) -> list[Lane]:
        """The lanes to choose from; where there are too many, each claim walks on from the last."""
        wanted = (lane for lane in lanes_after(tx, self._walked_to) if _wanted(lane, claim))
        found = list(islice(wanted, MAX_LANES))
        self._walked_to = found[-1] if len(found) == MAX_LANES else None
        return found

    def _choose(
        self, tx: Transaction, lanes: list[Lane], claim: Claim
    ) -> list[tuple[int, int, str]]:
        """The seqs to lease, in the order they should start, with their types."""
        tenants: dict[str, list[Lane]] = {}
        for lane in lanes:
            tenants.setdefault(lane[1], []).append(lane)
        order = sorted(tenants, key=lambda tenant: (tenant <= self._last_tenant, tenant))
        chunk = max(MIN_CHUNK, claim.limit // max(1, len(lanes)))
        waiting: list[Iterator[tuple[int, int, str]]] = [
            merge(*(_candidates(tx, lane, claim, chunk) for lane in tenants[t])) for t in order
        ]
        picked: list[tuple[int, int, str]] = []
        for turn, candidate in islice(_take_turns(waiting), claim.limit):
            picked.append(candidate)
            self._last_tenant = order[turn]
        return picked


def stage(tx: Transaction, limit: int) -> int:
    """Queue waiting jobs that fell due."""
    due = tx.value("next_due")
    if due is None or due > tx.now:
        return 0
    tx.changed = True
    tx.run("stage", {"now": tx.now, "limit": limit, "priority_weight": PRIORITY_STEP_MS})
    return tx.connection.changes()


def lanes(tx: Transaction) -> Iterator[Lane]:
    """Every (queue, tenant, type) with queued jobs, by jumping from one to the next."""
    lane: Lane | None = tx.row("first_lane")
    while lane is not None:
        yield lane
        lane = tx.row("next_lane", lane)


def lanes_after(tx: Transaction, start: Lane | None) -> Iterator[Lane]:
    """Every lane once, beginning behind one of them and going round."""
    if start is None:
        yield from lanes(tx)
        return
    lane: Lane | None = tx.row("next_lane", start)
    while lane is not None:
        yield lane
        lane = tx.row("next_lane", lane)
    for lane in lanes(tx):
        if lane > start:
            return
        yield lane


def _wanted(lane: Lane, claim: Claim) -> bool:
    queue, _, type_ = lane
    return (claim.queues is None or queue in claim.queues) and type_ in claim.types


def _candidates(
    tx: Transaction, lane: Lane, claim: Claim, chunk: int
) -> Iterator[tuple[int, int, str]]:
    """A lane's jobs by rank, fetched in chunks as they are asked for."""
    name, bindings = "lane", tuple[str | int, ...](lane)
    if claim.max_priority is not None:
        name, bindings = "urgent_lane", (*lane, claim.max_priority)
    for offset in count(0, chunk):
        ranked = _ranked.decode(tx.value(name, (*bindings, chunk, offset)))
        for rank, seq in ranked:
            yield rank, seq, lane[2]
        if len(ranked) < chunk:
            return


def _take_turns(
    waiting: list[Iterator[tuple[int, int, str]]],
) -> Iterator[tuple[int, tuple[int, int, str]]]:
    """One from each in turn until all are empty."""
    turns = list(enumerate(waiting))
    while turns:
        remaining = []
        for turn, candidates in turns:
            candidate = next(candidates, None)
            if candidate is not None:
                yield turn, candidate
                remaining.append((turn, candidates))
        turns = remaining


def _groups(
    chosen: list[tuple[int, int, str]], claim: Claim
) -> Iterator[tuple[list[int], int, bool]]:
    """Seqs that share a lease length and a start mark, so that one statement leases them."""
    groups: dict[tuple[int, bool], list[int]] = {}
    for position, (_, seq, type_) in enumerate(chosen):
        lease_ms = claim.type_lease_ms.get(type_, claim.lease_ms)
        groups.setdefault((lease_ms, position < claim.start), []).append(seq)
    for (lease_ms, start), seqs in groups.items():
        yield seqs, lease_ms, start


def _lease(
    tx: Transaction, claim: Claim, seqs: list[int], lease_ms: int, start: bool
) -> list["Granted"]:
    row = {
        "seqs": encode(seqs).decode(),
        "owner": claim.owner,
        "until": tx.monotonic + lease_ms,
        "now": tx.now,
        "start": start,
    }
    tx.run("claim", row)
    granted = _granted(tx, row)
    keyed = [lease.id for lease in granted if lease.key_scope == KeyScope.WHILE_PENDING]
    if keyed:
        tx.run("release_keys_at_claim", (encode(keyed).decode(),))
    return granted


def _granted(tx: Transaction, row: dict[str, Any]) -> list["Granted"]:
    try:
        return _leases.decode(tx.value("granted", row))
    except ValueError:  # a payload edited by hand is no text; it must not cost the others
        rows = tx.rows("granted_one_by_one", row)
        return [_readable(list(fields)) for fields in rows]


def _readable(fields: list[Any]) -> Granted:
    fields[5] = readable(fields[5])
    return Granted(*fields)


def _next_due_in(tx: Transaction) -> int | None:
    due = tx.value("next_due")
    return None if due is None else max(0, due - tx.now)
