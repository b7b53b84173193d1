"""What the server keeps, said as it is."""

import asyncio

import pytest

from penstock.store.contract import Durability
from penstock.store.open import open_store
from penstock.testing.conformance.build import claim_one, enqueue
from penstock.testing.servers import RedisServer
from penstock.testing.servers.process import await_condition


async def inspected(url: str) -> Durability:
    store = open_store(url, allow_volatile=True)
    await store.open()
    found = await store.inspect()
    await store.close()
    return found


def failed(found: Durability) -> set[str]:
    return {name for name, passed, _ in found.checks if not passed}


@pytest.mark.parametrize(
    ("options", "promise", "checks"),
    [
        ({"appendfsync": "always"}, "nothing acknowledged is lost", set[str]()),
        ({"appendfsync": "everysec"}, "about a second", set[str]()),
        ({"appendfsync": "no"}, "had not yet written back", set[str]()),
        ({"appendonly": "no", "save": "60 1"}, "snapshots only", {"append-only file"}),
        ({"appendonly": "no"}, "everything is lost", {"append-only file"}),
    ],
)
async def test_the_promise_follows_the_settings(
    options: dict[str, str], promise: str, checks: set[str]
) -> None:
    with RedisServer(options=options) as server:
        found = await inspected(server.url)
    assert promise in found.promise
    assert failed(found) == checks


def _linked(replica: RedisServer) -> bool:
    return b"master_link_status:up" in replica.ask("INFO", "replication")


async def test_a_replica_makes_the_promise_smaller() -> None:
    with (
        RedisServer(options={"appendfsync": "always"}) as server,
        RedisServer(options={"replicaof": f"127.0.0.1 {server.port}"}) as replica,
    ):
        await asyncio.to_thread(await_condition, lambda: _linked(replica), 30)
        assert "replica" in (await inspected(server.url)).promise


async def test_little_memory_left_is_told() -> None:
    with RedisServer(kind="redis6") as server:
        server.ask("CONFIG", "SET", "maxmemory", "1mb")
        assert "memory" in failed(await inspected(server.url))


async def test_a_policy_changed_later_is_told() -> None:
    with RedisServer() as server:
        store = open_store(server.url)
        await store.open()
        server.ask("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
        assert failed(await store.inspect()) == {"eviction"}
        await store.close()


async def test_writes_that_are_refused_are_told() -> None:
    with RedisServer() as server:
        store = open_store(server.url)
        await store.open()
        server.ask("CONFIG", "SET", "min-replicas-to-write", "1")
        assert failed(await store.inspect()) == {"writes"}
        await store.close()


async def test_a_user_with_its_own_keys_and_channel_alone_is_enough() -> None:
    with RedisServer() as server:
        rights = ("~{shop}:*", "&{shop}:*", "+@all", "-@admin")
        server.ask("ACL", "SETUSER", "app", "on", ">pw", *rights)
        url = server.url.replace("://", "://app:pw@") + "?namespace=shop"
        store = open_store(url)
        await store.open()
        subscription = store.subscribe()
        job_id = await enqueue(store)
        assert await subscription.wait(10)
        assert (await claim_one(store)).id == job_id
        assert "the server does not tell" in (await store.inspect()).promise
        await store.close()
