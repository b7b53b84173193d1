"""From how a handler ended to how its lease is settled. Pure: all facts are arguments."""

import random
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from penstock.app.job_type import JobType
from penstock.model.failure import MESSAGE_LIMIT, Failure
from penstock.model.job import Lease
from penstock.model.outcome import (
    Buried,
    Cancel,
    Cancelled,
    Crashed,
    Dead,
    Failed,
    HandedBack,
    Retry,
    Settlement,
    Snooze,
    Snoozed,
)
from penstock.model.redact import redact
from penstock.model.retry import (
    POLICIES,
    Budget,
    ErrorClass,
    GiveUp,
    RetryIn,
    budget_for,
    classify,
    decide,
    next_timeout_ms,
    retry_after_ms,
    used_up,
)
from penstock.model.wording import counted

MAX_WAIT_SECONDS = 366 * 86_400
RETRIES_ASKED_FOR = 3
"""How often a handler may ask for a retry where nobody wrote `max_retries`."""


class Encoded:
    """A value that came out of a process as JSON text already."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class Verdict:
    """Builds the settlement of one execution."""

    __slots__ = ("_facts", "_jitter", "_lease", "_now", "_type")

    def __init__(
        self,
        type_: JobType[..., ..., Any],
        lease: Lease,
        *,
        now: int,
        started_at: int,
        duration_ms: int,
        cpu_ms: int | None = None,
        memory_kb: int | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._type = type_
        self._lease = lease
        self._now = now
        self._jitter = jitter
        self._facts: dict[str, Any] = {
            "id": lease.id,
            "fence": lease.fence,
            "type": lease.type,
            "queue": lease.queue,
            "started_at": started_at,
            "wait_ms": max(0, started_at - lease.queued_at),
            "duration_ms": duration_ms,
            "cpu_ms": cpu_ms,
            "memory_kb": memory_kb,
            "attempts": lease.attempts,
            "tenant_id": lease.tenant_id,
        }

    def of_error(self, error: BaseException, max_snoozes: int) -> Settlement:
        """The handler raised: one of the outcomes, or an exception to be classified."""
        match error:
            case Snooze():
                return self._snoozed(error, max_snoozes)
            case Cancel():
                return self.cancelled(error.reason)
            case Dead():
                return self._dead(ErrorClass.UNKNOWN, "Dead", error.reason)
            case Retry():
                return self._asked_to_retry(error)
            case _:
                return self._failed(error)

    def crashed(self, failure: Failure) -> Settlement:
        """The process of the job died under it."""
        limit = self._type.app.settings.max_rescues
        return Crashed(**self._facts, failure=failure, max_rescues=limit)

    def cancelled(self, reason: str) -> Settlement:
        """The execution ended because the job was cancelled."""
        return Cancelled(**self._facts, reason=_words(reason))

    def handed_back(self) -> Settlement:
        """The worker is shutting down."""
        return HandedBack(**self._facts, started=True)

    def _snoozed(self, snooze: Snooze, max_snoozes: int) -> Settlement:
        if self._lease.snoozes + 1 > max_snoozes:
            return self._dead(
                ErrorClass.INTERNAL_ERROR,
                "SnoozedTooOften",
                f"The job was snoozed {counted(max_snoozes, 'time')}: {snooze.reason}",
            )
        delay = _bounded_ms(snooze.seconds)
        return Snoozed(**self._facts, delay_ms=delay, reason=_words(snooze.reason))

    def _asked_to_retry(self, retry: Retry) -> Settlement:
        failure = Failure.because(ErrorClass.UNKNOWN, "Retry", str(retry.reason))
        written = self._lease.max_retries
        budget = Budget(RETRIES_ASKED_FOR, "the default for Retry")
        if written is not None:
            budget = budget_for(ErrorClass.UNKNOWN, written)
        failure = replace(failure, budget=budget)
        if self._lease.attempts >= budget.retries:
            return Buried(**self._facts, failure=replace(failure, given_up=used_up(budget)))
        delay = 0 if retry.after is None else _bounded_ms(retry.after)
        if retry.after is None:
            decision = self._decide(ErrorClass.UNKNOWN, None, budget.retries)
            delay = decision.delay_ms if isinstance(decision, RetryIn) else 0
        return Failed(**self._facts, failure=failure, retry_in_ms=delay)

    def _failed(self, error: BaseException) -> Settlement:
        error_class = classify(error, self._type.classify)
        after = retry_after_ms(error, self._now)
        own = self._type.budgets.get(error_class)
        budget = budget_for(error_class, self._lease.max_retries, own)
        failure = replace(Failure.of(error, error_class), budget=budget)
        decision = self._decide(error_class, after, own)
        if isinstance(decision, GiveUp):
            return Buried(**self._facts, failure=replace(failure, given_up=decision.reason))
        return Failed(
            **self._facts,
            failure=failure,
            retry_in_ms=decision.delay_ms,
            spends_attempt=decision.spends_attempt,
            timeout_ms=self._more_time(error_class),
        )

    def _decide(
        self, error_class: ErrorClass, after_ms: int | None, budget: int | None
    ) -> RetryIn | GiveUp:
        lease = self._lease
        return decide(
            error_class,
            attempts_before=lease.attempts,
            max_retries=lease.max_retries,
            snoozes=lease.snoozes,
            jitter=self._jitter(),
            delay_ms=lease.retry_delay_ms,
            multiplier=lease.backoff_multiplier,
            retry_after_ms=after_ms,
            cap_ms=self._type.retry_cap_ms,
            class_budget=budget,
        )

    def _more_time(self, error_class: ErrorClass) -> int | None:
        if not POLICIES[error_class].more_time:
            return None
        limit = int(self._type.app.settings.max_timeout * 1000)
        return next_timeout_ms(self._lease.timeout_ms, limit)

    def _dead(self, error_class: ErrorClass, code: str, message: str) -> Settlement:
        return Buried(**self._facts, failure=Failure.because(error_class, code, str(message)))


def _bounded_ms(seconds: float) -> int:
    """Nothing waits for ever: a year at most."""
    return max(0, int(min(seconds, MAX_WAIT_SECONDS) * 1000))


def _words(reason: object) -> str:
    """A handler's own words, through the same gate as its errors."""
    return redact(str(reason))[:MESSAGE_LIMIT]
