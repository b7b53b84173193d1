"""Why a job is retried, when, and when no more: classes of error, backoff, the decision."""

import errno
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from penstock.model import errors, not_found, store_errors
from penstock.model.retry_after import attribute, retry_after_ms

__all__ = [
    "POLICIES",
    "Budget",
    "Classifier",
    "ErrorClass",
    "GiveUp",
    "Policy",
    "RetryDecision",
    "RetryIn",
    "backoff_ms",
    "budget_for",
    "classify",
    "decide",
    "next_timeout_ms",
    "retry_after_ms",
    "used_up",
]

DEFAULT_CAP_MS = 60_000
MAX_CAP_MS = 3_600_000
MIN_RETRY_AFTER_MS = 1_000
MAX_RETRY_AFTER_MS = 86_400_000
MAX_JITTER_MS = 1_000
SNOOZES_PER_RETRY = 3


class ErrorClass(StrEnum):
    """What kind of failure an exception is, which decides how it is retried."""

    TRANSIENT_NETWORK = "transient_network"
    RATE_LIMIT = "rate_limit"
    TEMPORARY_RESOURCE = "temporary_resource"
    TIMEOUT = "timeout"
    DATABASE_ERROR = "database_error"
    INTERNAL_ERROR = "internal_error"
    UNKNOWN = "unknown"
    VALIDATION_ERROR = "validation_error"
    AUTHENTICATION_ERROR = "authentication_error"
    NOT_FOUND = "not_found"
    PERMISSION_DENIED = "permission_denied"
    INVALID_INPUT = "invalid_input"
    POISON = "poison"


@dataclass(frozen=True, slots=True)
class Policy:
    """How one class of error is retried."""

    retried: bool
    budget: int
    delay_ms: int
    multiplier: float
    spends_attempt: bool = True
    more_time: bool = False


_NEVER = Policy(retried=False, budget=0, delay_ms=0, multiplier=1.0)

POLICIES: Mapping[ErrorClass, Policy] = MappingProxyType(
    {
        ErrorClass.TRANSIENT_NETWORK: Policy(True, 5, 2_000, 2.0),
        ErrorClass.RATE_LIMIT: Policy(True, 3, 60_000, 1.5, spends_attempt=False),
        ErrorClass.TEMPORARY_RESOURCE: Policy(True, 3, 0, 2.0),
        ErrorClass.TIMEOUT: Policy(True, 3, 5_000, 2.0, more_time=True),
        ErrorClass.DATABASE_ERROR: Policy(True, 5, 2_000, 2.0),
        ErrorClass.INTERNAL_ERROR: Policy(True, 2, 5_000, 2.0),
        ErrorClass.UNKNOWN: Policy(True, 2, 5_000, 2.0),
        ErrorClass.VALIDATION_ERROR: _NEVER,
        ErrorClass.AUTHENTICATION_ERROR: _NEVER,
        ErrorClass.NOT_FOUND: _NEVER,
        ErrorClass.PERMISSION_DENIED: _NEVER,
        ErrorClass.INVALID_INPUT: _NEVER,
        ErrorClass.POISON: _NEVER,
    }
)

Classifier = Callable[[BaseException], ErrorClass | None] | Mapping[type[Any], ErrorClass]
"""A job type's own opinion of an exception: a function, or classes by exception type."""

_BY_STATUS: Mapping[int, ErrorClass] = {
    400: ErrorClass.VALIDATION_ERROR,
    401: ErrorClass.AUTHENTICATION_ERROR,
    403: ErrorClass.PERMISSION_DENIED,
    404: ErrorClass.NOT_FOUND,
    407: ErrorClass.AUTHENTICATION_ERROR,
    408: ErrorClass.TIMEOUT,
    410: ErrorClass.NOT_FOUND,
    413: ErrorClass.INVALID_INPUT,
    414: ErrorClass.INVALID_INPUT,
    415: ErrorClass.INVALID_INPUT,
    422: ErrorClass.VALIDATION_ERROR,
    425: ErrorClass.TRANSIENT_NETWORK,
    429: ErrorClass.RATE_LIMIT,
}

