"""What began in one store goes on in another, in the eyes of an application."""

from pathlib import Path

import pytest

from penstock import FlowHandle, Penstock, group
from penstock.operate.move import move
from penstock.testing import FakeClock, drain
from tests.app.kitchen import Kitchen

PLACES = {
    "postgres": ("postgres_store_url", None),
    "redis": ("valkey_url", None),
    "postgres+redis": ("postgres_store_url", "valkey_url"),
}


@pytest.fixture(params=PLACES)
def moved_to(request: pytest.FixtureRequest, clock: FakeClock) -> Penstock:
    """The application where its jobs are moved."""
    url, dispatch = PLACES[request.param]
    beside = request.getfixturevalue(dispatch) if dispatch else None
    return Penstock(request.getfixturevalue(url), dispatch=beside, clock=clock)


async def half_done(app: Penstock) -> tuple[FlowHandle[list[int]], str]:
    """A flow that stands still in its middle, a dead letter, and a schedule beside it."""
    kitchen = Kitchen(app)
    night = kitchen.peel.options(queue="night", priority=9)
    async with app:
        await app.controls.pause(queue="night", reason="quiet")
        flow = await app.enqueue(group(kitchen.peel.new(1), night.new(2)) | kitchen.serve.new())
        burnt = await kitchen.burn.enqueue(3)
        await app.schedule("hourly", kitchen.clean.new(), every=3600)
        await drain(app)
        assert (await flow.progress()).ended == 1
    return flow, burnt.id


async def test_a_flow_ends_where_its_second_half_was_moved(
    tmp_path: Path, clock: FakeClock, moved_to: Penstock
) -> None:
    old = Penstock(f"sqlite:///{tmp_path}/work.db", clock=clock)
    flow, burnt = await half_done(old)
    await move(old.settings.url, moved_to.settings.url, clock=clock)
    kitchen = Kitchen(moved_to)
    async with moved_to:
        assert (await drain(moved_to)).completed == 0
        assert await moved_to.controls.resume(queue="night")
        await drain(moved_to)
        assert kitchen.did == [("peel", 2), ("serve", [1, 2])]
        assert (await moved_to.get(flow.ids[-1])).result == "[1,2]"
        assert [letter.newest_id for letter in await moved_to.dead.groups()] == [burnt]


async def test_a_schedule_fires_at_the_same_moment_where_it_was_moved(
    tmp_path: Path, clock: FakeClock, moved_to: Penstock
) -> None:
    old = Penstock(f"sqlite:///{tmp_path}/work.db", clock=clock)
    await half_done(old)
    async with old:
        expected = (await old.schedules.get("hourly")).next_run
    await move(old.settings.url, moved_to.settings.url, clock=clock)
    kitchen = Kitchen(moved_to)
    async with moved_to:
        assert (await moved_to.schedules.get("hourly")).next_run == expected
        await drain(moved_to, through=3600)
        assert kitchen.did == ["clean"]
