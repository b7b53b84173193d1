import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from penstock import Context, Penstock, Status, Worker
from penstock.model.errors import InvalidOption
from penstock.testing import FakeClock, Signals

pytestmark = pytest.mark.thorough("postgres", "valkey")


@pytest.mark.quick("postgres", "valkey")
async def test_a_context_knows_its_execution(app: Penstock, clock: FakeClock, drain: Any) -> None:
    seen: list[tuple[int, int, str]] = []

    @app.job
    async def flaky(ctx: Context) -> None:
        seen.append((ctx.attempt, ctx.fence, ctx.idempotency_key))
        if ctx.attempt < 3:
            raise ConnectionError

    job = await flaky.enqueue()
    keyed = await flaky.options(key="order-7").enqueue()
    await drain(through=60)
    assert sorted(s for s in seen if s[2] == job.id) == [(n, n, job.id) for n in (1, 2, 3)]
    assert {s[2] for s in seen} == {job.id, "order-7"}
    assert (await keyed.get()).attempts == 3


async def test_a_context_knows_its_worker(app: Penstock, drain: Any) -> None:
    @app.job
    def task(ctx: Context) -> str | None:
        return ctx.worker

    job = await task.enqueue()
    await drain()
    [execution] = await app.executions(job.id)
    assert await job.result() == execution.worker


async def test_a_context_tells_the_time_of_the_store(
    app: Penstock, clock: FakeClock, drain: Any
) -> None:
    @app.job
    async def loop(ctx: Context) -> str:
        return ctx.now.isoformat()

    @app.job
    def thread(ctx: Context) -> str:
        return ctx.now.isoformat()

    clock.set_wall("2026-03-29T01:30:00.250Z")
    jobs = [await loop.enqueue(), await thread.enqueue()]
    await drain()
    for job in jobs:
        assert await job.result(timeout=30) == "2026-03-29T01:30:00.250000+00:00"


async def test_children_know_their_parent(app: Penstock, drain: Any) -> None:
    @app.job
    async def child(number: int) -> int:
        return number

    @app.job
    async def parent(ctx: Context) -> str:
        return (await ctx.enqueue(child.options(priority=2).new(1))).id

    @app.job
    def sync_parent(ctx: Context) -> str:
        return ctx.sync.enqueue(child.new(2)).id

    for handler in (parent, sync_parent):
        job = await handler.enqueue()
        await drain()
        child_id = await job.result(timeout=30)
        found = await app.get(child_id)
        assert (found.parent_job_id, found.status) == (job.id, Status.COMPLETED)
        assert [j.id for j in await app.find(parent_job_id=job.id)] == [child_id]


async def test_a_checkpoint_survives_a_retry(app: Penstock, clock: FakeClock, drain: Any) -> None:
    seen: list[Any] = []

    @app.job
    async def steps(ctx: Context) -> None:
        seen.append(ctx.checkpoint)
        done = ctx.checkpoint or {"page": 0}
        await ctx.save_checkpoint({"page": done["page"] + 1})
        assert ctx.checkpoint == {"page": done["page"] + 1}
        if done["page"] < 2:
            raise ConnectionError

    job = await steps.enqueue()
    await drain(through=60)
    assert seen == [None, {"page": 1}, {"page": 2}]
    assert (await job.get()).checkpoint == '{"page":3}'


async def test_a_sync_handler_saves_a_checkpoint_too(
    app: Penstock, clock: FakeClock, drain: Any
) -> None:
    seen: list[Any] = []

    @app.job
    def steps(ctx: Context) -> None:
        seen.append(ctx.checkpoint)
        ctx.sync.save_checkpoint([1])
        if ctx.attempt == 1:
            raise ConnectionError

    await steps.enqueue()
    await drain(through=60)
    assert seen == [None, [1]]


async def test_a_checkpoint_survives_a_snooze_and_a_hand_back(app: Penstock, drain: Any) -> None:
    signals = Signals()

    @app.job
    async def long(ctx: Context) -> Any:
        if ctx.checkpoint is None:
            await ctx.save_checkpoint("half way")
            signals.send("saved")
            await asyncio.Event().wait()
        return ctx.checkpoint

    job = await long.enqueue()
    worker = Worker(app, upkeep=False)
    running = asyncio.create_task(worker.run())
    await signals.wait("saved")
    worker.stop()
    worker.stop()
    await running
    assert (await job.get()).attempts == 0
    await drain()
    assert await job.result(timeout=30) == "half way"


