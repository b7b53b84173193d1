import asyncio
from typing import Any

from penstock import Cancel, Context, Dead, Penstock, Retry, Snooze, Status
from penstock.testing import FakeClock


async def test_middleware_wraps_in_the_order_it_was_registered(app: Penstock, drain: Any) -> None:
    steps: list[str] = []

    @app.middleware
    async def outer(ctx: Context, call_next: Any) -> Any:
        steps.append("outer in")
        value = await call_next()
        steps.append("outer out")
        return value

    @app.middleware
    async def inner(ctx: Context, call_next: Any) -> Any:
        steps.append("inner in")
        value = await call_next()
        steps.append("inner out")
        return value + 1

    @app.job
    def handler() -> int:
        steps.append("handler")
        return 1

    job = await handler.enqueue()
    await drain()
    assert steps == ["outer in", "inner in", "handler", "inner out", "outer out"]
    assert await job.result(timeout=30) == 2


async def test_middleware_may_answer_without_the_handler(app: Penstock, drain: Any) -> None:
    ran: list[str] = []

    @app.middleware
    async def cached(ctx: Context, call_next: Any) -> Any:
        return "from the cache"

    @app.job
    async def handler() -> str:
        ran.append("handler")
        return "computed"

    job = await handler.enqueue()
    await drain()
    assert (await job.result(timeout=30), ran) == ("from the cache", [])


async def test_middleware_that_raises_fails_the_job(app: Penstock, drain: Any) -> None:
    @app.middleware
    async def guard(ctx: Context, call_next: Any) -> Any:
        raise Dead("not today")

    @app.job
    async def handler() -> None: ...

    job = await handler.enqueue()
    await drain()
    assert (await job.get()).status is Status.DEAD_LETTER


async def test_hooks_hear_of_start_completion_and_failure(
    app: Penstock, clock: FakeClock, drain: Any
) -> None:
    heard: list[Any] = []
    app.on_start(lambda ctx: heard.append(("start", ctx.attempt)))

    @app.on_complete
    async def completed(ctx: Context, result: Any) -> None:
        await asyncio.sleep(0)
        heard.append(("complete", result))

    @app.on_failed
    def failed(ctx: Context, error: BaseException) -> None:
        heard.append(("failed", type(error).__name__))

    @app.job
    async def flaky(ctx: Context) -> int:
        if ctx.attempt == 1:
            raise ConnectionError
        return 7

    await flaky.enqueue()
    await drain(through=10)
    assert heard == [("start", 1), ("failed", "ConnectionError"), ("start", 2), ("complete", 7)]


async def test_a_hook_knows_whether_a_failure_is_tried_again(app: Penstock, drain: Any) -> None:
    heard: list[bool] = []
    app.on_failed(lambda ctx, error: heard.append(ctx.will_retry))

    @app.job(max_retries=1)
    async def hopeless() -> None:
        raise ConnectionError

    await hopeless.enqueue()
    await drain(through=60)
    assert heard == [True, False]


async def test_only_a_value_is_a_completion_and_only_trouble_a_failure(
    app: Penstock, drain: Any
) -> None:
    heard: list[Any] = []
    app.on_complete(lambda ctx, result: heard.append("complete"))
    app.on_failed(lambda ctx, error: heard.append(type(error).__name__))
    outcomes = [Snooze(60), Cancel("no"), Retry(after=60), Dead("never")]

    @app.job
    async def returns(which: int) -> Any:
        return outcomes[which]

    @app.job
    async def raises(which: int) -> Any:
        raise outcomes[which]

    for which in range(4):
        await returns.enqueue(which)
        await raises.enqueue(which)
    await drain()
    assert sorted(heard) == ["Dead", "Dead", "Retry", "Retry"]


async def test_a_hook_hears_of_progress_once_it_is_written(app: Penstock, drain: Any) -> None:
    heard: list[tuple[str, float, str | None]] = []

    @app.on_progress
    async def progressed(ctx: Context, percent: float, message: str | None) -> None:
        heard.append((ctx.id, percent, message))

    @app.job
    async def steps(ctx: Context) -> None:
        ctx.progress(10, "first")
        await ctx.save_checkpoint(1)
        ctx.progress(90, "last")

    job = await steps.enqueue()
    await drain()
    assert heard == [(job.id, 10, "first"), (job.id, 90, "last")]


async def test_a_hook_that_fails_changes_nothing(app: Penstock, drain: Any) -> None:
    def broken(*args: Any) -> None:
        raise RuntimeError("broken hook")

    app.on_start(broken)
    app.on_complete(broken)
    app.on_progress(broken)

    @app.job
    async def handler(ctx: Context) -> str:
        ctx.progress(50)
        return "fine"

    job = await handler.enqueue()
    await drain()
    assert await job.result(timeout=30) == "fine"
