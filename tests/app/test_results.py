import asyncio
from typing import Any

import pytest

from penstock import Cancel, Dead, JobCancelled, JobFailed, JobNotFound, Penstock, ResultTimeout
from penstock.testing import Signals


async def test_a_result_waits_until_the_job_has_ended(app: Penstock, drain: Any) -> None:
    @app.job
    async def double(number: int) -> int:
        return 2 * number

    job = await double.enqueue(21)
    waiting = asyncio.create_task(job.result(timeout=30))
    await drain()
    assert await waiting == 42


async def test_a_failed_job_raises_its_error(app: Penstock, drain: Any) -> None:
    @app.job
    async def give_up() -> None:
        raise Dead("the form is empty")

    job = await give_up.enqueue()
    await drain()
    with pytest.raises(JobFailed, match=r"dead_letter: the form is empty"):
        await job.result(timeout=30)


async def test_a_cancelled_job_raises_job_cancelled_with_the_reason(
    app: Penstock, drain: Any
) -> None:
    @app.job
    async def withdraw() -> None:
        raise Cancel("withdrawn by the customer")

    job = await withdraw.enqueue()
    await drain()
    with pytest.raises(JobCancelled, match="withdrawn by the customer"):
        await job.result(timeout=30)


async def test_a_wait_that_runs_out_says_where_the_job_stands(app: Penstock) -> None:
    @app.job
    async def later() -> None: ...

    job = await later.options(delay=60).enqueue()
    with pytest.raises(ResultTimeout, match=r"still pending"):
        await job.result(timeout=0.5)


async def test_the_result_of_a_job_nobody_knows_is_not_found(app: Penstock) -> None:
    @app.job
    async def known() -> None: ...

    job = await known.enqueue()
    job.id = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
    with pytest.raises(JobNotFound):
        await job.result(timeout=30)


async def test_a_handle_made_from_an_id_gives_the_typed_value(app: Penstock, drain: Any) -> None:
    @app.job
    async def numbers() -> set[int]:
        return {1, 2}

    enqueued = await numbers.enqueue()
    await drain()
    assert await (await app.handle(enqueued.id)).result(timeout=30) == {1, 2}


async def test_several_waiters_get_the_same_value(app: Penstock, drain: Any) -> None:
    signals = Signals()

    @app.job
    async def once() -> str:
        signals.send("ran")
        return "done"

    job = await once.enqueue()
    waiters = [asyncio.create_task(job.result(timeout=30)) for _ in range(5)]
    await drain()
    assert await asyncio.gather(*waiters) == ["done"] * 5
    assert len(signals.values("ran")) == 1
