"""Wake-ups: heard from any process, kept as one, and back after an outage."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from structlog.testing import capture_logs

from penstock.model.store_errors import StoreClosed
from penstock.store.open import open_store
from penstock.store.redis import signals
from penstock.store.redis.store import RedisStore
from proof.conformance.build import enqueue
from proof.proxy import Proxy
from proof.servers import RedisServer
from proof.servers.process import await_condition

PATIENCE = 20.0


@pytest.fixture
async def opened() -> AsyncIterator[Callable[[str], RedisStore]]:
    stores: list[RedisStore] = []

    def make(url: str) -> RedisStore:
        store = open_store(url)
        assert isinstance(store, RedisStore)
        stores.append(store)
        return store

    yield make
    for store in stores:
        await store.close()


Opened = Callable[[str], RedisStore]


async def until(condition: Callable[[], bool]) -> None:
    await asyncio.to_thread(await_condition, condition, PATIENCE)


@pytest.mark.parametrize("server", ["valkey_url", "redis6_url", "valkey_cluster_url"])
async def test_a_change_of_another_process_is_heard(
    opened: Opened, server: str, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue(server)
    here, elsewhere = opened(url), opened(url)
    await here.open()
    await elsewhere.open()
    subscription = here.subscribe()
    await enqueue(elsewhere)
    assert await subscription.wait(PATIENCE)


async def test_changes_of_another_namespace_are_not_heard(opened: Opened, valkey_url: str) -> None:
    here, elsewhere = opened(valkey_url), opened(valkey_url + "-2")
    await here.open()
    await elsewhere.open()
    subscription = here.subscribe()
    assert await subscription.wait(PATIENCE)  # it listens from now on
    await enqueue(elsewhere)
    assert not await subscription.wait(0.05)


async def test_changes_between_two_waits_are_one(opened: Opened, valkey_url: str) -> None:
    store = opened(valkey_url)
    await store.open()
    first, second = store.subscribe(), store.subscribe()
    for _ in range(20):
        await enqueue(store)
    # Messages come in order: when this one is heard, so were those before.
    for subscription in (first, second):
        assert await subscription.wait(PATIENCE)
        while await subscription.wait(0.1):
            pass
        assert not await subscription.wait(0.01)


async def test_a_closed_subscription_is_forgotten(opened: Opened, valkey_url: str) -> None:
    store = opened(valkey_url)
    await store.open()
    subscription = store.subscribe()
    subscription.close()
    subscription.close()
    await enqueue(store)
    assert not await subscription.wait(0.05)


async def test_a_closed_store_takes_no_subscription(opened: Opened, valkey_url: str) -> None:
    store = opened(valkey_url)
    with pytest.raises(StoreClosed):
        store.subscribe()
    await store.open()
    await store.close()
    with pytest.raises(StoreClosed):
        store.subscribe()


async def test_a_lost_line_is_taken_up_again_and_everyone_is_woken(opened: Opened) -> None:
    with RedisServer() as server, capture_logs() as logs:
        store = opened(server.url)
        await store.open()
        subscription = store.subscribe()
        assert await subscription.wait(PATIENCE)  # it listens from now on
        server.ask("CLIENT", "KILL", "TYPE", "pubsub")
        assert await subscription.wait(PATIENCE)
        while await subscription.wait(0.05):
            pass
        await enqueue(store)
        assert await subscription.wait(PATIENCE)
    assert [line["event"] for line in logs].count("wake_ups_lost") == 1


async def test_a_restart_of_the_server_is_survived_and_told_once(opened: Opened) -> None:
    with RedisServer() as server, capture_logs() as logs:
        store = opened(server.url)
        await store.open()
        subscription = store.subscribe()
        server.kill()
        await until(lambda: not store.hears_changes)
        assert not await subscription.wait(0.2)
        server.start()
        assert await subscription.wait(PATIENCE)
        await enqueue(store)
    [told] = [line["error"] for line in logs if line["event"] == "wake_ups_lost"]
    assert told.startswith(f"Store {server.url} cannot be reached (")


async def test_a_dead_line_is_noticed(
    opened: Opened, valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signals, "QUIET_SECONDS", 0.1)
    with Proxy(valkey_url) as proxy:
        here, elsewhere = opened(proxy.url + "&timeout=1"), opened(valkey_url)
        await here.open()
        await elsewhere.open()
        subscription = here.subscribe()
        proxy.blackhole()
        await until(lambda: not here.hears_changes)
        await enqueue(elsewhere)
        proxy.heal()
        assert await subscription.wait(PATIENCE)


async def test_a_store_closes_however_far_its_first_listener_got(valkey_url: str) -> None:
    for turns in range(20):
        store = RedisStore(valkey_url)
        await store.open()
        store.subscribe()
        for _ in range(turns):
            await asyncio.sleep(0)
        async with asyncio.timeout(PATIENCE):
            await store.close()
        assert not store.hears_changes
        assert asyncio.all_tasks() == {asyncio.current_task()}
