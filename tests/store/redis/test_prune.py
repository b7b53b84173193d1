"""What has ended leaves nothing behind: the memory of the server is bounded."""

import pytest

from penstock.model.job import KeyScope
from penstock.model.states import Status
from penstock.store.contract import JobFilter, Report, Retention, Store
from penstock.store.redis.server import Server
from penstock.testing.clock import FakeClock
from proof.conformance.build import (
    OWNER,
    a_job,
    an_edge,
    buried,
    cancelled,
    claim_all,
    completed,
    dead_job,
    enqueue,
    enqueue_after,
    failed,
    running,
)

AT_ONCE = Retention(keep_ms=dict.fromkeys([s for s in Status if s.terminal], 0))
LASTING = {"meta", "seq", "dead:seq"}


async def names(url: str) -> set[str]:
    """What is left in the namespace, but for the figures."""
    server = Server(url)
    await server.open()
    keys = await server.ask("KEYS", server.prefix.replace("{", r"\{") + "*")
    await server.close()
    found = {key.decode().removeprefix(server.prefix) for key in keys}
    return {name for name in found if not name.startswith("metrics:")}


async def _lead_a_full_life(store: Store, clock: FakeClock) -> None:
    parent = await running(store, tags=("a",), limit_key="k", expires_in_ms=10**9)
    told = Report(id=parent.id, fence=parent.fence, checkpoint="1", logs=[(0, "info", "x")])
    await store.jobs.report(OWNER, [told])
    child = await enqueue_after(store, an_edge(parent.id, kind="data", argument="rows"))
    await enqueue_after(store, child, parent_job_id=parent.id, schedule_id="s", tags=("t",))
    await store.jobs.settle(OWNER, [completed(parent, "[1]")])
    for _ in range(3):
        await enqueue(store, order_key="line", key="once")
        await enqueue(store, order_key="line", key_scope=KeyScope.WINDOW, key="w", key_window_ms=5)
    lease = await running(store)
    await store.jobs.settle(OWNER, [failed(lease)])
    await store.jobs.requeue([await dead_job(store, type="other")])
    await enqueue(store, type="never", expires_in_ms=1)
    await store.jobs.cancel([await enqueue(store, type="never")], "no")
    clock.advance(seconds=5)
    await store.upkeep.expire()
    await store.upkeep.rescue(owner=OWNER)


async def test_nothing_is_left_of_jobs_that_were_pruned(
    store: Store, clock: FakeClock, valkey_url: str
) -> None:
    await _lead_a_full_life(store, clock)
    endings = [completed, buried, cancelled]
    for number in range(20):
        leases = await claim_all(store, types=("work", "other"))
        ends = [endings[number % 3](lease) for lease in leases]
        assert await store.jobs.settle(OWNER, ends) == []
        clock.advance(seconds=1)
    assert [job.id for job in await store.reader.waiting()] == []
    assert (await store.upkeep.prune(AT_ONCE)).jobs == 9
    assert await store.reader.find(JobFilter()) == []
    await store.upkeep.rescue()
    await claim_all(store, types=("work", "other"))
    assert await names(valkey_url) <= LASTING | {"lanes"}


async def test_purged_letters_leave_nothing(store: Store, valkey_url: str) -> None:
    ids = [await dead_job(store, tags=("x",), parent_job_id="p") for _ in range(3)]
    assert await store.dead.purge(ids) == 3
    await store.upkeep.rescue()
    assert await names(valkey_url) <= LASTING | {"lanes", "owners"}


@pytest.mark.thorough
async def test_a_pass_prunes_more_jobs_than_a_script_takes_arguments(
    store: Store, clock: FakeClock
) -> None:
    await store.jobs.enqueue([a_job() for _ in range(9_000)])
    await store.jobs.cancel([job.id for job in await store.reader.waiting(limit=9_000)], "no")
    clock.advance(seconds=1)
    pruned = await store.upkeep.prune(AT_ONCE, limit=8_500)
    assert (pruned.jobs, pruned.more) == (8_500, True)
    assert (await store.upkeep.prune(AT_ONCE, limit=8_500)).jobs == 500
