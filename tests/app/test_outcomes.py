from itertools import pairwise
from typing import Any

import pytest

from penstock import Cancel, Context, Dead, ErrorClass, Penstock, Retry, Snooze, Status
from penstock.config import Settings
from penstock.testing import FakeClock
from penstock.testing import drain as drain_app
from tests.support.places import Place

pytestmark = pytest.mark.thorough("postgres", "valkey")


async def _settled(app: Penstock, drain: Any, outcome: Any, how: str, **options: Any) -> Any:
    @app.job(**options)
    async def handler(ctx: Context) -> Any:
        if ctx.attempt == 1 and ctx.job.snoozes == 0:
            if how == "raised":
                raise outcome
            return outcome
        return "second time"

    job = await handler.enqueue()
    await drain()
    return job


@pytest.mark.parametrize("how", ["raised", "returned"])
@pytest.mark.quick("postgres", "valkey")
async def test_retry_spends_an_attempt_and_waits_as_told(
    app: Penstock, clock: FakeClock, drain: Any, how: str
) -> None:
    job = await _settled(app, drain, Retry(after=30, reason="warming up"), how)
    found = await job.get()
    assert (found.status, found.attempts, found.error) == (Status.FAILED, 1, "warming up")
    assert found.scheduled_at == clock.now() + 30_000
    await drain(through=30)
    assert await job.result(timeout=30) == "second time"


@pytest.mark.parametrize("how", ["raised", "returned"])
async def test_snooze_spends_no_attempt(
    app: Penstock, clock: FakeClock, drain: Any, how: str
) -> None:
    job = await _settled(app, drain, Snooze(30), how)
    found = await job.get()
    assert (found.status, found.attempts, found.snoozes) == (Status.PENDING, 0, 1)
    assert found.scheduled_at == clock.now() + 30_000
    await drain(through=30)
    assert await job.result(timeout=30) == "second time"
    assert (await job.get()).attempts == 1


@pytest.mark.parametrize("how", ["raised", "returned"])
async def test_cancel_ends_the_job_with_its_reason_redacted(
    app: Penstock, drain: Any, how: str
) -> None:
    job = await _settled(app, drain, Cancel("withdrawn, password=hunter2secret"), how)
    found = await job.get()
    assert found.status is Status.CANCELLED
    assert found.error is not None
    assert found.error.startswith("withdrawn")
    assert "hunter2secret" not in found.error


@pytest.mark.parametrize("how", ["raised", "returned"])
async def test_dead_makes_a_dead_letter_at_once(app: Penstock, drain: Any, how: str) -> None:
    job = await _settled(app, drain, Dead("the form is empty"), how, max_retries=9)
    assert (await job.get()).status is Status.DEAD_LETTER
    letter = await app.store.dead.get(job.id)
    assert letter is not None
    assert letter.error == "the form is empty"


async def test_a_retry_without_budget_is_a_dead_letter(app: Penstock, drain: Any) -> None:
    job = await _settled(app, drain, Retry(after=1), "raised", max_retries=0)
    assert (await job.get()).status is Status.DEAD_LETTER


async def test_snoozes_are_bounded(app: Penstock, clock: FakeClock, drain: Any) -> None:
    app.settings = app.settings.replace(max_snoozes=3)
    runs: list[int] = []

    @app.job
    async def never_ready() -> Any:
        runs.append(1)
        return Snooze(1, reason="not ready")

    job = await never_ready.enqueue()
    await drain(through=3600)
    found = await job.get()
    assert (len(runs), found.status, found.snoozes) == (4, Status.DEAD_LETTER, 3)
    assert "snoozed 3 times: not ready" in str(found.error)


@pytest.mark.parametrize(
    "outcome", [Snooze("soon"), Snooze(float("nan")), Retry(after="later"), Cancel(ValueError("x"))]
)
async def test_a_nonsensical_outcome_fails_the_job_and_not_the_worker(
    app: Penstock, drain: Any, outcome: Any
) -> None:
    job = await _settled(app, drain, outcome, "raised")
    found = await job.get()
    assert found.status in (Status.FAILED, Status.CANCELLED)
    assert found.lease_owner is None


async def test_a_rate_limit_spends_no_attempt_and_honours_retry_after(
    app: Penstock, clock: FakeClock, drain: Any
) -> None:
    class TooManyRequests(Exception):
        status_code = 429
        retry_after = 120

    @app.job
    async def call(ctx: Context) -> str:
        if ctx.job.snoozes == 0:
            raise TooManyRequests
        return "let in"

    job = await call.enqueue()
    await drain()
    found = await job.get()
    assert (found.status, found.attempts, found.snoozes) == (Status.FAILED, 0, 1)
    assert clock.now() + 120_000 <= found.scheduled_at <= clock.now() + 121_000
    await drain(through=130)
    assert await job.result(timeout=30) == "let in"
    assert (await job.get()).attempts == 1


