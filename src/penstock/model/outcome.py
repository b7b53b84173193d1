"""How an execution ends: what a handler may return or raise, and how its lease is settled."""

from msgspec import Struct

from penstock.model.failure import Failure
from penstock.model.job import Job, Lease


class Outcome(Exception):
    """Base of the outcomes; raise one or return one, the effect is the same."""


class Retry(Outcome):
    """Try again: `raise Retry(after=30, reason="warming up")`. Spends an attempt."""

    def __init__(self, after: float | None = None, reason: str = "the handler asked for a retry"):
        super().__init__(after, reason)
        self.after = after
        self.reason = reason


class Snooze(Outcome):
    """Come back later without spending an attempt: `return Snooze(60)`."""

    def __init__(self, seconds: float, reason: str = "the handler asked to be snoozed"):
        super().__init__(seconds, reason)
        self.seconds = seconds
        self.reason = reason


class Cancel(Outcome):
    """End the job as cancelled: `raise Cancel("the order was withdrawn")`."""

    def __init__(self, reason: str = "the handler cancelled the job"):
        super().__init__(reason)
        self.reason = reason


class Dead(Outcome):
    """Give up now, without retries: the job becomes a dead letter."""

    def __init__(self, reason: str = "the handler gave up"):
        super().__init__(reason)
        self.reason = reason


class Settlement(Struct, frozen=True, kw_only=True):
    """The facts of one execution; which subclass it is says how the job goes on.

    `attempts` are those spent before it.
    """

    id: str
    fence: int
    type: str
    queue: str
    started_at: int
    wait_ms: int = 0
    duration_ms: int = 0
    cpu_ms: int | None = None
    memory_kb: int | None = None
    attempts: int = 0
    tenant_id: str = ""


class Completed(Settlement, frozen=True, kw_only=True):
    """The handler returned a value, kept as JSON text."""

    result: str = "null"


class Failed(Settlement, frozen=True, kw_only=True):
    """The execution failed and will be retried after a delay."""

    failure: Failure
    retry_in_ms: int
    spends_attempt: bool = True
    timeout_ms: int | None = None


class Snoozed(Settlement, frozen=True, kw_only=True):
    """The handler asked to come back later; no attempt is spent."""

    delay_ms: int
    reason: str


class Cancelled(Settlement, frozen=True, kw_only=True):
    """The execution ended because it, or an operator, cancelled the job."""

    reason: str


class Buried(Settlement, frozen=True, kw_only=True):
    """No further attempt: the job becomes a dead letter."""

    failure: Failure


class Crashed(Settlement, frozen=True, kw_only=True):
    """The process running the job died under it; counts a rescue, not an attempt."""

    failure: Failure
    max_rescues: int = 3


class HandedBack(Settlement, frozen=True, kw_only=True):
    """The worker gives the lease back (shutdown); nothing is spent."""

    started: bool = True


def buried(settlement: Settlement, failure: Failure) -> Buried:
    """The same execution, ended as a dead letter."""
    return Buried(
        id=settlement.id,
        fence=settlement.fence,
        type=settlement.type,
        queue=settlement.queue,
        started_at=settlement.started_at,
        wait_ms=settlement.wait_ms,
        duration_ms=settlement.duration_ms,
        attempts=settlement.attempts,
        tenant_id=settlement.tenant_id,
        failure=failure,
    )


def unstarted(held: Job | Lease) -> HandedBack:
    """The end of a lease under which nothing ran."""
    queued_at = held.queued_at or held.created_at
    return HandedBack(
        id=held.id,
        fence=held.fence,
        type=held.type,
        queue=held.queue,
        started_at=held.started_at or queued_at,
        attempts=held.attempts,
        tenant_id=held.tenant_id,
        started=False,
    )
