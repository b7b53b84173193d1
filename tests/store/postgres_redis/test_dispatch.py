"""Redis beside PostgreSQL wakes workers, and may be gone, silent, or wrong."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from structlog.testing import capture_logs

from penstock.model.errors import InvalidOption
from penstock.model.ids import new_id
from penstock.model.job import NewJob
from penstock.model.store_errors import AccessDenied
from penstock.store.contract import Claim, Store, Subscription
from penstock.store.open import open_store
from penstock.store.postgres_redis.store import PostgresRedisStore
from proof.proxy import Proxy
from proof.servers import RedisServer

NOBODY = "redis://127.0.0.1:1"


@asynccontextmanager
async def opened(url: str, dispatch: str) -> AsyncGenerator[PostgresRedisStore]:
    store = PostgresRedisStore(url, dispatch)
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


async def dispatch_answers(store: Store) -> bool:
    return {name: ok for name, ok, _ in (await store.inspect()).checks}["dispatch"]


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


async def quiet(store: Store) -> Subscription:
    """A subscription that hears nothing any more of its own beginning."""
    listener = store.subscribe()
    while await listener.wait(0.3):
        pass
    return listener


async def test_a_worker_elsewhere_is_woken_by_redis_where_it_cannot_listen(
    postgres_store_url: str, valkey_url: str
) -> None:
    with Proxy(postgres_store_url) as deaf:
        deaf.alter(lambda sent: sent.replace(b"penstock_changed", b"penstock_nothing"))
        async with (
            opened(postgres_store_url, valkey_url) as store,
            opened(deaf.url_for(postgres_store_url), valkey_url) as other,
        ):
            listener = await quiet(other)
            ids = await enqueued(store, 1)
            assert await listener.wait(10)
            assert await claimed(other) == ids
            listener.close()


async def test_a_worker_is_woken_by_a_process_that_has_no_redis(
    postgres_store_url: str, valkey_url: str
) -> None:
    plain = open_store(postgres_store_url)
    await plain.open()
    async with opened(postgres_store_url, valkey_url) as store:
        listener = await quiet(store)
        ids = await enqueued(plain, 1)
        assert await listener.wait(10)
        assert await claimed(store) == ids
        listener.close()
    await plain.close()


async def test_while_redis_is_away_a_worker_is_woken_by_postgres(postgres_store_url: str) -> None:
    async with (
        opened(postgres_store_url, NOBODY) as store,
        opened(postgres_store_url, NOBODY) as other,
    ):
        listener = await quiet(other)
        ids = await enqueued(store, 1)
        assert await listener.wait(10)
        assert await claimed(other) == ids
        listener.close()


async def test_a_redis_that_falls_silent_holds_nothing_up_and_comes_back(
    postgres_store_url: str, valkey_url: str
) -> None:
    with Proxy(valkey_url) as proxy:
        async with opened(postgres_store_url, proxy.url_for(valkey_url)) as store:
            proxy.blackhole()
            async with asyncio.timeout(5):
                ids = await enqueued(store, 20)
                assert await claimed(store, 20) == ids
            proxy.heal()
            await eventually(store.dispatch_answers)


async def test_a_wrong_password_is_one_sentence(postgres_store_url: str) -> None:
    with RedisServer(options={"requirepass": "secret"}) as server:
        url = server.url.replace("redis://", "redis://:wrong@").replace(":secret@", "")
        with pytest.raises(AccessDenied, match="password"):
            async with opened(postgres_store_url, url):
                pass


def test_dispatch_goes_with_postgres_only() -> None:
    with pytest.raises(InvalidOption, match="postgresql"):
        open_store("sqlite:///:memory:", dispatch="redis://localhost")


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
