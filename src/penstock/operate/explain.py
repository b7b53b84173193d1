"""Why a job does, or does not, run: every reason that holds, the most important first."""

from collections.abc import Callable, Iterable, Iterator

from msgspec.structs import replace

from penstock.model.explain import Explanation, Reason, ReasonKind
from penstock.model.states import Status
from penstock.operate import reasons
from penstock.operate.reasons import HIDDEN
from penstock.store.contract import Dependency, Standing

Finder = Callable[[Standing], Iterator[Reason]]

FINDERS: tuple[Finder, ...] = (
    reasons.ended,
    reasons.key_taken,
    reasons.cancel_requested,
    reasons.lease_lapsed,
    reasons.running,
    reasons.prefetched,
    reasons.expired,
    reasons.paused,
    reasons.waits_for_parents,
    reasons.waits_in_line,
    reasons.waits_for_time,
    reasons.snoozed,
    reasons.waits_for_retry,
    reasons.breaker_open,
    reasons.breaker_probing,
    reasons.limit_full,
    reasons.rate_used_up,
    reasons.no_worker,
    reasons.tenants_turn,
    reasons.jobs_ahead,
    reasons.due_now,
)
WEIGHTS = {kind: place for place, kind in enumerate(ReasonKind)}


def explain(look: Standing, kept_out: Iterable[str] = ()) -> Explanation:
    """Every reason that holds, the most important first; a job that may run has that for a reason.

    `kept_out` is what gates of extensions say about running it again.
    """
    found = [reason for find in FINDERS for reason in find(look)] or [_ready(look)]
    found += [Reason(kind=ReasonKind.NOT_ADMITTED, sentence=each) for each in kept_out]
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
