from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from penstock import JobNotFound, KeyScope, Penstock, Status
from penstock.model.errors import (
    IllegalTransition,
    InvalidArguments,
    InvalidOption,
    KeyTaken,
    PenstockError,
)
from penstock.model.store_errors import ForeignConnection, TransactionHeld


async def test_many_jobs_are_enqueued_in_order(app: Penstock, drain: Any) -> None:
    @app.job
    async def double(number: int) -> int:
        return 2 * number

    jobs = await app.enqueue_many([double.new(n) for n in range(100)])
    await drain()
    assert [await job.result(timeout=30) for job in jobs] == [2 * n for n in range(100)]


async def test_none_of_many_is_enqueued_when_one_is_wrong(app: Penstock) -> None:
    @app.job
    async def double(number: int) -> None: ...

    with pytest.raises(InvalidArguments):
        await app.enqueue_many([double.new(1), double.new("two")])  # type: ignore[arg-type]
    assert await app.find() == []


async def test_many_is_one_transaction(app: Penstock) -> None:
    @app.job
    async def double(number: int) -> None: ...

    prepared = [double.new(n) for n in range(3)]
    # The store's own check refuses what no client would send.
    prepared[2].job = msgspec.structs.replace(prepared[2].job, priority=99)
    with pytest.raises(PenstockError):
        await app.enqueue_many(prepared)
    assert await app.find() == []


async def test_enqueueing_none_is_fine(app: Penstock) -> None:
    assert await app.enqueue_many([]) == []


async def test_the_same_call_enqueued_twice_is_one_job(app: Penstock) -> None:
    @app.job
    async def pay(amount: int) -> None: ...

    prepared = pay.new(5)
    first, again = await app.enqueue(prepared), await app.enqueue(prepared)
    assert (first.id, first.created, again.created) == (again.id, True, False)


async def test_a_job_is_found_by_what_it_is(app: Penstock) -> None:
    @app.job(queue="mail")
    async def send(number: int) -> None: ...

    @app.job
    async def other() -> None: ...

    sent = [await send.options(tags=(f"t{n}",), tenant="a").enqueue(n) for n in range(3)]
    await other.options(delay=5).enqueue()
    assert [job.id for job in await app.find(queue="mail")] == [h.id for h in reversed(sent)]
    assert [job.id for job in await app.find(tag="t1")] == [sent[1].id]
    assert [job.type for job in await app.find(status="pending")] == ["other"]
    assert [job.id for job in await app.find(type="send", before=sent[1].id)] == [sent[0].id]
    assert len(await app.find(tenant_id="a", limit=2)) == 2


async def test_a_filter_nobody_knows_is_refused(app: Penstock) -> None:
    with pytest.raises(InvalidOption, match=r"'status'.*one of: pending, queued"):
        await app.find(status="asleep")
    with pytest.raises(InvalidOption, match="filter"):
        await app.find(colour="red")


async def test_a_job_nobody_knows_is_not_found(app: Penstock) -> None:
    for look in (app.get, app.cancel, app.requeue, app.handle):
        with pytest.raises(JobNotFound, match="01ARZ3NDEKTSV4RRFFQ69G5FAV"):
            await look("01ARZ3NDEKTSV4RRFFQ69G5FAV")


async def test_a_waiting_job_is_cancelled_at_once_and_can_be_requeued(
    app: Penstock, drain: Any
) -> None:
    @app.job
    async def task() -> str:
        return "ran"

    job = await task.enqueue()
    assert await job.cancel("not needed") is Status.CANCELLED
    assert (await job.get()).error == "not needed"
    assert await drain() == (0, 0)
    requeued = await app.requeue(job.id)
    assert (requeued.status, requeued.error) == (Status.PENDING, None)
    await drain()
    assert await job.result(timeout=30) == "ran"


async def test_a_completed_job_cannot_be_requeued(app: Penstock, drain: Any) -> None:
    @app.job
    async def task() -> None: ...

    job = await task.enqueue()
    await drain()
    with pytest.raises(IllegalTransition, match="completed"):
        await app.requeue(job.id)


async def test_a_requeue_that_finds_its_key_taken_names_the_holder(
    app: Penstock, drain: Any
) -> None:
    @app.job
    async def task() -> None: ...

    keyed = task.options(key="k", key_scope=KeyScope.UNTIL_DONE)
    first = await keyed.enqueue()
    await first.cancel()
    second = await keyed.enqueue()
    with pytest.raises(KeyTaken, match=second.id):
        await app.requeue(first.id)


async def test_an_enqueue_joins_the_callers_transaction(tmp_path: Path) -> None:
    app = Penstock(f"sqlite:///{tmp_path / 'work.db'}")

    @app.job
    async def send(to: str) -> None: ...

    async with app:
        connection = app.connection()
        connection.execute("BEGIN IMMEDIATE")
        await send.enqueue("a", connection=connection)
        connection.execute("ROLLBACK")
        assert await app.find() == []
        with connection:
            await send.options(priority=1).enqueue("b", connection=connection)
            await app.enqueue(send.new("c"), connection=connection)
            await send.options(connection=connection).enqueue("d")
            assert await app.find() == []
        assert len(await app.find()) == 3
        connection.close()


async def test_a_connection_of_another_library_is_refused(tmp_path: Path) -> None:
    app = Penstock(f"sqlite:///{tmp_path / 'work.db'}")

    @app.job
    async def send() -> None: ...

    async with app:
        with pytest.raises(ForeignConnection, match=r"app\.connection"):
            await send.enqueue(connection=object())
        other = apsw.Connection(str(tmp_path / "other.db"))
        with pytest.raises(ForeignConnection):
            await send.enqueue(connection=other)
        other.close()


async def test_a_plain_enqueue_inside_ones_own_transaction_is_told_so(tmp_path: Path) -> None:
    app = Penstock(f"sqlite:///{tmp_path / 'work.db'}")

    @app.job
    async def send() -> None: ...

    async with app:
        connection = app.connection()
        connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(TransactionHeld, match="connection="):
            await send.enqueue()
        connection.execute("ROLLBACK")
        await send.enqueue()
        connection.close()


async def test_a_handler_may_have_an_argument_named_connection(app: Penstock, drain: Any) -> None:
    @app.job
    async def dial(connection: str) -> str:
        return connection

    job = await dial.enqueue(connection="line 1")
    await drain()
    assert await job.result(timeout=30) == "line 1"
