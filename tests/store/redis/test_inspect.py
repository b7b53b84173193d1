"""What the server keeps, said as it is."""

import asyncio
import re
from pathlib import Path

import pytest
import redis

from penstock import Penstock
from penstock.store.contract import Durability
from penstock.store.open import open_store
from penstock.testing import drain
from proof.servers import RedisServer
from proof.servers.process import await_condition
from proof.servers.redis import Kind


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


SYNC_AT_ONCE = {"repl-diskless-sync-delay": "0"}
"""A primary otherwise waits 5 s for more replicas before it sends its data."""


def _linked(replica: RedisServer) -> bool:
    return b"master_link_status:up" in replica.ask("INFO", "replication")


@pytest.mark.thorough
async def test_a_replica_makes_the_promise_smaller() -> None:
    with (
        RedisServer(options={"appendfsync": "always", **SYNC_AT_ONCE}) as server,
        RedisServer(options={"replicaof": f"127.0.0.1 {server.port}"}) as replica,
    ):
        await asyncio.to_thread(await_condition, lambda: _linked(replica), 30)
        assert "replica" in (await inspected(server.url)).promise


async def test_little_memory_left_is_told() -> None:
    with RedisServer(kind="redis6") as server:
        store = open_store(server.url)
        await store.open()
        server.ask("CONFIG", "SET", "maxmemory", "100kb")
        assert "memory" in failed(await store.inspect())
        await store.close()


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


def _documented_user() -> list[str]:
    """The words of the command that the guide gives."""
    guide = Path(__file__).parents[3] / "docs/guide/redis.md"
    found = re.search(r"^ACL SETUSER .*$", guide.read_text(), re.MULTILINE)
    assert found is not None
    return found[0].split()


FORBIDDEN = [
    ("FLUSHALL",), ("FLUSHDB",), ("SWAPDB", 0, 1), ("KEYS", "*"), ("CONFIG", "GET", "requirepass"),
    ("ACL", "LIST"), ("SCRIPT", "FLUSH"), ("SHUTDOWN", "NOSAVE"),
    ("CLIENT", "KILL", "TYPE", "normal"), ("MONITOR",), ("GET", "{other}:x"), ("DEL", "{other}:x"),
    ("PUBLISH", "{other}:wake", ""), ("SUBSCRIBE", "{other}:wake"),
    ("EVAL", "return redis.call('SET', '{other}:x', '1')", 0),
    ("EVAL", "return redis.call('FLUSHALL')", 0),
]  # fmt: skip


@pytest.mark.parametrize("kind", ["valkey", "redis6"])
async def test_the_documented_user_is_enough_for_work_and_for_nothing_else(kind: Kind) -> None:
    with RedisServer(kind=kind) as server:
        assert server.ask(*_documented_user()) == b"+OK\r\n"
        url = server.url.replace("://", "://penstock:secret@")
        app = Penstock(f"{url}?namespace=shop")

        @app.job
        async def add(a: int, b: int) -> int:
            return a + b

        async with app:
            job = await add.enqueue(2, 3)
            await app.schedule("nightly", add.partial(1, 1), every=3600)
            await drain(app)
            assert await job.result(timeout=10) == 5
            assert "the server does not tell" in (await app.store.inspect()).promise
        with redis.Redis.from_url(url) as client:
            for command in FORBIDDEN:
                with pytest.raises(
                    redis.ResponseError, match=r"permission|NOPERM|ACL failure|can't (access|run)"
                ):
                    client.execute_command(*command)
