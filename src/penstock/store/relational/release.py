"""Dependencies: linking a job to its parents, and what the end of a parent means for it.

The look at the status of the parents locks them: none can end before the edge is committed.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.json import encode

from penstock.model.dependency import (
    Edge,
    EdgeKind,
    OnFailure,
    Outcome,
    decide,
    find_cycle,
    with_inputs,
)
from penstock.model.errors import DependencyCycle, IllegalTransition, ParentNotFound
from penstock.model.failure import Failure, orphaned
from penstock.model.not_found import JobNotFound
from penstock.model.states import Status
from penstock.store.relational import order
from penstock.store.relational.endings import Counters, keep_dead_letters, release_keys
from penstock.store.relational.transaction import Transaction

_WITH_RESULT = (EdgeKind.DATA, EdgeKind.CONDITIONAL)


class _Open(NamedTuple):
    child_id: str
    parent_id: str
    kind: str
    argument: str
    condition: str | None
    on_failure: str
    parent_status: str
    parent_result: str | None

    @property
    def identity(self) -> tuple[str, str, str, str]:
        return self.child_id, self.parent_id, self.kind, self.argument

    @property
    def edge(self) -> Edge:
        return Edge(
            parent_id=self.parent_id,
            kind=EdgeKind(self.kind),
            condition=self.condition,
            on_failure=OnFailure(self.on_failure),
        )

    def closes(self) -> Outcome:
        return decide(self.edge, Status(self.parent_status), self.parent_result)


def end(tx: Transaction, ids: Sequence[str]) -> None:
    """Jobs have ended: let go of their keys and their places, and release who waits for them."""
    if not ids:
        return
    release_keys(tx, list(ids))
    ahead = order.leave(tx, ids)
    if tx.value("any_open_edge") is None:
        return
    frontier = list(ids)
    while frontier:
        frontier = _close(tx, frontier, ahead)
        release_keys(tx, frontier)
        ahead = order.leave(tx, frontier) if frontier else {}


def link(tx: Transaction, edges: Mapping[str, Sequence[Edge]]) -> None:
    """Have new jobs wait for their parents; those that have ended already count at once."""
    parents = {edge.parent_id for several in edges.values() for edge in several}
    statuses = _statuses(tx, parents)
    cycle = find_cycle({c: [edge.parent_id for edge in es] for c, es in edges.items()})
    if cycle is not None:
        raise DependencyCycle(cycle)
    tx.many("insert_edge", [_row(tx, c, edge) for c, es in edges.items() for edge in es])
    ended = [p for p, status in statuses.items() if Status(status).terminal]
    frontier = ended
    while frontier:
        frontier = _close(tx, frontier, {})
        release_keys(tx, frontier)


def depend(tx: Transaction, child_id: str, edges: Sequence[Edge]) -> None:
    """Have a job that has not joined the queue yet wait for more parents."""
    tx.lock("edges")  # or two that wait for each other could both find no cycle
    found = tx.row("linkable", (child_id,))
    if found is None:
        raise JobNotFound(child_id)
    status, queued_at = found
    if status not in (Status.PENDING, Status.PAUSED) or queued_at is not None:
        raise IllegalTransition(status, "depend", child_id)
    known = set(tx.rows("edges_of", (child_id,)))
    new = [edge for edge in distinct(edges) if _identity(edge) not in known]
    _refuse_cycle(tx, child_id, new)
    tx.run("raise_waiting", (len(new), tx.now, child_id))
    link(tx, {child_id: new})
    tx.changed = True


def distinct(edges: Sequence[Edge]) -> list[Edge]:
    """The edges without repetitions."""
    return list({_identity(edge): edge for edge in edges}.values())


def sweep(tx: Transaction, limit: int) -> int:
    """Close edges whose parent has ended or is gone; there should never be one."""
    lost = tx.rows("lost_edges", (limit,))
    for child_id, parent_id, kind, argument in lost:
        row = (Outcome.SATISFIED.value, None, tx.now, child_id, parent_id, kind, argument)
        tx.run("close_edge", row)
        tx.run("lower_waiting", (1, tx.now, child_id))
    overdue = [row[0] for row in tx.rows("overdue_edges", (limit,))]
    if overdue:
        end(tx, overdue)
    tx.changed = bool(lost or overdue)
    return len(lost) + len(overdue)


def _close(tx: Transaction, parents: Sequence[str], ahead: Mapping[str, str]) -> list[str]:
    """Close the edges of ended parents; the children that ended because of it."""
    edges = _open_edges(tx, parents)
    if not edges:
        return []
    outcomes = _outcomes(edges)
    closed = [(how.value, _kept(e), tx.now, *e.identity) for e, how in outcomes]
    tx.many("close_edge", closed)
    counts = Counter(edge.child_id for edge in edges)
    tx.many("lower_waiting", [(n, tx.now, child_id) for child_id, n in counts.items()])
    for edge in edges:
        if edge.kind == EdgeKind.ORDER and edge.parent_id in ahead:
            order.close_up(tx, edge.child_id, ahead[edge.parent_id])
    _pass_results(tx, [edge.child_id for edge in edges if edge.kind != EdgeKind.ORDER])
    doomed = {
        e.child_id: (e, outcome) for e, outcome in outcomes if outcome is not Outcome.SATISFIED
    }
    return _end_dependents(tx, doomed)


def _identity(edge: Edge) -> tuple[str, str, str]:
    return edge.parent_id, edge.kind.value, edge.argument or ""


def _open_edges(tx: Transaction, parents: Sequence[str]) -> list[_Open]:
    """The edges to ended parents; a result is read once, for a thousand children may share it."""
    rows = tx.rows("open_edges", {"parents": tx.listed(parents)})
    wanted = {row[1] for row in rows if row[2] in _WITH_RESULT}
    results = {parent_id: tx.value("result_of", (parent_id,)) for parent_id in wanted}
    return [_Open._make((*row, results.get(row[1]))) for row in rows]


def _outcomes(edges: Sequence[_Open]) -> list[tuple[_Open, Outcome]]:
    """How each edge closes; the children of one parent mostly ask the same of its result."""
    known: dict[tuple[str, ...], Outcome] = {}
    outcomes = []
    for edge in edges:
        asked = (edge.parent_id, edge.kind, edge.condition or "", edge.on_failure)
        if asked not in known:
            known[asked] = edge.closes()
        outcomes.append((edge, known[asked]))
    return outcomes


def _kept(edge: _Open) -> str | None:
    return (edge.parent_result or "null") if edge.kind == EdgeKind.DATA else None


def _pass_results(tx: Transaction, children: list[str]) -> None:
    """Put the parents' results into the payloads of children that wait for nobody any more."""
    payloads: dict[str, str] = dict(tx.rows("free_with_inputs", (tx.listed(children),)))
    if not payloads:
        return
    free = tx.listed(list(payloads))
    inputs: dict[str, list[tuple[Any, ...]]] = {child_id: [] for child_id in payloads}
    for child_id, *given in tx.rows("inputs", (free,)):
        inputs[child_id].append(tuple(given))
    filled = [(with_inputs(payload, inputs[c]), c) for c, payload in payloads.items()]
    tx.many("set_payload", filled)
    tx.run("inputs_passed", (free,))


