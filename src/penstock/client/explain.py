"""Why a job does, or does not, run: what a store knows of it, put into sentences."""

from collections.abc import Callable, Iterator

from penstock.client.reasons import controls, state, workers
from penstock.model.explain import Explanation, Reason, ReasonKind
from penstock.model.states import Status
from penstock.store.contract import Standing

Finder = Callable[[Standing], Iterator[Reason]]

FINDERS: dict[ReasonKind, Finder] = {
    ReasonKind.ENDED: state.ended,
    ReasonKind.KEY_TAKEN: state.key_taken,
    ReasonKind.CANCEL_REQUESTED: state.cancel_requested,
    ReasonKind.LEASE_LAPSED: state.lease_lapsed,
    ReasonKind.RUNNING: state.running,
    ReasonKind.PREFETCHED: state.prefetched,
    ReasonKind.EXPIRED: state.expired,
    ReasonKind.JOB_PAUSED: controls.job_paused,
    ReasonKind.QUEUE_PAUSED: controls.queue_paused,
    ReasonKind.TYPE_PAUSED: controls.type_paused,
    ReasonKind.TENANT_PAUSED: controls.tenant_paused,
    ReasonKind.WAITS_FOR_PARENTS: state.waits_for_parents,
    ReasonKind.WAITS_IN_LINE: state.waits_in_line,
    ReasonKind.WAITS_FOR_TIME: state.waits_for_time,
    ReasonKind.SNOOZED: state.snoozed,
    ReasonKind.WAITS_FOR_RETRY: state.waits_for_retry,
    ReasonKind.NO_WORKER: workers.no_worker,
    ReasonKind.NO_WORKER_FOR_TYPE: workers.no_worker_for_type,
    ReasonKind.NO_WORKER_FOR_QUEUE: workers.no_worker_for_queue,
    ReasonKind.PRIORITY_EXCLUDED: workers.priority_excluded,
    ReasonKind.WORKERS_SILENT: workers.workers_silent,
    ReasonKind.WORKERS_DRAINING: workers.workers_draining,
    ReasonKind.WORKERS_STUCK: workers.workers_stuck,
    ReasonKind.BREAKER_OPEN: controls.breaker_open,
    ReasonKind.BREAKER_PROBING: controls.breaker_probing,
    ReasonKind.LIMIT_FULL: controls.limit_full,
    ReasonKind.RATE_USED_UP: controls.rate_used_up,
    ReasonKind.WORKERS_BUSY: workers.workers_busy,
    ReasonKind.TENANTS_TURN: workers.tenants_turn,
    ReasonKind.JOBS_AHEAD: workers.jobs_ahead,
    ReasonKind.DUE: state.due_now,
}


def explain(look: Standing) -> Explanation:
    """Every reason that holds, the weightiest first; a job that may run has that for a reason."""
    found = [reason for kind in ReasonKind if kind in FINDERS for reason in FINDERS[kind](look)]
    if not found:
        found = [_ready(look)]
    return Explanation(job_id=look.job.id, status=look.job.status, asked_at=look.now, reasons=found)


def _ready(look: Standing) -> Reason:
    told = "Nothing is in its way: the next claim of a worker takes it."
    since = look.job.queued_at if look.job.status is Status.QUEUED else None
    return Reason(kind=ReasonKind.READY, sentence=told, since_at=since)