_BY_ERRNO: Mapping[int, ErrorClass] = {
    **dict.fromkeys(
        (
            errno.EAGAIN,
            errno.EMFILE,
            errno.ENFILE,
            errno.ENOBUFS,
            errno.ENOMEM,
            errno.ENOSPC,
            errno.EDQUOT,
        ),
        ErrorClass.TEMPORARY_RESOURCE,
    ),
    **dict.fromkeys(
        (
            errno.EHOSTUNREACH,
            errno.ENETUNREACH,
            errno.ENETDOWN,
            errno.EHOSTDOWN,
            errno.ETIMEDOUT,
        ),
        ErrorClass.TRANSIENT_NETWORK,
    ),
}

_BY_TYPE: Mapping[type[BaseException], ErrorClass] = {
    ConnectionError: ErrorClass.TRANSIENT_NETWORK,
    TimeoutError: ErrorClass.TIMEOUT,
    MemoryError: ErrorClass.TEMPORARY_RESOURCE,
    BlockingIOError: ErrorClass.TEMPORARY_RESOURCE,
    PermissionError: ErrorClass.PERMISSION_DENIED,
    FileNotFoundError: ErrorClass.NOT_FOUND,
    SystemError: ErrorClass.INTERNAL_ERROR,
    errors.PenstockError: ErrorClass.INTERNAL_ERROR,
    errors.InvalidArguments: ErrorClass.INVALID_INPUT,
    errors.InvalidOption: ErrorClass.INVALID_INPUT,
    errors.PayloadTooLarge: ErrorClass.INVALID_INPUT,
    errors.CorruptPayload: ErrorClass.INVALID_INPUT,
    errors.ResultNotSerializable: ErrorClass.VALIDATION_ERROR,
    errors.InvalidResult: ErrorClass.VALIDATION_ERROR,
    not_found.JobNotFound: ErrorClass.NOT_FOUND,
    errors.ResultTimeout: ErrorClass.TIMEOUT,
    store_errors.StoreError: ErrorClass.DATABASE_ERROR,
    store_errors.StoreFull: ErrorClass.TEMPORARY_RESOURCE,
}

# By name, so that no library is imported only to ask whether an exception is its own.
_BY_CLASS_NAME: Mapping[str, ErrorClass] = {
    **dict.fromkeys(
        (
            "APIConnectionError",
            "ClientConnectionError",
            "ConnectionError",
            "IncompleteRead",
            "SSLError",
            "TransportError",
            "URLError",
            "gaierror",
            "herror",
        ),
        ErrorClass.TRANSIENT_NETWORK,
    ),
    **dict.fromkeys(
        ("APITimeoutError", "Timeout", "TimeoutError", "TimeoutException"), ErrorClass.TIMEOUT
    ),
    "AuthenticationError": ErrorClass.AUTHENTICATION_ERROR,
    "BrokenExecutor": ErrorClass.INTERNAL_ERROR,
    "NoResultFound": ErrorClass.NOT_FOUND,
    "RateLimitError": ErrorClass.RATE_LIMIT,
    "ValidationError": ErrorClass.VALIDATION_ERROR,
}

_DATABASE_MODULES = frozenset(
    {
        "apsw",
        "asyncpg",
        "mysql",
        "MySQLdb",
        "peewee",
        "psycopg",
        "psycopg2",
        "psycopg_pool",
        "pymongo",
        "pymysql",
        "redis",
        "sqlalchemy",
        "sqlite3",
        "valkey",
    }
)

_BY_WORD: Mapping[str, ErrorClass] = {
    "429": ErrorClass.RATE_LIMIT,
    "ECONNREFUSED": ErrorClass.TRANSIENT_NETWORK,
    "ECONNRESET": ErrorClass.TRANSIENT_NETWORK,
    "ETIMEDOUT": ErrorClass.TRANSIENT_NETWORK,
}


def classify(exc: BaseException, extra: Sequence[Classifier] = ()) -> ErrorClass:
    """Name the class of an exception; what nobody knows (bugs included) is `unknown`.

    A job type's own classifiers are asked first. An exception without an opinion of its own is
    judged by the members of its group, then by the exception it was raised `from`. A message that
    calls something invalid says so little that it is heard last.
    """
    return _classify_or_guess(exc, extra, seen=set())


