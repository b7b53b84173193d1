"""Fault 19: the Redis beside PostgreSQL is killed while work runs, and comes back."""

import asyncio
from collections import Counter
from random import Random

import pytest

from penstock.store.postgres_redis.store import PostgresRedisStore
from proof.servers import RedisServer
from tests.faults.support.facts import figure
from tests.faults.support.places import executions, statuses
from tests.faults.support.traffic import flowing
from tests.faults.support.waiting import eventually

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800)]

RESUMES_SECONDS = 10
BACK_SECONDS = 30


@pytest.mark.quick
async def test_a_redis_that_is_lost_again_and_again_costs_no_job_and_is_found_again(
    postgres_store_url: str,
) -> None:
    luck = Random(19)
    with RedisServer(options={"appendonly": "no", "save": ""}) as server:
        store = PostgresRedisStore(postgres_store_url, server.url)
        await store.open()
        async with flowing(store) as traffic:
            for _ in range(figure(short=3, full=50)):
                await traffic.more_settled()
                await asyncio.sleep(luck.uniform(0, 0.2))
                await asyncio.to_thread(server.kill)
                await traffic.more_settled(RESUMES_SECONDS)
                await asyncio.to_thread(server.start)
                await eventually(store.dispatch_answers, BACK_SECONDS)
        ids = traffic.acknowledged
        assert await statuses(store, ids) == {"completed": len(ids)}
        ended = [e.job_id for e in await executions(store, ids) if e.status == "completed"]
        assert Counter(ended) == dict.fromkeys(ids, 1)
        await store.close()
    assert traffic.stale == []
    assert traffic.refusals == []
