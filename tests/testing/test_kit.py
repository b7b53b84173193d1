import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from penstock import Context, Penstock, Snooze, Status
from penstock.model.clock import SystemClock
from penstock.model.errors import InvalidOption
from penstock.testing import (
    FakeClock,
    Signals,
    assert_enqueued,
    assert_not_enqueued,
    drain,
    enqueued,
    in_memory,
)

STARTED = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def app(clock: FakeClock) -> Iterator[Penstock]:
    with in_memory(clock=clock) as application:
        yield application


async def test_drain_runs_what_is_due_and_what_that_enqueues(app: Penstock) -> None:
    @app.job
    async def leaf(number: int) -> int:
        return number

    @app.job
    async def root(ctx: Context, depth: int) -> None:
        if depth:
            await ctx.enqueue(root.new(depth - 1))
        await ctx.enqueue(leaf.new(depth))

    await root.enqueue(9)
    assert await drain(app) == (20, 0)
    assert {job.status for job in await enqueued(app)} == {Status.COMPLETED}


async def test_drain_leaves_what_is_not_due(app: Penstock) -> None:
    @app.job
    async def later() -> None: ...

    await later.options(delay=1).enqueue()
    assert await drain(app) == (0, 0)


async def test_drain_jumps_from_one_due_time_to_the_next(app: Penstock, clock: FakeClock) -> None:
    ran: list[tuple[int, int]] = []

    @app.job(retry_delay=0.5)
    async def task(number: int) -> Any:
        ran.append((number, clock.now()))
        if number == 3 and len(ran) == 3:
            return Snooze(5)
        return None

    start = clock.now()
    await task.options(delay=30).enqueue(2)
    await task.options(delay=10).enqueue(1)
    await task.options(delay=3600).enqueue(3)
    await task.options(delay=3606).enqueue(4)
    assert await drain(app, through=3605) == (3, 1)
    seconds = [(number, (at - start) / 1000) for number, at in ran]
    assert seconds == [(1, 10), (2, 30), (3, 3600), (3, 3605)]
    assert clock.now() - start == 3_605_000


async def test_drain_runs_retries_until_the_last(app: Penstock) -> None:
    @app.job(max_retries=2)
    async def broken() -> None:
        raise ConnectionError

    job = await broken.enqueue()
    assert await drain(app, through=3600) == (0, 3)
    assert (await job.get()).status is Status.DEAD_LETTER


async def test_drain_moves_only_a_fake_clock() -> None:
    with in_memory(clock=SystemClock()) as app:

        @app.job
        async def task() -> None: ...

        await task.enqueue()
        with pytest.raises(InvalidOption, match="FakeClock"):
            await drain(app, through=60)
        assert await drain(app) == (1, 0)


def test_drain_works_without_an_event_loop(app: Penstock) -> None:
    @app.job
    def task(number: int) -> int:
        return number

    job = app.sync.enqueue(task.options(delay=5).new(3))
    assert drain(app.sync) == (0, 0)
    assert drain(app.sync, through=5) == (1, 0)
    assert app.sync.result(job, timeout=30) == 3


async def test_enqueued_lists_every_job_oldest_first(app: Penstock) -> None:
    @app.job
    async def one(number: int) -> None: ...

    @app.job
    async def two() -> None: ...

    await app.enqueue_many([one.new(n) for n in range(1100)])
    await two.enqueue()
    assert [job.payload for job in await enqueued(app, one)][:2] == ['{"number":0}', '{"number":1}']
    assert len(await enqueued(app, "one")) == 1100
    assert len(await enqueued(app)) == 1101


async def test_assert_enqueued_matches_some_of_the_arguments(app: Penstock) -> None:
    @app.job
    async def remind(who: str, when: datetime, urgent: bool = False) -> None: ...

    await remind.enqueue("ada", STARTED)
    job = await remind.options(priority=2).enqueue("bob", when=STARTED, urgent=True)
    assert (await assert_enqueued(app, remind, who="bob")).id == job.id
    assert (await assert_enqueued(app, "remind", when=STARTED, urgent=True)).priority == 2
    await assert_enqueued(app, remind)
    await assert_not_enqueued(app, remind, who="eve")


async def test_assert_enqueued_tells_what_was_enqueued_instead(app: Penstock) -> None:
    @app.job
    async def remind(who: str) -> None: ...

    with pytest.raises(AssertionError, match="none at all"):
        await assert_enqueued(app, remind, who="bob")
    await remind.enqueue("ada")
    with pytest.raises(AssertionError, match=r"remind\(who='bob'\)(.|\n)*\"who\":\"ada\""):
        await assert_enqueued(app, remind, who="bob")
    with pytest.raises(AssertionError, match="A job was enqueued"):
        await assert_not_enqueued(app, remind)


def test_the_assertions_work_without_an_event_loop(app: Penstock) -> None:
    @app.job
    def task(number: int) -> None: ...

    app.sync.enqueue(task.new(3))
    assert assert_enqueued(app.sync, task, number=3).status is Status.QUEUED
    assert_not_enqueued(app.sync, task, number=4)
    assert len(enqueued(app.sync)) == 1


async def test_in_memory_borrows_an_application_and_gives_it_back(tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path / 'work.db'}"
    own = Penstock(url)

    @own.job
    async def task() -> None: ...

    with in_memory(own) as borrowed:
        assert borrowed is own
        await task.enqueue()
        assert await drain(own) == (1, 0)
    assert own.settings.url == url
    assert not (tmp_path / "work.db").exists()
    async with own:
        assert await own.find() == []
        store = own.store
        with in_memory(own):
            assert own.store is not store
            await task.enqueue()
            assert await drain(own) == (1, 0)
        assert own.store is store
        assert await own.find() == []


async def test_a_signal_sent_before_the_wait_counts() -> None:
    signals = Signals()
    signals.send("ran", 1)
    assert await signals.wait("ran") == 1
    assert signals.wait_in_thread("ran") == 1


async def test_a_signal_from_a_thread_wakes_the_event_loop() -> None:
    signals = Signals()
    waiting = asyncio.create_task(signals.wait("ran", times=2))
    await asyncio.to_thread(signals.send, "ran", "a")
    await asyncio.to_thread(signals.send, "ran", "b")
    assert await waiting == "b"
    assert signals.values("ran") == ["a", "b"]


async def test_a_signal_that_never_comes_is_named() -> None:
    signals = Signals()
    with pytest.raises(TimeoutError, match="'ran' came 0 times"):
        await signals.wait("ran", timeout=0.01)
    with pytest.raises(TimeoutError, match="'ran' came 0 times"):
        signals.wait_in_thread("ran", timeout=0.01)
