"""Settlements on Redis: a batch in which one is stale is sent again without it."""

import asyncio

from msgspec.structs import replace

from penstock.model.states import Status
from penstock.store.redis.store import RedisStore
from penstock.testing.clock import FakeClock
from proof.conformance.build import (
    OTHER,
    OWNER,
    a_job,
    buried,
    claim_all,
    completed,
    enqueue,
    failed,
    job_of,
    running,
    status_of,
)
from tests.support.redis_raw import RawKeys


async def test_figures_count_what_was_written_and_nothing_twice(store: RedisStore) -> None:
    await store.jobs.enqueue([a_job() for _ in range(6)])
    lost = await claim_all(store, limit=2)
    await store.upkeep.rescue(owner=OWNER)
    await claim_all(store, limit=2, owner=OTHER)
    held = await claim_all(store)
    done = [completed(lease) for lease in [lost[0], *held[:2]]]
    others = [failed(lost[1]), failed(held[2]), buried(held[3])]
    assert await store.jobs.settle(OWNER, [*done, *others]) == [lost[0].id, lost[1].id]
    assert await store.jobs.settle(OWNER, [*done[1:], *others[1:]]) == []
    figures = (await store.metrics.window(60_000))[0]
    assert (figures.completed, figures.failed, figures.dead) == (2, 1, 1)


async def test_one_settlement_sent_twice_at_once_is_applied_once(store: RedisStore) -> None:
    lease = await running(store)
    twice = (store.jobs.settle(OWNER, [completed(lease, "1")]) for _ in range(2))
    assert await asyncio.gather(*twice) == [[], []]
    assert (await store.metrics.window(60_000))[0].completed == 1


async def test_of_two_endings_of_one_lease_in_a_batch_the_first_counts(store: RedisStore) -> None:
    lease = await running(store)
    assert await store.jobs.settle(OWNER, [failed(lease), completed(lease)]) == []
    assert await status_of(store, lease.id) is Status.FAILED


async def test_a_batch_of_thousands_is_settled(store: RedisStore) -> None:
    await store.jobs.enqueue([a_job() for _ in range(5_000)])
    leases = await claim_all(store, limit=5_000)
    assert len(leases) == 5_000
    assert await store.jobs.settle(OWNER, [completed(lease) for lease in leases]) == []
    assert (await store.metrics.window(60_000))[0].completed == 5_000


async def test_the_result_null_costs_no_room_and_is_told_all_the_same(
    store: RedisStore, raw: RawKeys
) -> None:
    lease = await running(store)
    await store.jobs.settle(OWNER, [completed(lease)])
    assert raw.ask("HGET", f"job:{lease.id}", "result") is None
    assert (await job_of(store, lease.id)).result == "null"
    [execution] = await store.reader.executions(lease.id)
    assert execution.result == "null"


async def test_a_job_without_a_result_has_none(store: RedisStore) -> None:
    assert (await job_of(store, await enqueue(store))).result is None


async def test_a_completion_writes_little_and_the_job_tells_all_the_same(
    store: RedisStore, clock: FakeClock, raw: RawKeys
) -> None:
    job_id = await enqueue(store)
    [first] = await claim_all(store)
    await store.jobs.settle(OWNER, [failed(first, retry_in_ms=0)])
    clock.advance(seconds=1)
    [lease] = await claim_all(store, start=0)
    began = clock.now()
    clock.advance(seconds=1)
    await store.jobs.settle(OWNER, [replace(completed(lease), started_at=began)])
    assert raw.ask("HGET", f"job:{job_id}", "completed_at") is None
    job = await job_of(store, job_id)
    assert (job.attempts, job.lease_owner, job.error) == (2, None, None)
    assert (job.started_at, job.completed_at, job.updated_at) == (began, clock.now(), clock.now())
