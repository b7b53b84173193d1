"""Fault 18: Redis is killed in the middle of the work, and comes back with its append-only file."""

import asyncio
from collections import Counter
from random import Random

import pytest

from proof.servers import RedisServer
from proof.servers.redis import Kind
from tests.faults.support.facts import figure
from tests.faults.support.places import Place, check_structure, executions, statuses
from tests.faults.support.traffic import flowing
from tests.faults.support.work import opened

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800)]

RESUMES_SECONDS = 10


@pytest.mark.parametrize("kind", ["valkey", "redis6"])
@pytest.mark.quick("valkey")
async def test_nothing_acknowledged_is_lost_when_the_server_is_killed(kind: Kind) -> None:
    luck = Random(18)
    with RedisServer(kind=kind, options={"appendfsync": "always"}) as server:
        async with opened(server.url) as store:
            async with flowing(store) as traffic:
                for _ in range(figure(short=4, full=100)):
                    await traffic.more_settled()
                    await asyncio.sleep(luck.uniform(0, 0.2))
                    await asyncio.to_thread(server.kill)
                    await asyncio.to_thread(server.start)
                    await traffic.more_settled(RESUMES_SECONDS)
            ids = traffic.acknowledged
            assert await statuses(store, ids) == {"completed": len(ids)}
            ended = [e.job_id for e in await executions(store, ids) if e.status == "completed"]
            assert Counter(ended) == dict.fromkeys(ids, 1)
            await check_structure(Place(kind, server.url), store)
    assert traffic.stale == []
