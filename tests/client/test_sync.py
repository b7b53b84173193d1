from pathlib import Path

import pytest

from penstock import JobFailed, Penstock, Status
from penstock.testing import drain


@pytest.fixture
def shop(tmp_path: Path):  # type: ignore[no-untyped-def]
    app = Penstock(f"sqlite:///{tmp_path / 'work.db'}")
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


def test_the_sync_facade_joins_the_callers_transaction(shop: Penstock) -> None:
    @shop.job
    def task() -> None: ...

    shop.sync.find()
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
