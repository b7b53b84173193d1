"""Why a job does, or does not, run: what a store knows of it, put into sentences."""

from collections.abc import Callable, Iterator

from penstock.client.reasons import controls, state, workers
from penstock.model.explain import Explanation, Reason, ReasonKind
from penstock.model.states import Status
from penstock.store.contract import Standing

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
    found.sort(key=lambda reason: WEIGHTS[reason.kind])
    return Explanation(job_id=look.job.id, status=look.job.status, asked_at=look.now, reasons=found)


def _ready(look: Standing) -> Reason:
    told = "Nothing is in its way: the next claim of a worker takes it."
    since = look.job.queued_at if look.job.status is Status.QUEUED else None
    return Reason(kind=ReasonKind.READY, sentence=told, since_at=since)
