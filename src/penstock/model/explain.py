"""Why a job does, or does not, run: every reason there is, in the order people should look."""

from enum import StrEnum

from msgspec import Struct

from penstock.model.states import Status


class ReasonKind(StrEnum):
    """Every reason; what comes first here is told first."""

    ENDED = "ended"
    KEY_TAKEN = "key_taken"
    NOT_ADMITTED = "not_admitted"
    CANCEL_REQUESTED = "cancel_requested"
    LEASE_LAPSED = "lease_lapsed"
    RUNNING = "running"
    PREFETCHED = "prefetched"
    EXPIRED = "expired"
    JOB_PAUSED = "job_paused"
    QUEUE_PAUSED = "queue_paused"
    TYPE_PAUSED = "type_paused"
    TENANT_PAUSED = "tenant_paused"
    WAITS_FOR_PARENTS = "waits_for_parents"
    WAITS_IN_LINE = "waits_in_line"
    WAITS_FOR_TIME = "waits_for_time"
    SNOOZED = "snoozed"
    WAITS_FOR_RETRY = "waits_for_retry"
    NO_WORKER = "no_worker"
    NO_WORKER_FOR_TYPE = "no_worker_for_type"
    NO_WORKER_FOR_QUEUE = "no_worker_for_queue"
    PRIORITY_EXCLUDED = "priority_excluded"
    WORKERS_SILENT = "workers_silent"
    WORKERS_DRAINING = "workers_draining"
    WORKERS_STUCK = "workers_stuck"
    BREAKER_OPEN = "breaker_open"
    BREAKER_PROBING = "breaker_probing"
    LIMIT_FULL = "limit_full"
    RATE_USED_UP = "rate_used_up"
    WORKERS_BUSY = "workers_busy"
    TENANTS_TURN = "tenants_turn"
    JOBS_AHEAD = "jobs_ahead"
    DUE = "due"
    READY = "ready"


class Reason(Struct, frozen=True, kw_only=True):
    """One reason as a sentence, and the jobs, workers, person and times it speaks of."""

    kind: ReasonKind
    sentence: str
    jobs: tuple[str, ...] = ()
    workers: tuple[str, ...] = ()
    by: str | None = None
    since_at: int | None = None
    until_at: int | None = None


class Explanation(Struct, frozen=True, kw_only=True):
    """Where a job stands and every reason for it, the most important first."""

    job_id: str
    status: Status
    asked_at: int
    reasons: list[Reason]

    @property
    def summary(self) -> str:
        """The most important reason, in one sentence or two."""
        return self.reasons[0].sentence
