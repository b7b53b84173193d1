import errno
import socket
import sqlite3
import ssl
from concurrent.futures.process import BrokenProcessPool
from http import HTTPStatus
from types import SimpleNamespace
from urllib.error import HTTPError, URLError

import apsw
import msgspec
import pydantic
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from penstock.model import errors, not_found, store_errors
from penstock.model.retry import (
    DEFAULT_CAP_MS,
    MAX_CAP_MS,
    POLICIES,
    ErrorClass,
    GiveUp,
    RetryIn,
    backoff_ms,
    classify,
    decide,
    next_timeout_ms,
)

JITTER = st.floats(0, 1, exclude_max=True)


class ApiError(Exception):
    """An error of some HTTP client: whatever attributes it likes."""

    def __init__(self, message: str = "", **attributes: object) -> None:
        super().__init__(message)
        vars(self).update(attributes)


def pydantic_error() -> Exception:
    class Model(pydantic.BaseModel):
        width: int

    with pytest.raises(pydantic.ValidationError) as caught:
        Model.model_validate({"width": "wide"})
    return caught.value


def test_the_table_of_the_design_is_the_table_of_the_code() -> None:
    assert {
        str(name): (policy.budget, policy.delay_ms, policy.multiplier)
        for name, policy in POLICIES.items()
        if policy.retried
    } == {
        "transient_network": (5, 2_000, 2),
        "rate_limit": (3, 60_000, 1.5),
        "temporary_resource": (3, 0, 2),
        "timeout": (3, 5_000, 2),
        "database_error": (5, 2_000, 2),
        "internal_error": (2, 5_000, 2),
        "unknown": (2, 5_000, 2),
    }
    assert set(POLICIES) == set(ErrorClass)
    assert [name for name, policy in POLICIES.items() if not policy.spends_attempt] == [
        "rate_limit"
    ]
    assert [name for name, policy in POLICIES.items() if policy.more_time] == ["timeout"]


@pytest.mark.parametrize(
    ("exc", "expected"),
    [
        (ConnectionResetError(), "transient_network"),
        (ConnectionRefusedError(), "transient_network"),
        (OSError(errno.EHOSTUNREACH, "no route"), "transient_network"),
        (socket.gaierror(-2, "Name or service not known"), "transient_network"),
        (ssl.SSLError(1, "handshake"), "transient_network"),
        (URLError("unreachable"), "transient_network"),
        (TimeoutError(), "timeout"),
        (OSError(errno.ETIMEDOUT, "timed out"), "transient_network"),
        (TimeoutError(errno.ETIMEDOUT, "timed out"), "transient_network"),
        (MemoryError(), "temporary_resource"),
        (OSError(errno.EMFILE, "too many open files"), "temporary_resource"),
        (OSError(errno.EAGAIN, "again"), "temporary_resource"),
        (OSError(errno.ENOSPC, "disk full"), "temporary_resource"),
        (sqlite3.OperationalError("locked"), "database_error"),
        (apsw.BusyError("locked"), "database_error"),
        (PermissionError(errno.EACCES, "no"), "permission_denied"),
        (FileNotFoundError(errno.ENOENT, "no"), "not_found"),
        (msgspec.ValidationError("Expected int"), "validation_error"),
        (pydantic_error(), "validation_error"),
        (BrokenProcessPool(), "internal_error"),
        (SystemError(), "internal_error"),
        (errors.InvalidArguments("t", "a", "int", "str"), "invalid_input"),
        (errors.CorruptPayload("01J", "t", "no"), "invalid_input"),
        (errors.ResultNotSerializable("t", "socket"), "validation_error"),
        (not_found.JobNotFound("01J"), "not_found"),
        (errors.ResultTimeout("01J", 1), "timeout"),
        (store_errors.StoreUnavailable("x.db", "gone"), "database_error"),
        (store_errors.StoreFull("x.db"), "temporary_resource"),
        (errors.KeyTaken("k", "01J"), "internal_error"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else value,
)
def test_an_exception_is_classified_by_its_type(exc: Exception, expected: str) -> None:
    assert classify(exc) == expected


@pytest.mark.parametrize(
    "exc", [ValueError("bad"), TypeError(), KeyError("x"), AssertionError(), OSError(), Exception()]
)
def test_a_bug_is_unknown_and_so_gets_two_retries(exc: Exception) -> None:
    assert classify(exc) == "unknown"


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (400, "validation_error"),
        (401, "authentication_error"),
        (403, "permission_denied"),
        (404, "not_found"),
        (408, "timeout"),
        (409, "unknown"),
        (410, "not_found"),
        (422, "validation_error"),
        (429, "rate_limit"),
        (HTTPStatus.TOO_MANY_REQUESTS, "rate_limit"),
        (500, "transient_network"),
        (503, "transient_network"),
        (529, "transient_network"),
        (200, "unknown"),
        ("429", "unknown"),
    ],
)
def test_an_http_status_is_found_wherever_the_client_keeps_it(
    status: object, expected: str
) -> None:
    response = SimpleNamespace(status_code=status)
    assert classify(ApiError(status=status)) == expected
    assert classify(ApiError(status_code=status)) == expected
    assert classify(ApiError(code=status)) == expected
    assert classify(ApiError(response=response)) == expected