def backoff_ms(
    base_ms: int,
    multiplier: float,
    failures: int,
    *,
    jitter: float,
    fixed: bool = False,
    cap_ms: int = DEFAULT_CAP_MS,
) -> int:
    """Return the delay after the `failures`-th failure: `backoff_ms(2000, 2, 3, jitter=0) == 8000`.

    `jitter` in [0, 1) adds that share of 20 % of the delay, at most 1 s. The sum stays within the
    cap, and so does its spread: jobs that all reached the cap still come back apart.
    """
    cap = min(cap_ms, MAX_CAP_MS)
    delay = _grown(base_ms, 1.0 if fixed else multiplier, failures, cap)
    return min(delay, cap - _spread(delay, 1.0)) + _spread(delay, jitter)


def next_timeout_ms(timeout_ms: int, max_ms: int) -> int:
    """Return the time the next attempt gets after a timeout: twice as much, up to `max_ms`."""
    return max(timeout_ms, min(2 * timeout_ms, max_ms))


class Budget(Struct, frozen=True):
    """How many retries follow one class of error, and what says so."""

    retries: int
    source: str


def budget_for(
    error_class: ErrorClass, max_retries: int | None, class_budget: int | None = None
) -> Budget:
    """Choose the budget of a class: what its type wrote for it, what the job wrote, the default.

    `class_budget` stands in `budgets` of the type; `max_retries` in the options of the call, of
    the type, or in the settings, whichever is nearest, and is None where nobody wrote one.
    """
    if class_budget is not None:
        return Budget(class_budget, f"the budget of its type for class {error_class}")
    if max_retries is not None:
        return Budget(max_retries, "max_retries of its type or call")
    return Budget(POLICIES[error_class].budget, f"the default for class {error_class}")


@dataclass(frozen=True, slots=True)
class RetryIn:
    """Try again after a delay."""

    delay_ms: int
    spends_attempt: bool


@dataclass(frozen=True, slots=True)
class GiveUp:
    """No further attempt; the reason is a sentence for the dead letter."""

    reason: str


RetryDecision = RetryIn | GiveUp


def decide(
    error_class: ErrorClass,
    *,
    attempts_before: int,
    max_retries: int | None,
    snoozes: int,
    jitter: float,
    delay_ms: int | None = None,
    multiplier: float | None = None,
    retry_after_ms: int | None = None,
    cap_ms: int = DEFAULT_CAP_MS,
    class_budget: int | None = None,
) -> RetryDecision:
    """Decide what follows a failed execution.

    `attempts_before` counts the budget-spending attempts before this one, `snoozes` the waits that
    spent none. `budget_for` says how often; the job's own `delay_ms` and `multiplier` replace
    those of the class. A first delay over the cap raises the cap. A Retry-After replaces the delay
    and is never undercut.
    """
    policy = POLICIES[error_class]
    if not policy.retried:
        return GiveUp(f"A job that failed with {error_class} is not retried.")
    budget = budget_for(error_class, max_retries, class_budget)
    used = attempts_before if policy.spends_attempt else snoozes
    if used >= budget.retries * (1 if policy.spends_attempt else SNOOZES_PER_RETRY):
        return GiveUp(used_up(budget, waits=not policy.spends_attempt))
    base = policy.delay_ms if delay_ms is None else delay_ms
    growth = policy.multiplier if multiplier is None else multiplier
    if retry_after_ms is None:
        cap = max(cap_ms, base + _spread(base, 1.0))
        delay = backoff_ms(base, growth, used + 1, jitter=jitter, cap_ms=cap)
    else:
        delay = _told_to_wait(retry_after_ms, growth, used + 1, jitter, cap_ms)
    return RetryIn(delay, policy.spends_attempt)


def used_up(budget: Budget, *, waits: bool = False) -> str:
    """Say that a budget is spent: `All 2 retries are used up: max_retries of its type or call.`"""
    if budget.retries == 0:
        spent = "No retry is allowed"
    elif waits:
        spent = f"All {SNOOZES_PER_RETRY * budget.retries} waits are used up, three for each retry"
    else:
        one = budget.retries == 1
        spent = "The one retry is used up" if one else f"All {budget.retries} retries are used up"
    return f"{spent}: {budget.source}."


