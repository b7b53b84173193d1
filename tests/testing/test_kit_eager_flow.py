"""Flows in eager mode."""

import pytest

from penstock import (
    JobCancelled,
    JobFailed,
    Penstock,
    after,
    chain,
    group,
)
from penstock.store.contract import JobFilter
from penstock.testing import eager
from tests.app.kitchen import Kitchen, kitchen

__all__ = ["kitchen"]


async def test_an_eager_flow_runs_in_order(app: Penstock, kitchen: Kitchen) -> None:
    with eager(app):
        flow = await app.enqueue(
            group(kitchen.peel.new(1), kitchen.peel.new(2)) | kitchen.serve.new()
        )
        assert await flow.result() == [1, 2]
        job = await kitchen.cook.options(after=after(flow.jobs[0], data="dish")).enqueue()
        assert await job.result() == 11
        skipped = await kitchen.clean.options(after=after(job, condition="result > 11")).enqueue()
        with pytest.raises(JobCancelled, match="does not meet"):
            await skipped.result()
    assert await app.store.reader.find(JobFilter()) == []


async def test_an_eager_flow_stops_where_a_step_fails(app: Penstock, kitchen: Kitchen) -> None:
    with eager(app):
        flow = await app.enqueue(
            chain(kitchen.peel.new(4), kitchen.burn.new(), kitchen.clean.new())
        )
        with pytest.raises(JobFailed, match=r"step 2 of 3, 'burn': .*burnt 4"):
            await flow.result()
        assert kitchen.did == [("peel", 4)]
        anyway = await kitchen.clean.options(after=after(flow.jobs[1], on_failure="run")).enqueue()
        assert await anyway.result() == "clean"
        dead = await kitchen.clean.options(
            after=after(flow.jobs[1], on_failure="dead_letter")
        ).enqueue()
        with pytest.raises(JobFailed, match="dead_letter"):
            await dead.result()
        with pytest.raises(Exception, match="not in the store"):
            await kitchen.clean.options(after="01JD0000000000000000000000").enqueue()