def test_urllibs_error_is_classified_by_its_code() -> None:
    with HTTPError("http://x", 404, "gone", None, None) as exc:  # type: ignore[arg-type]
        assert classify(exc) == "not_found"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("connect ECONNREFUSED 127.0.0.1:80", "transient_network"),
        ("request failed: ETIMEDOUT", "transient_network"),
        ("Invalid payload: no address", "validation_error"),
        ("the address is invalid", "validation_error"),
        ("the cache was invalidated", "unknown"),
        ("429: invalid pace", "rate_limit"),
        ("Rate limit exceeded", "rate_limit"),
        ("the server said 429.", "rate_limit"),
        ("wrote 4290 rows", "unknown"),
        ("timeout, network, not found, permission denied", "unknown"),
    ],
)
def test_words_in_a_message_count_only_from_a_tight_list(message: str, expected: str) -> None:
    assert classify(RuntimeError(message)) == expected


def test_the_cause_is_asked_when_the_exception_says_nothing() -> None:
    wrapped = RuntimeError("could not fetch")
    wrapped.__cause__ = LookupError()
    wrapped.__cause__.__cause__ = ConnectionResetError()
    assert classify(wrapped) == "transient_network"


def test_the_exception_itself_goes_before_its_cause() -> None:
    outer = PermissionError()
    outer.__cause__ = ConnectionResetError()
    assert classify(outer) == "permission_denied"


def test_an_error_while_handling_another_is_not_blamed_on_it() -> None:
    bug = TypeError()
    bug.__context__ = FileNotFoundError()
    assert classify(bug) == "unknown"


def test_a_circle_of_causes_ends() -> None:
    first, second = RuntimeError(), RuntimeError()
    first.__cause__, second.__cause__ = second, first
    assert classify(first) == "unknown"


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ([ConnectionResetError(), ConnectionResetError()], "transient_network"),
        ([ConnectionResetError(), FileNotFoundError()], "not_found"),
        ([ConnectionResetError(), ValueError()], "unknown"),
        ([TimeoutError(), ApiError(status=429)], "rate_limit"),
        ([ExceptionGroup("inner", [PermissionError()]), TimeoutError()], "permission_denied"),
    ],
)
def test_a_group_is_as_hopeless_as_its_most_hopeless_member(
    members: list[Exception], expected: str
) -> None:
    assert classify(ExceptionGroup("several", members)) == expected


def test_one_exception_twice_in_a_group_counts_once() -> None:
    reset = ConnectionResetError()
    assert classify(ExceptionGroup("twice", [reset, reset])) == "transient_network"


def test_a_job_types_own_classifiers_are_asked_first_and_in_order() -> None:
    by_type = {OSError: ErrorClass.POISON, ConnectionError: ErrorClass.NOT_FOUND}

    def by_function(exc: BaseException) -> ErrorClass | None:
        return ErrorClass.TIMEOUT if isinstance(exc, ValueError) else None

    assert classify(ConnectionResetError(), [by_function, by_type]) == "not_found"
    assert classify(ValueError(), [by_function, by_type]) == "timeout"
    assert classify(MemoryError(), [by_function, by_type]) == "temporary_resource"


def test_a_classifier_that_raises_is_ignored_and_noted() -> None:
    def broken(_: BaseException) -> ErrorClass | None:
        raise LookupError("oops")

    exc = TimeoutError()
    assert classify(exc, [broken]) == "timeout"
    assert "LookupError('oops')" in exc.__notes__[0]


