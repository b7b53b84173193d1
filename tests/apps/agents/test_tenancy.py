from datetime import timedelta

import pytest
from msgspec import Struct

from penstock import Context, Penstock, Settings
from penstock.apps.agents.worker import Worker, add
from penstock.testing import FakeClock, drain
from tests.support.places import Place


class TreeData(Struct, rename="camel", kw_only=True):
    """How many generations follow."""

    depth: int


class Tree(Worker[TreeData, None]):
    """Enqueue a child, which enqueues a child."""

    name = "tree"

    async def process(self, data: TreeData, ctx: Context) -> None:
        if data.depth:
            await ctx.enqueue(Tree.new(TreeData(depth=data.depth - 1)))
        elif not ctx.job.metadata:
            raise ValueError("the last one fails once")


@pytest.mark.every_store
async def test_tenant_and_workspace_go_with_children_schedules_retries_and_requeues(
    place: Place, clock: FakeClock
) -> None:
    async with Penstock(**place.settings, settings=Settings(), clock=clock) as app:
        type_ = add(app, Tree, max_retries=1, retry_delay=1)
        await Tree.enqueue(TreeData(depth=2), tenant="north", workspace="w1")
        call = type_.options(tenant="north", workspace="w1", metadata={"once": 1}).new(depth=0)
        await app.schedule("by-the-clock", call, every=timedelta(seconds=10))
        await Tree.enqueue(TreeData(depth=1), tenant="south", workspace="w2")
        await drain(app, clock=clock, through=10)
        dead = await app.find(status="dead_letter", tenant_id="north")
        await app.store.jobs.requeue([job.id for job in dead])
        await drain(app, clock=clock)
        found = await app.find(tenant_id="north", limit=100)
        assert {job.workspace_id for job in found} == {"w1"}
        assert {job.schedule_id is None for job in found} == {True, False}
        assert len(found) == 4
        assert len(await app.find(workspace_id="w2", limit=100)) == 2
