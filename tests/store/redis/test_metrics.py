"""Figures of more queues than one script may look at."""

from penstock.store.contract import Store
from penstock.store.contract.metrics import DAY_MS, HOUR_MS, MINUTE_MS
from penstock.testing.clock import FakeClock
from proof.conformance.build import OWNER, a_job, claim_all, completed
from tests.support.redis_raw import RawKeys

QUEUES = 400


async def test_figures_of_hundreds_of_queues_are_folded_in_pieces(
    store: Store, clock: FakeClock
) -> None:
    clock.set_wall(clock.now() // DAY_MS * DAY_MS)
    for depth in (1, 2):
        await store.jobs.enqueue([a_job(queue=f"q{n}", type="still") for n in range(QUEUES)])
        await store.jobs.enqueue([a_job()])
        await store.jobs.settle(OWNER, [completed(lease) for lease in await claim_all(store)])
        await store.metrics.roll_up()
        assert (await store.metrics.depths())[0].queued == depth
        clock.advance(seconds=20)
    for resolution in (MINUTE_MS, HOUR_MS, DAY_MS):
        [(_, figures)] = await store.metrics.series(resolution, HOUR_MS)
        assert (figures["gauge:depth"], figures["completed"]) == (2 * QUEUES, 2)


async def test_folding_twice_changes_nothing(store: Store, raw: RawKeys) -> None:
    await store.jobs.enqueue([a_job(queue=f"q{n}") for n in range(QUEUES)])
    await store.metrics.roll_up()
    steps = [name for name in raw.names() if name.startswith(f"metrics:{MINUTE_MS}:")]
    before = [raw.ask("HGETALL", step) for step in steps]
    assert before
    await store.metrics.roll_up()
    assert [raw.ask("HGETALL", step) for step in steps] == before
