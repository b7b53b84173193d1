import asyncio
from collections.abc import Iterator

import pytest

from penstock import JobFailed, Penstock, Status
from penstock.model.store_errors import NoTransactions
from penstock.testing import drain
from tests.support.places import Place


@pytest.fixture
def shop(place: Place) -> Iterator[Penstock]:
    app = Penstock(**place.settings)
    yield app
    app.sync.close()


def test_the_sync_facade_enqueues_finds_and_waits(shop: Penstock) -> None:
    @shop.job
    def resize(path: str, width: int) -> str:
        return f"{path}@{width}"

    job = shop.sync.enqueue(resize.new("a.png", 100))
    many = shop.sync.enqueue_many([resize.new("b.png", n) for n in (1, 2)])
    assert shop.sync.get(job.id).status is Status.QUEUED
    assert len(shop.sync.find(type="resize")) == 3
    assert drain(shop.sync).completed == 3
    assert shop.sync.result(job, timeout=30) == "a.png@100"
    assert [shop.sync.result(j, timeout=30) for j in many] == ["b.png@1", "b.png@2"]


def test_the_sync_facade_cancels_and_requeues(shop: Penstock) -> None:
    @shop.job
    def task() -> None:
        raise KeyError("x")

    job = shop.sync.enqueue(task.options(max_retries=0).new())
    assert shop.sync.cancel(job.id) is Status.CANCELLED
    assert shop.sync.requeue(job.id).status is Status.PENDING
    drain(shop.sync)
    with pytest.raises(JobFailed, match="dead_letter"):
        shop.sync.result(job, timeout=30)


def test_the_sync_facade_joins_the_callers_transaction(shop: Penstock, kind_of_store: str) -> None:
    @shop.job
    def task() -> None: ...

    shop.sync.find()
    if kind_of_store == "valkey":
        with pytest.raises(NoTransactions):
            shop.sync.enqueue(task.new(), connection=object())
        return
    connection = shop.connection()
    with connection:
        shop.sync.enqueue(task.new(), connection=connection)
    assert len(shop.sync.find()) == 1
    connection.close()


def test_the_sync_facade_opens_again_after_it_was_closed(shop: Penstock) -> None:
    @shop.job
    def task() -> None: ...

    shop.sync.enqueue(task.new())
    shop.sync.close()
    shop.sync.close()
    assert len(shop.sync.find()) == 1


async def test_the_facade_and_the_event_loop_share_one_store(shop: Penstock) -> None:
    @shop.job
    def task() -> None: ...

    async with shop:
        shop.sync.enqueue(task.new())
        shop.sync.close()
        assert len(await shop.find()) == 1


async def test_threads_and_the_event_loop_use_one_store_at_once(shop: Penstock) -> None:
    @shop.job
    async def add(a: int, b: int) -> int:
        return a + b

    def in_a_thread(number: int) -> list[str]:
        made = [shop.sync.enqueue(add.new(number, each)).id for each in range(5)]
        assert all(shop.sync.get(job_id).type == "add" for job_id in made)
        return made

    async def in_the_loop(number: int) -> list[str]:
        made = [(await add.enqueue(number, each)).id for each in range(5)]
        assert all([(await shop.get(job_id)).type == "add" for job_id in made])
        return made

    async with shop:
        made = await asyncio.gather(
            *(asyncio.to_thread(in_a_thread, number) for number in range(4)),
            *(in_the_loop(number) for number in range(4)),
        )
        assert len({job_id for ids in made for job_id in ids}) == 40
        assert (await drain(shop)).completed == 40
        await asyncio.to_thread(shop.sync.close)
        assert {job.status for job in await shop.find(limit=100)} == {Status.COMPLETED}


async def test_a_thread_hears_of_the_end_of_a_job_that_the_event_loop_runs(shop: Penstock) -> None:
    @shop.job
    async def add(a: int, b: int) -> int:
        return a + b

    async with shop:
        loop = asyncio.get_running_loop()
        enqueued = asyncio.Event()

        def in_a_thread() -> int:
            job = shop.sync.enqueue(add.new(2, 3))
            loop.call_soon_threadsafe(enqueued.set)
            return shop.sync.result(job, timeout=30)

        asked = asyncio.create_task(asyncio.to_thread(in_a_thread))
        await enqueued.wait()
        assert (await drain(shop)).completed == 1
        assert await asked == 5


def test_the_facade_goes_on_while_event_loops_come_and_go(shop: Penstock) -> None:
    @shop.job
    def task() -> None: ...

    async def in_a_loop() -> int:
        async with shop:
            job = await task.enqueue()
            await drain(shop)
            await job.result(timeout=30)
            return len(await shop.find())

    assert asyncio.run(in_a_loop()) == 1
    shop.sync.enqueue(task.new())
    assert asyncio.run(in_a_loop()) == 3
    assert asyncio.run(in_a_loop()) == 4
    job = shop.sync.enqueue(task.new())
    drain(shop.sync)
    assert shop.sync.result(job, timeout=30) is None


def test_an_event_loop_that_opens_first_may_end_first(shop: Penstock) -> None:
    @shop.job
    def task() -> None: ...

    async def in_a_loop() -> None:
        async with shop:
            await task.enqueue()
            shop.sync.enqueue(task.new())

    asyncio.run(in_a_loop())
    drain(shop.sync)
    assert {job.status for job in shop.sync.find()} == {Status.COMPLETED}
    job = shop.sync.enqueue(task.new())
    drain(shop.sync)
    assert shop.sync.result(job, timeout=30) is None


def test_a_loop_that_never_opened_the_store_uses_what_the_facade_opened(shop: Penstock) -> None:
    @shop.job
    def task() -> None: ...

    shop.sync.enqueue(task.new())

    async def in_a_loop() -> int:
        await task.enqueue()
        return len(await shop.find())

    assert asyncio.run(in_a_loop()) == 2
    assert len(shop.sync.find()) == 2
