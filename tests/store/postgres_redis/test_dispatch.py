"""What Redis holds beside PostgreSQL can be missing, stale, gone, or full."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from structlog.testing import capture_logs

from penstock.model.dependency import Edge
from penstock.model.errors import AccessDenied, InvalidOption
from penstock.model.ids import new_id
from penstock.model.job import NewJob
from penstock.model.settlement import Completed
from penstock.store.contract import Claim, Store
from penstock.store.open import open_store
from penstock.store.postgres_redis.store import PostgresRedisStore
from penstock.store.postgres_redis.window import Pace
from penstock.testing.proxy import Proxy
from penstock.testing.servers import RedisServer
from tests.support.namespaces import in_new_namespace

NOBODY = "redis://127.0.0.1:1"
PACE = Pace(jobs=100, spacing_ms=0, busy=True)


@asynccontextmanager
async def opened(url: str, dispatch: str, pace: Pace = PACE) -> AsyncGenerator[PostgresRedisStore]:
    store = PostgresRedisStore(url, dispatch, pace=pace)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def enqueued(store: Store, count: int, **fields: object) -> list[str]:
    jobs = [NewJob(id=new_id(), type="work", **fields) for _ in range(count)]  # type: ignore[arg-type]
    return [answer.id for answer in await store.jobs.enqueue(jobs)]


async def claimed(store: Store, limit: int = 10) -> list[str]:
    claim = Claim(owner="host:1", types=("work",), limit=limit, start=limit, lease_ms=60_000)
    return [lease.id for lease in (await store.jobs.claim(claim)).leases]


async def eventually(holds: Callable[[], Awaitable[bool]], seconds: float = 30) -> None:
    async with asyncio.timeout(seconds):
        while not await holds():  # noqa: ASYNC110 - nothing rings
            await asyncio.sleep(0.01)


def waiting(server: RedisServer) -> int:
    """How many ready jobs Redis holds in the namespace `one`."""
    answer = server.ask("ZCARD", '{one}:dispatch:lane:["default","","work",""]')
    return int(answer.removeprefix(b":"))


async def dispatch_answers(store: Store) -> bool:
    return {name: ok for name, ok, _ in (await store.inspect()).checks}["dispatch"]


async def test_ids_wait_in_redis_and_are_leased_by_postgres(postgres_store_url: str) -> None:
    with RedisServer() as server:
        async with opened(postgres_store_url, f"{server.url}?namespace=one") as store:
            assert await claimed(store) == []
            ids = await enqueued(store, 5)
            assert await claimed(store, 2) == ids[:2]
            assert waiting(server) == 3
            assert await claimed(store) == ids[2:]
            assert waiting(server) == 0


async def test_an_id_that_is_stale_is_not_leased(postgres_store_url: str, valkey_url: str) -> None:
    async with (
        opened(postgres_store_url, valkey_url) as store,
        opened(postgres_store_url, NOBODY) as other,
    ):
        assert await claimed(store) == []
        ids = await enqueued(store, 6)
        assert await claimed(other, 3) == ids[:3]
        assert await claimed(store, 3) == ids[3:]


async def test_a_job_that_redis_never_heard_of_is_found(
    postgres_store_url: str, valkey_url: str
) -> None:
    plain = open_store(postgres_store_url)
    await plain.open()
    async with opened(postgres_store_url, valkey_url) as store:
        assert await claimed(store) == []
        ids = await enqueued(plain, 1)
        found: list[str] = []

        async def is_found() -> bool:
            found.extend(await claimed(store))
            return bool(found)

        await eventually(is_found, 5)
        assert found == ids
    await plain.close()


async def test_an_urgent_job_overtakes_a_full_window(
    postgres_store_url: str, valkey_url: str
) -> None:
    async with opened(
        postgres_store_url, valkey_url, Pace(jobs=5, spacing_ms=0, busy=True)
    ) as store:
        assert await claimed(store) == []
        await enqueued(store, 50)
        await claimed(store, 1)
        urgent = await enqueued(store, 1, priority=1)
        assert await claimed(store, 1) == urgent


async def test_an_emptied_redis_is_refilled_by_the_next_claim(postgres_store_url: str) -> None:
    with RedisServer() as server:
        async with opened(postgres_store_url, f"{server.url}?namespace=one") as store:
            assert await claimed(store) == []
            ids = await enqueued(store, 30)
            server.ask("FLUSHALL")
            assert await claimed(store, 10) == ids[:10]
            assert waiting(server) == 20


async def test_without_redis_nothing_is_missing_and_it_is_said_once(
    postgres_store_url: str,
) -> None:
    with capture_logs() as logs:
        async with opened(postgres_store_url, NOBODY) as store:
            for _ in range(5):
                ids = await enqueued(store, 3)
                assert await claimed(store) == ids
            assert not await dispatch_answers(store)
    assert [entry["event"] for entry in logs].count("dispatch_lost") == 1


async def test_a_redis_that_falls_silent_costs_one_short_wait_and_comes_back(
    postgres_store_url: str, valkey_url: str
) -> None:
    with Proxy(valkey_url) as proxy:
        async with opened(postgres_store_url, proxy.url_for(valkey_url)) as store:
            assert await claimed(store) == []
            proxy.blackhole()
            ids = await enqueued(store, 20)
            began = time.monotonic()
            got = [*await claimed(store, 5), *await claimed(store, 5)]
            assert got == ids[:10]
            assert time.monotonic() - began < 5
            proxy.heal()

            await eventually(lambda: dispatch_answers(store))
            assert await claimed(store) == ids[10:]


async def test_a_full_redis_holds_nothing_up(postgres_store_url: str) -> None:
    with RedisServer(options={"maxmemory": "1mb"}) as server:
        async with opened(postgres_store_url, server.url) as store:
            ids = await enqueued(store, 5)
            assert await claimed(store) == ids


async def test_a_worker_elsewhere_is_woken_by_redis(
    postgres_store_url: str, valkey_url: str
) -> None:
    async with (
        opened(postgres_store_url, valkey_url) as store,
        opened(postgres_store_url, valkey_url) as other,
    ):
        listener = other.subscribe()
        while await listener.wait(0.3):
            pass
        ids = await enqueued(store, 1)
        assert await listener.wait(10)
        assert await claimed(other) == ids
        listener.close()


async def test_a_worker_without_work_does_not_ask_postgres(
    postgres_store_url: str, valkey_url: str
) -> None:
    with Proxy(postgres_store_url) as proxy:
        url = proxy.url_for(postgres_store_url)
        async with opened(url, valkey_url, Pace(jobs=100, fresh_ms=60_000)) as store:
            assert await claimed(store) == []
            assert await claimed(store) == []  # this one has filled the window
            proxy.blackhole()
            async with asyncio.timeout(10):
                assert await claimed(store) == []
            proxy.heal()
            ids = await enqueued(store, 3)
            assert await claimed(store) == ids


async def test_windows_full_of_stale_ids_are_emptied(
    postgres_store_url: str, valkey_url: str
) -> None:
    plain = open_store(postgres_store_url)
    await plain.open()
    async with opened(postgres_store_url, valkey_url) as store:
        assert await claimed(store) == []
        stale = await enqueued(store, 60)
        assert await claimed(plain, 60) == stale
        assert await claimed(store, 5) == []
        fresh = await enqueued(store, 5)
        assert await claimed(store, 5) == fresh
    await plain.close()


async def test_a_retry_is_claimed_when_it_falls_due_and_not_before(
    postgres_store_url: str, valkey_url: str
) -> None:
    async with opened(postgres_store_url, valkey_url) as store:
        await claimed(store)
        ids = await enqueued(store, 1, delay_ms=300)
        assert await claimed(store) == []
        found: list[str] = []

        async def is_found() -> bool:
            found.extend(await claimed(store))
            return bool(found)

        await eventually(is_found, 5)
        assert found == ids


async def test_a_wrong_password_is_one_sentence(postgres_store_url: str) -> None:
    with RedisServer(options={"requirepass": "secret"}) as server:
        url = server.url.replace("redis://", "redis://:wrong@").replace(":secret@", "")
        with pytest.raises(AccessDenied, match="password"):
            async with opened(postgres_store_url, url):
                pass


def test_dispatch_goes_with_postgres_only() -> None:
    with pytest.raises(InvalidOption, match="postgresql"):
        open_store("sqlite:///:memory:", dispatch="redis://localhost")


async def test_settled_jobs_make_their_children_ready_at_once(
    postgres_store_url: str, valkey_server_url: str
) -> None:
    async with opened(postgres_store_url, in_new_namespace(valkey_server_url)) as store:
        [parent] = await enqueued(store, 1)
        [child] = await enqueued(store, 1, after=(Edge(parent_id=parent),))
        claim = Claim(owner="host:1", types=("work",), limit=5, start=5, lease_ms=60_000)
        [lease] = (await store.jobs.claim(claim)).leases
        assert lease.id == parent
        done = Completed(id=lease.id, fence=lease.fence, type="work", queue="default", started_at=0)
        assert await store.jobs.settle("host:1", [done]) == []
        assert await claimed(store) == [child]


async def test_it_is_known_when_redis_does_not_answer_and_when_it_does_again(
    postgres_store_url: str,
) -> None:
    with RedisServer(options={"appendonly": "no", "save": ""}) as server:
        async with opened(postgres_store_url, server.url) as store:
            assert await store.dispatch_answers()
            await asyncio.to_thread(server.kill)
            assert not await store.dispatch_answers()
            assert ("dispatch", False) in [each[:2] for each in (await store.inspect()).checks]
            await asyncio.to_thread(server.start)
            await eventually(store.dispatch_answers)
