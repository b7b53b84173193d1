"""How calls reach the server: together, once, and whatever happened to it meanwhile."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from penstock.store.contract import Held, Report
from penstock.store.redis.pipeline import Load, Pipeline
from penstock.store.redis.scripts import Scripts
from penstock.store.redis.server import Server
from penstock.store.redis.store import RedisStore
from proof.conformance.build import (
    LEASE_MS,
    OWNER,
    a_claim,
    a_job,
    claim_all,
    claim_one,
    completed,
    enqueue,
    job_of,
)
from tests.support.redis_raw import RawKeys


@pytest.fixture
async def store(valkey_url: str) -> AsyncIterator[RedisStore]:
    store = RedisStore(valkey_url)
    await store.open()
    yield store
    await store.close()


async def test_calls_made_together_travel_together(
    valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trips: list[int] = []
    post = Pipeline.post

    def counted(line: Pipeline, load: Load) -> None:
        trips.append(len(load))
        post(line, load)

    monkeypatch.setattr(Pipeline, "post", counted)
    server = Server(valkey_url)
    await server.open()
    scripts = Scripts(server)
    await scripts.call("stage", 1)
    trips.clear()
    await asyncio.gather(*(scripts.call("stage", 1) for _ in range(5)), scripts.ask(("PING",)))
    assert trips == [1, 5]  # the first goes at once, and those behind it together
    await server.close()


async def test_a_settlement_and_a_claim_of_one_moment_are_each_answered(store: RedisStore) -> None:
    await store.jobs.enqueue([a_job() for _ in range(2)])
    first = await claim_one(store, limit=1)
    stale, claimed = await asyncio.gather(
        store.jobs.settle(OWNER, [completed(first)]), store.jobs.claim(a_claim())
    )
    assert (stale, len(claimed.leases)) == ([], 1)


async def test_one_who_gives_up_does_not_disturb_the_others(store: RedisStore) -> None:
    given_up = asyncio.create_task(enqueue(store))
    waited_for = asyncio.create_task(enqueue(store))
    await asyncio.sleep(0)
    given_up.cancel()
    job_id = await waited_for
    assert (await job_of(store, job_id)).id == job_id
    assert given_up.cancelled()


async def test_last_words_come_before_the_settlement_though_the_server_knows_no_script_yet(
    store: RedisStore, raw: RawKeys
) -> None:
    job_id = await enqueue(store)
    lease = await claim_one(store)
    await store.jobs.settle(OWNER, [])
    raw.client.script_flush()
    await store.jobs.settle("nobody", [completed(lease)])  # the server knows this script again
    words = Report(id=job_id, fence=lease.fence, logs=[(1, "info", "done")])
    stale, _ = await asyncio.gather(
        store.jobs.report(OWNER, [words]), store.jobs.settle(OWNER, [completed(lease)])
    )
    assert stale == []
    assert [line.message for line in await store.reader.logs(job_id)] == ["done"]


async def test_scripts_that_the_server_forgot_are_sent_again(
    store: RedisStore, raw: RawKeys
) -> None:
    job_id = await enqueue(store)
    lease = await claim_one(store)
    raw.client.script_flush()
    renewed = store.leases.renew(OWNER, [Held(lease.id, lease.fence, LEASE_MS)])
    assert renewed.lost == []
    raw.client.script_flush()
    assert await store.jobs.settle(OWNER, [completed(lease)]) == []
    assert (await job_of(store, job_id)).fence == lease.fence


async def test_without_a_clock_of_its_own_the_servers_clock_decides(
    store: RedisStore, raw: RawKeys
) -> None:
    before = _server_time(raw)
    job_id = await enqueue(store, delay_ms=60_000)
    assert before <= (await job_of(store, job_id)).created_at <= _server_time(raw)
    claimed = await store.jobs.claim(a_claim())
    assert claimed.next_due_in_ms is not None
    assert 0 < claimed.next_due_in_ms <= 60_000


async def test_nobody_is_leased_a_job_twice_by_claims_at_once(store: RedisStore) -> None:
    await store.jobs.enqueue([a_job() for _ in range(100)])
    granted = await asyncio.gather(*(claim_all(store, limit=7) for _ in range(20)))
    ids = [lease.id for leases in granted for lease in leases]
    assert len(ids) == len(set(ids)) == 100


def _server_time(raw: RawKeys) -> int:
    seconds, microseconds = raw.client.time()
    return seconds * 1000 + microseconds // 1000