def test_an_exception_whose_attributes_raise_is_still_classified() -> None:
    class Hostile(Exception):
        @property
        def response(self) -> object:
            raise RuntimeError

        def __str__(self) -> str:
            raise RuntimeError

    assert classify(Hostile()) == "unknown"


@given(
    base=st.integers(0, 10_000_000),
    multiplier=st.floats(1, 10),
    failures=st.integers(1, 5_000),
    jitter=JITTER,
    cap=st.integers(0, 2 * MAX_CAP_MS),
    fixed=st.booleans(),
)
def test_backoff_never_leaves_its_bounds(
    base: int, multiplier: float, failures: int, jitter: float, cap: int, fixed: bool
) -> None:
    delay = backoff_ms(base, multiplier, failures, jitter=jitter, fixed=fixed, cap_ms=cap)
    assert 0 <= delay <= min(cap, MAX_CAP_MS)
    assert delay >= min(base, cap, MAX_CAP_MS) - 1_000


@given(base=st.integers(1, 60_000), failures=st.integers(1, 10), jitter=JITTER)
def test_jitter_adds_at_most_a_second_or_a_fifth(base: int, failures: int, jitter: float) -> None:
    plain = backoff_ms(base, 2, failures, jitter=0)
    assert 0 <= backoff_ms(base, 2, failures, jitter=jitter) - plain <= min(1_000, plain / 4)


@given(base=st.integers(0, 60_000), failures=st.integers(1, 50), jitter=JITTER)
def test_a_later_failure_never_waits_less(base: int, failures: int, jitter: float) -> None:
    earlier = backoff_ms(base, 2, failures, jitter=jitter)
    assert backoff_ms(base, 2, failures + 1, jitter=jitter) >= earlier


def test_backoff_doubles_until_the_cap_and_stays_jittered_there() -> None:
    assert [backoff_ms(2_000, 2, n, jitter=0) for n in range(1, 7)] == [
        2_000, 4_000, 8_000, 16_000, 32_000, 59_000,
    ]  # fmt: skip
    assert backoff_ms(2_000, 2, 6, jitter=0.5) == 59_500


def test_fixed_backoff_does_not_grow() -> None:
    assert {backoff_ms(2_000, 2, n, jitter=0, fixed=True) for n in range(1, 9)} == {2_000}


def test_a_delay_of_nothing_stays_nothing() -> None:
    assert backoff_ms(0, 2, 5_000, jitter=0.99) == 0


def test_a_timeout_gets_twice_the_time_up_to_the_most_and_never_less() -> None:
    assert next_timeout_ms(300_000, 3_600_000) == 600_000
    assert next_timeout_ms(3_000_000, 3_600_000) == 3_600_000
    assert next_timeout_ms(7_200_000, 3_600_000) == 7_200_000


def retries(
    error_class: ErrorClass, max_retries: int | None, class_budget: int | None = None
) -> int:
    """Fail with this class until the job is given up; return how often it was retried."""
    attempts = snoozes = 0
    while True:
        decision = decide(
            error_class,
            attempts_before=attempts,
            max_retries=max_retries,
            snoozes=snoozes,
            jitter=0,
            class_budget=class_budget,
        )
        if isinstance(decision, GiveUp):
            return attempts + snoozes
        attempts += decision.spends_attempt
        snoozes += not decision.spends_attempt


@pytest.mark.parametrize(
    ("error_class", "max_retries", "expected"),
    [
        ("transient_network", None, 5),
        ("transient_network", 3, 3),
        ("transient_network", 100, 100),
        ("unknown", None, 2),
        ("unknown", 5, 5),
        ("unknown", 1, 1),
        ("rate_limit", None, 9),
        ("rate_limit", 1, 3),
        ("rate_limit", 0, 0),
        ("timeout", 0, 0),
        ("validation_error", 5, 0),
        ("poison", 5, 0),
    ],
)
def test_what_somebody_wrote_replaces_the_default_of_the_class(
    error_class: str, max_retries: int | None, expected: int
) -> None:
    assert retries(ErrorClass(error_class), max_retries) == expected


@pytest.mark.parametrize("max_retries", [None, 0, 3, 9])
def test_a_budget_for_the_class_replaces_both(max_retries: int | None) -> None:
    assert retries(ErrorClass.UNKNOWN, max_retries, class_budget=4) == 4
    assert retries(ErrorClass.UNKNOWN, max_retries, class_budget=0) == 0
    assert retries(ErrorClass.NOT_FOUND, max_retries, class_budget=4) == 0


