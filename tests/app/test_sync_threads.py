"""`app.sync` writes from the thread of its caller, on every store."""

import threading
from collections.abc import Iterator, Sequence

import pytest

from penstock import Penstock, PenstockError
from penstock.config import Settings
from penstock.model.job import Enqueued, NewJob
from penstock.model.store_errors import TransactionHeld
from tests.support.places import Place


@pytest.fixture
def shop(place: Place) -> Iterator[Penstock]:
    app = Penstock(settings=Settings(**place.settings))
    yield app
    app.sync.close()


def test_an_enqueue_is_written_by_the_thread_that_calls(
    shop: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    @shop.job
    def task() -> None: ...

    shop.sync.enqueue(task.new())  # measures the queue first, which takes an event loop
    threads: list[str] = []
    write = shop.store.jobs.enqueue_now

    def enqueue_now(jobs: Sequence[NewJob]) -> list[Enqueued]:
        threads.append(threading.current_thread().name)
        return write(jobs)

    monkeypatch.setattr(shop.store.jobs, "enqueue_now", enqueue_now)
    shop.sync.enqueue(task.new())
    shop.sync.enqueue_many(task.new() for _ in range(2))  # type: ignore[arg-type, call-overload]
    assert threads == [threading.current_thread().name] * 2
    assert len(shop.sync.find(type="task")) == 4


def test_a_call_in_a_forked_process_is_refused_instead_of_waiting_for_ever(
    shop: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread of its event loop is not there after a fork."""
    shop.sync.find()
    with monkeypatch.context() as child:
        child.setattr("os.getpid", lambda: 1)
        with pytest.raises(PenstockError, match="before this process was forked"):
            shop.sync.find()
    assert shop.sync.find() == []


@pytest.mark.parametrize("kind_of_store", ["sqlite"])
def test_an_enqueue_while_the_caller_holds_the_write_lock_is_refused(shop: Penstock) -> None:
    @shop.job
    def task() -> None: ...

    shop.sync.enqueue(task.new())
    connection = shop.connection()
    connection.execute("BEGIN IMMEDIATE")
    with pytest.raises(TransactionHeld):
        shop.sync.enqueue(task.new())
    connection.close()


def test_a_hook_that_must_be_awaited_is_asked_all_the_same(shop: Penstock) -> None:
    @shop.job
    def task() -> None: ...

    asked: list[int] = []

    @shop.admit
    async def ask(jobs: list[NewJob]) -> None:
        asked.append(len(jobs))

    shop.sync.enqueue(task.new())
    shop.sync.enqueue(task.new())
    assert asked == [1, 1]
