"""The handle on a whole flow: its result, its end, how far it is."""

import asyncio
from typing import Any

import pytest

from penstock import (
    JobCancelled,
    JobFailed,
    JobNotFound,
    Penstock,
    ResultTimeout,
    Status,
    chain,
    group,
)
from penstock.store.contract import Retention
from penstock.testing import FakeClock
from tests.app.kitchen import Kitchen, kitchen

__all__ = ["kitchen"]


async def test_a_failure_names_the_step_that_is_to_blame(
    app: Penstock, drain: Any, kitchen: Kitchen
) -> None:
    flow = await app.enqueue(
        chain(kitchen.peel.new(4), kitchen.burn.new(), kitchen.cook.new(), kitchen.clean.new())
    )
    await drain()
    with pytest.raises(JobFailed) as refused:
        await flow.result(timeout=5)
    assert refused.value.job_id == flow.jobs[1].id
    assert "step 2 of 4, 'burn'" in str(refused.value)
    assert "burnt 4" in str(refused.value)
    assert (await flow.progress()).counts == {
        Status.COMPLETED: 1,
        Status.DEAD_LETTER: 1,
        Status.CANCELLED: 2,
    }


async def test_a_cancelled_step_is_named_too(app: Penstock, drain: Any, kitchen: Kitchen) -> None:
    flow = await app.enqueue(group(kitchen.clean.new(), kitchen.peel.new(1) | kitchen.refuse.new()))
    await drain()
    with pytest.raises(JobCancelled, match="step 3 of 3, 'refuse': no 1"):
        await flow.result(timeout=5)


async def test_a_flow_that_is_not_done_in_time_says_what_it_waits_for(
    app: Penstock, kitchen: Kitchen
) -> None:
    flow = await app.enqueue(kitchen.peel.new(4) | kitchen.cook.new())
    with pytest.raises(ResultTimeout) as refused:
        await flow.result(timeout=0)
    assert refused.value.job_id == flow.jobs[1].id


async def test_cancelling_a_flow_cancels_all_that_waits(
    app: Penstock, drain: Any, kitchen: Kitchen
) -> None:
    flow = await app.enqueue(chain(kitchen.peel.new(4), kitchen.cook.new(), kitchen.clean.new()))
    answer = await flow.cancel("not hungry")
    assert answer == dict.fromkeys(flow.ids, Status.CANCELLED)
    progress = await flow.progress()
    assert (progress.total, progress.ended, progress.percent) == (3, 3, 100)
    await drain()
    assert kitchen.did == []
    with pytest.raises(JobCancelled, match="step 1 of 3, 'peel': not hungry"):
        await flow.result(timeout=5)


async def test_requeueing_the_step_that_failed_goes_on_with_the_flow(
    app: Penstock, drain: Any, kitchen: Kitchen
) -> None:
    flow = await app.enqueue(chain(kitchen.peel.new(4), kitchen.burn.new(), kitchen.cook.new()))
    await drain()
    burnt = flow.jobs[1].id

    @app.job(name="burn_better", aliases=["burnt"])
    async def better(dish: int) -> int:
        return dish

    app._types["burn"] = better  # pyright: ignore[reportPrivateUsage]
    await app.requeue(burnt)
    await drain()
    assert await flow.result(timeout=5) == 41


async def test_a_result_can_be_awaited_while_the_flow_runs(
    app: Penstock, drain: Any, kitchen: Kitchen
) -> None:
    flow = await app.enqueue(kitchen.peel.new(1) | kitchen.cook.new() | kitchen.cook.new())
    waiting = asyncio.create_task(flow.result(timeout=30))
    await drain()
    assert await waiting == 111


async def test_one_failed_end_is_told_without_waiting_for_the_others(
    app: Penstock, drain: Any, kitchen: Kitchen
) -> None:
    later = kitchen.peel.options(delay=3600).new(1)
    flow = await app.enqueue(group(later, kitchen.burn.new(2)))
    waiting = asyncio.create_task(flow.result(timeout=30))
    await drain()
    with pytest.raises(JobFailed, match=r"step 2 of 2, 'burn': .*burnt 2"):
        await waiting


async def test_a_flow_whose_jobs_were_pruned_says_so(
    app: Penstock, clock: FakeClock, drain: Any, kitchen: Kitchen
) -> None:
    flow = await app.enqueue(kitchen.peel.new(1) | kitchen.cook.new())
    await drain()
    clock.advance(8 * 86_400)
    assert (await app.store.upkeep.prune(Retention())).jobs == 2
    with pytest.raises(JobNotFound):
        await flow.result(timeout=5)
    with pytest.raises(JobNotFound):
        await flow.progress()