@given(st.sampled_from(ErrorClass), st.integers(0, 50))
def test_nothing_is_retried_for_ever(error_class: ErrorClass, max_retries: int) -> None:
    assert retries(error_class, max_retries) <= 3 * max_retries
    assert retries(error_class, None) <= 3 * POLICIES[error_class].budget


@pytest.mark.parametrize(
    ("max_retries", "class_budget", "told"),
    [
        (None, None, "All 2 retries are used up: the default for class unknown."),
        (1, None, "The one retry is used up: max_retries of its type or call."),
        (0, None, "No retry is allowed: max_retries of its type or call."),
        (9, 2, "All 2 retries are used up: the budget of its type for class unknown."),
    ],
)
def test_giving_up_names_the_budget_that_ended_the_job(
    max_retries: int | None, class_budget: int | None, told: str
) -> None:
    decision = decide(
        ErrorClass.UNKNOWN,
        attempts_before=9,
        max_retries=max_retries,
        snoozes=0,
        jitter=0,
        class_budget=class_budget,
    )
    assert isinstance(decision, GiveUp)
    assert decision.reason == told


def decide_first(error_class: ErrorClass, **options: float | None) -> RetryIn:
    """Decide on the first failure of a job with three retries."""
    decision = decide(
        error_class,
        attempts_before=0,
        max_retries=3,
        snoozes=0,
        jitter=0,
        **options,  # type: ignore[arg-type]
    )
    assert isinstance(decision, RetryIn)
    return decision


def test_the_jobs_own_delay_replaces_that_of_the_class() -> None:
    assert decide_first(ErrorClass.UNKNOWN).delay_ms == 5_000
    assert decide_first(ErrorClass.UNKNOWN, delay_ms=100).delay_ms == 100
    assert decide_first(ErrorClass.UNKNOWN, delay_ms=0).delay_ms == 0


def test_a_jobs_own_delay_may_be_longer_than_the_default_cap_but_not_than_an_hour() -> None:
    ten_minutes, day = 600_000, 86_400_000
    assert decide_first(ErrorClass.UNKNOWN, delay_ms=ten_minutes).delay_ms == ten_minutes
    assert decide_first(ErrorClass.UNKNOWN, delay_ms=day).delay_ms == MAX_CAP_MS - 1_000


@given(asked=st.integers(0, 86_400_000), snoozes=st.integers(0, 8), jitter=JITTER)
def test_a_retry_after_is_never_undercut(asked: int, snoozes: int, jitter: float) -> None:
    decision = decide(
        ErrorClass.RATE_LIMIT,
        attempts_before=0,
        max_retries=3,
        snoozes=snoozes,
        retry_after_ms=asked,
        jitter=jitter,
    )
    assert isinstance(decision, RetryIn)
    assert not decision.spends_attempt
    assert asked <= decision.delay_ms <= max(asked, DEFAULT_CAP_MS) + 1_000


def test_a_short_retry_after_is_used_instead_of_the_long_default() -> None:
    assert decide_first(ErrorClass.RATE_LIMIT).delay_ms == 60_000
    assert decide_first(ErrorClass.RATE_LIMIT, retry_after_ms=2_000).delay_ms == 2_000
    assert decide_first(ErrorClass.RATE_LIMIT, retry_after_ms=0).delay_ms == 1_000


def test_an_absurd_retry_after_waits_a_day_at_most() -> None:
    assert decide_first(ErrorClass.RATE_LIMIT, retry_after_ms=10**15).delay_ms == 86_400_000


@given(st.sampled_from(ErrorClass), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
def test_giving_up_comes_with_a_reason_in_a_sentence(
    error_class: ErrorClass, attempts: int, max_retries: int, snoozes: int
) -> None:
    decision = decide(
        error_class,
        attempts_before=attempts,
        max_retries=max_retries,
        snoozes=snoozes,
        jitter=0,
    )
    assume(isinstance(decision, GiveUp))
    assert isinstance(decision, GiveUp)
    assert decision.reason.endswith(".")


def test_a_vague_word_is_asked_last() -> None:
    broken = RuntimeError("invalid response")
    broken.__cause__ = ConnectionResetError()
    assert classify(broken) == "transient_network"
    assert classify(ExceptionGroup("", [ValueError("invalid width"), TimeoutError()])) == (
        "validation_error"
    )
