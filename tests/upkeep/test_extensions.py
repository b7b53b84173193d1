"""What extensions have running: passes while the process leads, services in every one."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from penstock import Penstock, Worker
from penstock.config import Settings
from penstock.extension import Extension, Pass
from penstock.model.errors import MissingExtra
from penstock.upkeep import upkeep_services
from penstock.upkeep.extensions import extension_passes
from penstock.upkeep.leader import Leader
from tests.support import garden
from tests.support.places import Place


@pytest.fixture
async def app(place: Place) -> AsyncIterator[Penstock]:
    garden.watered.clear()
    made = Penstock(settings=Settings(**place.settings), extensions=[garden.garden])
    async with made:
        yield made


async def test_the_leader_runs_its_passes_and_nobody_else(
    app: Penstock, leader: Leader, follower: Leader
) -> None:
    [own], [other] = extension_passes(app, leader), extension_passes(app, follower)
    await other.run_once()
    assert garden.watered == []
    assert other.interval == 1, "so that it notices soon when it comes to lead"
    await own.run_once()
    assert (own.name, garden.watered) == ("garden.tend", ["tended"])


async def test_a_pass_may_say_when_it_runs_next(app: Penstock, leader: Leader) -> None:
    [own] = extension_passes(app, leader)
    assert own.interval == 60
    await own.run_once()
    assert own.interval == 5
    await own.run_once()
    assert own.interval == 60


async def test_upkeep_has_the_passes_among_its_services(app: Penstock) -> None:
    assert "garden.tend" in {service.name for service in upkeep_services(app, "me")}


async def test_a_pass_that_lacks_its_extra_is_refused_by_its_name(place: Place) -> None:
    lacking = Extension(
        name="lacking", needs="server", passes=(Pass(name="x", every=1, run="no_such:run"),)
    )
    app = Penstock(settings=Settings(**place.settings), extensions=[lacking])
    async with app:
        with pytest.raises(MissingExtra, match=r"penstock\[server\]"):
            upkeep_services(app, "me")


async def test_a_worker_starts_the_services(app: Penstock) -> None:
    worker = Worker(app)
    task = asyncio.create_task(worker.run())
    await worker.started()
    async with asyncio.timeout(10):
        while "gardener" not in garden.watered:  # noqa: ASYNC110  # another task does it
            await asyncio.sleep(0)
    worker.stop()
    await task


async def test_a_worker_without_upkeep_starts_neither(app: Penstock) -> None:
    await Worker(app, burst=True, upkeep=False).run()
    assert garden.watered == []