def _end_dependents(tx: Transaction, doomed: Mapping[str, tuple[_Open, Outcome]]) -> list[str]:
    """End children whose parents let them run no more; those that ended before are left out."""
    if not doomed:
        return []
    pairs = [(child_id, edge.parent_id) for child_id, (edge, _) in doomed.items()]
    foreign = {row[0] for row in tx.rows("of_other_tenants", (encode(pairs).decode(),))}
    alike: dict[tuple[str, str | None, Outcome, bool], list[str]] = {}
    told: dict[tuple[str, str | None, Outcome, bool], Failure] = {}
    for child_id, (edge, outcome) in doomed.items():
        why = (edge.parent_id, edge.condition, outcome, child_id in foreign)
        alike.setdefault(why, []).append(child_id)
        if why not in told:
            status = Status(edge.parent_status)
            told[why] = orphaned(edge.edge, outcome, status, foreign=child_id in foreign)
    counters = Counters()
    ended: list[str] = []
    for why, children in alike.items():
        ended += _end_alike(tx, counters, children, told[why], buried=why[2] is Outcome.DEAD)
    tx.run("forget_job_pause", (tx.listed(ended),))
    counters.write(tx)
    return ended


def _end_alike(
    tx: Transaction, counters: Counters, children: list[str], failure: Failure, *, buried: bool
) -> list[str]:
    row = {
        "ids": tx.listed(children),
        "error": failure.message,
        "details": failure.details,
        "now": tx.now,
    }
    dead: list[str] = []
    if buried:
        dead = counters.end_all(tx.rows("bury_dependent", row), "dead")
        keep_dead_letters(tx, dead, failure)
    return dead + counters.end_all(tx.rows("cancel_dependent", row), "cancelled")


def _statuses(tx: Transaction, parents: set[str]) -> dict[str, str]:
    """How the parents stand, and will until this transaction ends."""
    statuses: dict[str, str] = dict(tx.rows("statuses", (tx.listed(sorted(parents)),)))
    missing = sorted(parents - statuses.keys())
    if missing:
        raise ParentNotFound(missing[0])
    return statuses


def _refuse_cycle(tx: Transaction, child_id: str, edges: Sequence[Edge]) -> None:
    """Walk up from the new parents over all open edges."""
    known: dict[str, list[str]] = {child_id: [edge.parent_id for edge in edges]}
    todo = [edge.parent_id for edge in edges]
    while todo:
        job_id = todo.pop()
        if job_id not in known:
            known[job_id] = [row[0] for row in tx.rows("open_parents", (job_id,))]
            todo += known[job_id]
    cycle = find_cycle(known)
    if cycle is not None:
        raise DependencyCycle(cycle)


def _row(tx: Transaction, child_id: str, edge: Edge) -> tuple[Any, ...]:
    return (
        child_id,
        edge.parent_id,
        edge.kind.value,
        edge.argument or "",
        edge.position,
        edge.condition,
        edge.on_failure.value,
        edge.on_requeue.value,
        tx.now,
    )
