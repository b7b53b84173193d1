from collections.abc import Iterator

import pytest

from penstock import Penstock, Status
from penstock.demo import live
from penstock.store.contract import Report
from penstock.testing import FakeClock, drain, in_memory
from proof.conformance.build import OWNER, claim_all


@pytest.fixture
def app(clock: FakeClock) -> Iterator[Penstock]:
    with in_memory(live.app, clock) as application:
        yield application


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


async def test_a_worker_is_killed_within_the_first_minute_and_seldom_after(
    app: Penstock, clock: FakeClock
) -> None:
    async with app:
        began = clock.now()
        for _ in range(30):  # a minute of customers
            await live.customers()
            clock.advance(seconds=2)
        [first] = await app.find(type="shop.power_cut")
        assert began < first.scheduled_at < began + 60_000
        clock.advance(seconds=1_800)
        await live.customers()
        assert len(await app.find(type="shop.power_cut")) == 2


async def test_the_job_that_killed_its_worker_is_rescued_and_completes(
    app: Penstock, clock: FakeClock
) -> None:
    async with app:
        job = await live.power_cut.enqueue()
        [lease] = await claim_all(app.store, types=("shop.power_cut",))
        said = Report(id=lease.id, fence=lease.fence, checkpoint='"the lights go out"')
        await app.store.jobs.report(OWNER, [said])
        clock.advance(seconds=61)
        await app.store.upkeep.rescue()
        await drain(app)
        found = await job.get()
        assert (found.status, found.rescues) == (Status.COMPLETED, 1)
        assert [line.message for line in await app.logs(job.id)] == [
            "rescued: the worker that ran this before was killed"
        ]