def _told_to_wait(
    asked_ms: int, multiplier: float, failures: int, jitter: float, cap_ms: int
) -> int:
    # It grows too: a server that says "1 second" every time would use up all snoozes in seconds.
    least = min(max(asked_ms, MIN_RETRY_AFTER_MS), MAX_RETRY_AFTER_MS)
    delay = max(least, _grown(least, multiplier, failures, cap_ms))
    return delay + _spread(delay, jitter)


def _grown(base_ms: int, multiplier: float, failures: int, cap_ms: int) -> int:
    if base_ms == 0:
        return 0
    try:
        return int(min(base_ms * multiplier ** max(failures - 1, 0), cap_ms))
    except OverflowError:
        return cap_ms


def _spread(delay_ms: int, jitter: float) -> int:
    return int(jitter * min(MAX_JITTER_MS, delay_ms // 5))


def _classify_or_guess(
    exc: BaseException, extra: Sequence[Classifier], seen: set[int]
) -> ErrorClass:
    found = _classify(exc, extra, seen)
    if found is not None:
        return found
    invalid = any(word.lower() == "invalid" for word in _words(exc))
    return ErrorClass.VALIDATION_ERROR if invalid else ErrorClass.UNKNOWN


def _classify(exc: BaseException, extra: Sequence[Classifier], seen: set[int]) -> ErrorClass | None:
    current: BaseException | None = exc
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        found = _asked(current, extra) or _members(current, extra, seen) or _recognised(current)
        if found is not None:
            return found
        current = current.__cause__
    return None


def _asked(exc: BaseException, extra: Sequence[Classifier]) -> ErrorClass | None:
    for classifier in extra:
        try:
            if isinstance(classifier, Mapping):
                found = next((classifier[c] for c in type(exc).__mro__ if c in classifier), None)
            else:
                found = classifier(exc)
            if found is not None:
                found = ErrorClass(found)
        except Exception as broken:
            # A classifier's bug must not replace the failure it was asked about.
            exc.add_note(f"A classifier of this job type raised {broken!r} and was ignored.")
            continue
        if found is not None:
            return found
    return None


def _members(exc: BaseException, extra: Sequence[Classifier], seen: set[int]) -> ErrorClass | None:
    """Judge a group by its most hopeless member: what cannot succeed alone cannot together."""
    if not isinstance(exc, BaseExceptionGroup):
        return None
    found = [
        _classify_or_guess(member, extra, seen)
        for member in exc.exceptions
        if id(member) not in seen
    ]
    return min(found, key=_hope, default=None)


def _hope(error_class: ErrorClass) -> tuple[bool, int, int]:
    policy = POLICIES[error_class]
    return policy.retried, policy.budget, -policy.delay_ms


def _recognised(exc: BaseException) -> ErrorClass | None:
    return _by_status(exc) or _by_errno(exc) or _by_type(exc) or _by_message(exc)


def _by_status(exc: BaseException) -> ErrorClass | None:
    response = attribute(exc, "response")
    for holder, name in (
        (exc, "status"),
        (exc, "status_code"),
        (response, "status_code"),
        (response, "status"),
        (exc, "code"),
    ):
        status = attribute(holder, name)
        if isinstance(status, int) and 400 <= status <= 599:
            return ErrorClass.TRANSIENT_NETWORK if status >= 500 else _BY_STATUS.get(status)
    return None


def _by_errno(exc: BaseException) -> ErrorClass | None:
    return _BY_ERRNO.get(exc.errno or 0) if isinstance(exc, OSError) else None


def _by_type(exc: BaseException) -> ErrorClass | None:
    for cls in type(exc).__mro__:
        found = _BY_TYPE.get(cls) or _BY_CLASS_NAME.get(cls.__name__)
        if found is not None:
            return found
        if cls.__module__.partition(".")[0] in _DATABASE_MODULES:
            return ErrorClass.DATABASE_ERROR
    return None


def _by_message(exc: BaseException) -> ErrorClass | None:
    words = _words(exc)
    if "rate limit" in " ".join(words).lower():
        return ErrorClass.RATE_LIMIT
    return next((_BY_WORD[word] for word in words if word in _BY_WORD), None)


def _words(exc: BaseException) -> list[str]:
    try:
        message = str(exc)[:2_000]
    except Exception:
        return []
    return [word.strip(".,:;!()[]\"'") for word in message.split()]
