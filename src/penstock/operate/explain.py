"""Why a job does, or does not, run: what a store knows of it, put into sentences."""

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from penstock.model.explain import Explanation, Reason, ReasonKind
from penstock.model.states import Status
from penstock.operate.reasons import controls, state, workers
from penstock.operate.reasons.words import HIDDEN
from penstock.store.contract import Dependency, Standing

Finder = Callable[[Standing], Iterator[Reason]]

FINDERS: tuple[Finder, ...] = (
    state.ended,
    state.key_taken,
    state.cancel_requested,
    state.lease_lapsed,
    state.running,
    state.prefetched,
    state.expired,
    controls.paused,
    state.waits_for_parents,
    state.waits_in_line,
    state.waits_for_time,
    state.snoozed,
    state.waits_for_retry,
    controls.breaker_open,
    controls.breaker_probing,
    controls.limit_full,
    controls.rate_used_up,
    workers.no_worker,
    workers.tenants_turn,
    workers.jobs_ahead,
    state.due_now,
)
WEIGHTS = {kind: place for place, kind in enumerate(ReasonKind)}


def explain(look: Standing) -> Explanation:
    """Every reason that holds, the weightiest first; a job that may run has that for a reason."""
    found = [reason for find in FINDERS for reason in find(look)] or [_ready(look)]
    found = [replace(each, jobs=tuple(j for j in each.jobs if j != HIDDEN)) for each in found]
    found.sort(key=lambda reason: WEIGHTS[reason.kind])
    return Explanation(job_id=look.job.id, status=look.job.status, asked_at=look.now, reasons=found)


def named_in(look: Standing) -> set[str]:
    """The ids of all other jobs that reasons would name."""
    named = {found.edge.parent_id for found in look.waits_for}
    named |= {job_id for state in look.limits for job_id in state.holders}
    named |= {state.probe_id for state in look.breakers if state.probe_id is not None}
    return named | ({look.key_holder} if look.key_holder is not None else set())


def without(look: Standing, hidden: set[str]) -> Standing:
    """The same look with neither the id nor anything else of some of those jobs."""
    if not hidden:
        return look
    return replace(
        look,
        waits_for=[_hide_parent(f) if f.edge.parent_id in hidden else f for f in look.waits_for],
        limits=[replace(s, holders=_hide(s.holders, hidden)) for s in look.limits],
        breakers=[
            replace(s, probe_id=HIDDEN) if s.probe_id in hidden else s for s in look.breakers
        ],
        key_holder=HIDDEN if look.key_holder in hidden else look.key_holder,
    )


def _hide_parent(found: Dependency) -> Dependency:
    edge = replace(found.edge, parent_id=HIDDEN)
    return replace(found, edge=edge, parent_type=None, parent_status=None)


def _hide(ids: tuple[str, ...], hidden: set[str]) -> tuple[str, ...]:
    return tuple(HIDDEN if job_id in hidden else job_id for job_id in ids)


def _ready(look: Standing) -> Reason:
    told = "Nothing is in its way: the next claim of a worker takes it."
    since = look.job.queued_at if look.job.status is Status.QUEUED else None
    return Reason(kind=ReasonKind.READY, sentence=told, since_at=since)
