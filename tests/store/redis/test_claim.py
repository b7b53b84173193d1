"""Claims on Redis: the short way to one new job, and where one cannot look at all lanes."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from penstock.model.states import Status
from penstock.store.contract import Report
from penstock.store.redis.store import RedisStore
from penstock.testing.clock import FakeClock
from proof.conformance.build import (
    OWNER,
    a_claim,
    a_job,
    claim_all,
    claim_one,
    completed,
    enqueue,
    failed,
    handed_back,
    job_of,
)
from tests.support.namespaces import in_new_namespace
from tests.support.redis_raw import RawKeys

MAX_LANES = 512
TOLD = (
    "fence", "priority", "payload", "attempts", "max_retries", "timeout_ms", "expires_at",
    "tenant_id", "limit_key", "created_at", "queued_at", "started_at",
)  # fmt: skip


async def test_every_tenant_has_its_turn_where_one_claim_cannot_look_at_all(
    store: RedisStore,
) -> None:
    tenants = [f"t{number:04}" for number in range(MAX_LANES + 200)]
    await store.jobs.enqueue([a_job(tenant_id=name) for name in tenants for _ in range(3)])
    first = await claim_all(store, limit=MAX_LANES)
    second = await claim_all(store, limit=MAX_LANES)
    assert {lease.tenant_id for lease in first + second} == set(tenants)


async def test_lanes_of_other_types_and_queues_are_never_looked_at(store: RedisStore) -> None:
    others = [a_job(type="other", tenant_id=str(number)) for number in range(5_000)]
    await store.jobs.enqueue(others)
    await store.jobs.enqueue([a_job(queue="slow") for _ in range(10)])
    wanted = await enqueue(store)
    assert (await claim_one(store, queues=("default",))).id == wanted


async def test_a_walk_that_stopped_at_a_lane_goes_on_when_that_lane_is_gone(
    store: RedisStore,
) -> None:
    tenants = [f"t{number:04}" for number in range(MAX_LANES + 10)]
    await store.jobs.enqueue([a_job(tenant_id=name) for name in tenants])
    seen = []
    while leases := await claim_all(store, limit=100):
        await store.jobs.settle(OWNER, [completed(lease) for lease in leases])
        seen += [lease.tenant_id for lease in leases]
    assert sorted(seen) == tenants


async def test_an_empty_lane_is_forgotten(store: RedisStore, raw: RawKeys) -> None:
    await enqueue(store)
    lease = await claim_one(store)
    assert raw.ask("ZCARD", "lanes") == 0
    await store.jobs.settle(OWNER, [handed_back(lease)])
    assert raw.ask("ZCARD", "lanes") == 1
    await store.jobs.cancel([lease.id], "no")
    assert raw.ask("ZCARD", "lanes") == 0


async def test_urgent_jobs_are_found_behind_a_thousand_that_are_not(store: RedisStore) -> None:
    await store.jobs.enqueue([a_job(scheduled_at=number) for number in range(1_000)])
    urgent = await enqueue(store, priority=1)
    assert [lease.id for lease in await claim_all(store, limit=2, max_priority=3)] == [urgent]


@pytest.mark.parametrize("start", [0, 1])
async def test_a_job_tells_when_it_was_last_changed_however_little_is_written(
    store: RedisStore, clock: FakeClock, start: int
) -> None:
    job_id = await enqueue(store)
    for ending in (handed_back, failed, completed):
        clock.advance(seconds=10)
        lease = await claim_one(store, limit=1, start=start)
        assert (await job_of(store, job_id)).updated_at == clock.now()
        clock.advance(seconds=10)
        await store.jobs.settle(OWNER, [ending(lease)])
        assert (await job_of(store, job_id)).updated_at == clock.now()


async def test_a_later_lease_knows_what_became_of_the_earlier_ones(
    store: RedisStore, clock: FakeClock
) -> None:
    await enqueue(store)
    first = await claim_one(store)
    told = Report(id=first.id, fence=first.fence, progress_message="half way", checkpoint="[1]")
    await store.jobs.report(OWNER, [told])
    await store.jobs.settle(OWNER, [failed(first, retry_in_ms=0)])
    clock.advance(seconds=1)
    again = await claim_one(store)
    assert (again.fence, again.attempts, again.checkpoint) == (2, 1, "[1]")
    assert (await job_of(store, again.id)).progress_message is None


async def test_of_leases_told_together_each_is_as_its_job(
    store: RedisStore, clock: FakeClock
) -> None:
    await store.jobs.enqueue([a_job() for _ in range(3)])
    again = (await claim_all(store, limit=1))[0]
    await store.jobs.settle(OWNER, [failed(again, retry_in_ms=0)])
    clock.advance(seconds=1)
    await store.jobs.enqueue(
        [
            *(a_job(payload=f"[{number}]") for number in range(3)),
            *(a_job(expires_in_ms=60_000), a_job(max_retries=9), a_job(priority=4)),
            *(a_job(limit_key="one"), a_job(tenant_id="other")),
        ]
    )
    leases = await claim_all(store, start=5)
    assert [lease.started_at is None for lease in leases] == [False] * 5 + [True] * 6
    for lease in leases:
        job = await job_of(store, lease.id)
        assert [getattr(lease, name) for name in TOLD] == [getattr(job, name) for name in TOLD]


@pytest.mark.parametrize(
    "doc", ["nonsense", "[]", '[3,300000,"general",null,null,null,null,null,null,null,null,null,7]']
)
@pytest.mark.parametrize("start", [0, 9])
async def test_a_document_that_cannot_be_read_buries_its_own_job_only(
    store: RedisStore, raw: RawKeys, doc: str, start: int
) -> None:
    first, damaged, last = [await enqueue(store) for _ in range(3)]
    raw.ask("HSET", f"job:{damaged}", "doc", doc)
    assert [lease.id for lease in await claim_all(store, start=start)] == [first, last]
    found = await job_of(store, damaged)
    assert found.status is Status.DEAD_LETTER
    assert f"The stored document of job {damaged} cannot be read" in str(found.error)
    letter = await store.dead.get(damaged)
    assert letter is not None
    assert (letter.error_code, letter.reason) == ("CorruptJob", "invalid_input")
    assert store.leases.held(OWNER) == [first, last]
    assert await claim_all(store) == []


@pytest.fixture
async def another(valkey_server_url: str, clock: FakeClock) -> AsyncIterator[RedisStore]:
    """A second store at the same time."""
    store = RedisStore(in_new_namespace(valkey_server_url), clock)
    await store.open()
    yield store
    await store.close()


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"tenant_id": "acme", "priority": 2, "limit_key": "one", "metadata": "{}"},
        {"expires_in_ms": 60_000},
        {"key": "once"},
        {"type": "other"},
    ],
)
@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("delay_ms", [None, 5_000])
async def test_the_short_way_to_one_job_leaves_what_the_long_one_does(
    store: RedisStore,
    another: RedisStore,
    raw: RawKeys,
    start: int,
    delay_ms: int | None,
    fields: dict[str, Any],
) -> None:
    jobs = [a_job(**fields)]
    if delay_ms is not None:
        jobs.append(a_job(delay_ms=delay_ms))
    for each in (store, another):
        await each.jobs.enqueue(jobs)
    claimed = await store.jobs.claim(a_claim(start=start))
    # Whoever names queues goes the long way.
    assert await another.jobs.claim(a_claim(start=start, queues=("default",))) == claimed
    assert [lease.id for lease in claimed.leases] == [jobs[0].id] * ("type" not in fields)
    other = RawKeys(another.url)
    assert _contents(raw) == _contents(other)
    other.close()


def _contents(raw: RawKeys) -> dict[str, Any]:
    """Every key with its value, whatever its type."""
    commands = {
        b"hash": ("HGETALL",),
        b"zset": ("ZRANGE", 0, -1, "WITHSCORES"),
        b"set": ("SMEMBERS",),
        b"string": ("GET",),
    }
    contents: dict[str, Any] = {}
    for name in raw.names():
        command, *arguments = commands[raw.ask("TYPE", name)]
        contents[name] = raw.ask(str(command), name, *arguments)
    return contents