async def test_log_lines_are_kept_with_the_job_and_redacted(app: Penstock, drain: Any) -> None:
    @app.job
    async def chatty(ctx: Context) -> None:
        ctx.log("starting")
        ctx.log("password=hunter2secret", level="warning")
        ctx.log("half a \ud83d pair")

    job = await chatty.enqueue()
    await drain()
    lines = await app.logs(job.id)
    assert [(line.level, line.fence) for line in lines] == [
        ("info", 1),
        ("warning", 1),
        ("info", 1),
    ]
    assert lines[0].message == "starting"
    assert "hunter2secret" not in lines[1].message
    assert "REDACTED" in lines[1].message
    assert lines[2].message == "half a ? pair"


async def test_progress_is_stored_while_the_job_runs(app: Penstock) -> None:
    signals = Signals()

    @app.job
    async def long(ctx: Context) -> None:
        ctx.progress(40, "half of it")
        signals.send("told")
        await asyncio.to_thread(signals.wait_in_thread, "seen")

    job = await long.enqueue()
    worker = Worker(app, upkeep=False, burst=True)
    running = asyncio.create_task(worker.run())
    await signals.wait("told")
    async for state in app.store.reader.watch([job.id]):
        if state.progress_percent is not None:
            assert (state.progress_percent, state.progress_message) == (40, "half of it")
            break
    signals.send("seen")
    await running
    assert await job.result(timeout=30) is None


async def test_an_object_of_progress_is_kept_as_it_is_without_its_secrets(
    app: Penstock, drain: Any
) -> None:
    told: list[Any] = []

    @app.on_progress
    async def hear(ctx: Context, percent: float | None, message: str | None) -> None:
        told.append((percent, message))

    @app.job
    async def task(ctx: Context, progress: dict[str, Any]) -> None:
        ctx.progress(progress)

    said = {"phase": "load", "percent": 5, "token": "password=hunter2hunter2"}
    job = await task.enqueue(said)
    await drain()
    found = await job.get()
    assert (found.progress_percent, found.progress_message) == (5, "load")
    assert json.loads(found.progress or "") == {**said, "token": "password=[REDACTED_PASSWORD]"}
    assert told == [(5.0, "load")]


@pytest.mark.parametrize(
    "progress", [{"percent": 101}, {"percent": "x"}, {"x": object()}, {"x": "y" * 5_000}]
)
async def test_an_object_that_cannot_be_kept_is_refused(
    app: Penstock, drain: Any, progress: dict[str, Any]
) -> None:
    refused: list[InvalidOption] = []

    @app.job
    async def task(ctx: Context) -> None:
        with pytest.raises(InvalidOption) as error:
            ctx.progress(progress)
        refused.append(error.value)

    job = await task.enqueue()
    await drain()
    assert (len(refused), (await job.get()).progress) == (1, None)


async def test_bad_progress_and_bad_levels_are_refused(app: Penstock, drain: Any) -> None:
    refused: list[str] = []

    @app.job
    async def wrong(ctx: Context) -> None:
        for attempt in (lambda: ctx.progress(101), lambda: ctx.log("x", level="loud")):
            with pytest.raises(InvalidOption) as error:
                attempt()
            refused.append(error.value.option)

    await wrong.enqueue()
    await drain()
    assert refused == ["percent", "level"]


async def test_a_running_job_hears_of_a_cancel_from_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'work.db'}"
    app, elsewhere = Penstock(url), Penstock(url)
    signals = Signals()
    request_stop = Context.request_stop

    def signalled(self: Context) -> None:
        request_stop(self)
        signals.send("stop requested")

    monkeypatch.setattr(Context, "request_stop", signalled)

    @app.job
    async def long(ctx: Context) -> None:
        signals.send("started")
        await signals.wait("stop requested")
        signals.send("heard", ctx.cancelled)

    async with app, elsewhere:
        job = await long.enqueue()
        running = asyncio.create_task(Worker(app, upkeep=False, burst=True).run())
        await signals.wait("started")
        assert await elsewhere.cancel(job.id, "the order was withdrawn") is Status.IN_PROGRESS
        assert await signals.wait("heard") is True
        await running
        ended = await elsewhere.get(job.id)
        assert ended.status is Status.COMPLETED  # a value returned first wins