async def test_a_rate_limit_is_bounded_too(app: Penstock, clock: FakeClock, drain: Any) -> None:
    @app.job(max_retries=1)
    async def call() -> None:
        raise RuntimeError("rate limit reached")

    job = await call.enqueue()
    await drain(through=86_400)
    found = await job.get()
    assert (found.status, found.snoozes) == (Status.DEAD_LETTER, 3)


async def test_an_error_that_cannot_get_better_is_not_retried(app: Penstock, drain: Any) -> None:
    @app.job(max_retries=5)
    async def read() -> None:
        raise PermissionError("not yours")

    job = await read.enqueue()
    await drain()
    found = await job.get()
    assert (found.status, found.attempts) == (Status.DEAD_LETTER, 1)


async def test_a_type_has_its_own_classes_budgets_and_cap(
    app: Penstock, clock: FakeClock, drain: Any
) -> None:
    runs: list[int] = []

    @app.job(
        max_retries=9,
        classify=[{KeyError: ErrorClass.TRANSIENT_NETWORK}],
        budgets={ErrorClass.TRANSIENT_NETWORK: 4},
        retry_cap=3,
    )
    async def flaky() -> None:
        runs.append(clock.now())
        raise KeyError("gone")

    job = await flaky.enqueue()
    await drain(through=3600)
    assert len(runs) == 5
    assert max(b - a for a, b in pairwise(runs)) <= 3_000
    executions = await app.executions(job.id)
    assert [e.error_class for e in executions] == ["transient_network"] * 5


@pytest.mark.parametrize(
    ("written", "asked", "runs", "because"),
    [
        ({}, {}, 3, "the default for class unknown"),
        ({"max_retries": 5}, {}, 6, "max_retries of its type or call"),
        ({"max_retries": 5}, {"max_retries": 3}, 4, "max_retries of its type or call"),
        ({}, {"max_retries": 3}, 4, "max_retries of its type or call"),
        (
            {"max_retries": 5, "budgets": {ErrorClass.UNKNOWN: 1}},
            {},
            2,
            "the budget of its type for class unknown",
        ),
    ],
    ids=["nothing", "type", "type and call", "call", "class"],
)
async def test_what_the_author_writes_wins_over_the_default_of_the_class(
    place: Place, written: Any, asked: Any, runs: int, because: str
) -> None:
    clock = FakeClock()
    async with Penstock(**place.settings, clock=clock) as app:

        @app.job(**written)
        async def broken() -> None:
            raise RuntimeError("a bug")

        job = await broken.options(**asked).enqueue()
        await drain_app(app)
        waits = await app.explain(job.id)
        assert f"number 2 of {runs} is due" in waits.reasons[0].sentence
        assert because in waits.reasons[0].sentence
        await drain_app(app, through=3_600)
        found = await job.get()
        assert (found.status, found.attempts) == (Status.DEAD_LETTER, runs)
        ended = await app.explain(job.id)
        assert f"used up: {because}." in ended.reasons[0].sentence


async def test_settings_give_types_that_say_nothing_their_defaults(place: Place) -> None:
    told = Settings(
        **place.settings,
        default_timeout=20,
        default_max_retries=4,
        default_retry_delay=7,
        default_backoff=3,
    )
    async with Penstock(settings=told, clock=FakeClock()) as app:

        @app.job
        async def silent() -> None:
            raise RuntimeError("a bug")

        @app.job(timeout=30, max_retries=0, retry_delay=1, backoff=1)
        async def outspoken() -> None: ...

        found = await (await silent.enqueue()).get()
        assert (found.timeout_ms, found.max_retries) == (20_000, 4)
        assert (found.retry_delay_ms, found.backoff_multiplier) == (7_000, 3)
        other = await (await outspoken.enqueue()).get()
        assert (other.timeout_ms, other.max_retries) == (30_000, 0)
        assert (other.retry_delay_ms, other.backoff_multiplier) == (1_000, 1)
        await drain_app(app, through=3_600)
        assert (await app.get(found.id)).attempts == 5


async def test_the_error_of_a_job_is_redacted(app: Penstock, drain: Any) -> None:
    @app.job(max_retries=0)
    async def leak() -> None:
        raise RuntimeError("login failed: password=hunter2secret \ud83d")

    job = await leak.enqueue()
    await drain()
    (execution,) = await app.executions(job.id)
    letter = await app.store.dead.get(job.id)
    for text in ((await job.get()).error, execution.error, execution.error_stack, str(letter)):
        assert "hunter2secret" not in str(text)
    assert "login failed" in str(execution.error)


async def test_an_exception_whose_text_raises_is_settled_like_any_other(
    app: Penstock, drain: Any
) -> None:
    class Rude(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    @app.job(max_retries=0)
    async def fail() -> None:
        raise Rude

    job = await fail.enqueue()
    await drain()
    assert (await job.get()).status is Status.DEAD_LETTER
