"""A server that answers but does not serve: it is said why, nothing is lost, and it passes."""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from threading import Thread

import psutil
import pytest
import redis
from structlog.testing import capture_logs

from penstock.model.store_errors import AccessDenied, StoreError
from penstock.store.contract import Store
from penstock.store.open import open_store
from penstock.store.redis.errors import translate
from proof.conformance.build import OWNER, completed, enqueue, running
from proof.servers import RedisServer, ValkeyCluster
from proof.servers.process import await_condition

PATIENCE = 30.0
SENTENCE = re.compile(r"Store \S+ [^;]+; [^;]+\.")
NOWHERE = ("127.0.0.1", "1")
# Slow enough to be seen; after so many bytes it answers meanwhile.
SLOW_LOADING = {"key-load-delay": "50000", "loading-process-events-interval-bytes": "1024"}
PAYLOAD = f'{{"text":"{"x" * 1024}"}}'

Act = Callable[[RedisServer], object]


def configure(name: str, value: str) -> Act:
    return lambda server: server.ask("CONFIG", "SET", name, value)


def lose_the_primary(server: RedisServer) -> None:
    server.ask("CONFIG", "SET", "replica-serve-stale-data", "no")
    server.ask("REPLICAOF", *NOWHERE)


def fail_to_save(server: RedisServer) -> None:
    """Have it write its data out slowly, and kill the process that does."""
    server.ask("CONFIG", "SET", "save", "3600 1000000")
    server.ask("CONFIG", "SET", "rdb-key-save-delay", "10000000")
    server.ask("BGSAVE")
    process = psutil.Process(server.pid)
    await_condition(lambda: bool(process.children()), PATIENCE)
    for child in process.children():
        child.kill()
    persistence = "rdb_last_bgsave_status:err"
    await_condition(lambda: persistence in server.ask("INFO").decode(), PATIENCE)


def save(server: RedisServer) -> None:
    server.ask("CONFIG", "SET", "rdb-key-save-delay", "0")
    server.ask("BGSAVE")


def run_a_script(server: RedisServer) -> None:
    def run() -> None:
        client = redis.Redis(unix_socket_path=str(server.socket))
        with client, pytest.raises(redis.ResponseError):
            client.eval("while true do end", 0)

    server.ask("CONFIG", "SET", "busy-reply-threshold", "1")
    Thread(target=run, daemon=True).start()
    await_condition(lambda: server.ask("PING").startswith(b"-BUSY"), PATIENCE)


REFUSALS: dict[str, tuple[Act, Act, str]] = {
    "MISCONF": (fail_to_save, save, "cannot write to its disk"),
    "READONLY": (
        lambda server: server.ask("REPLICAOF", *NOWHERE),
        lambda server: server.ask("REPLICAOF", "NO", "ONE"),
        "name the primary",
    ),
    "MASTERDOWN": (
        lose_the_primary,
        lambda server: server.ask("REPLICAOF", "NO", "ONE"),
        "a replica that lost its primary",
    ),
    "NOREPLICAS": (
        configure("min-replicas-to-write", "1"),
        configure("min-replicas-to-write", "0"),
        "fewer replicas",
    ),
    "BUSY": (run_a_script, lambda server: server.ask("SCRIPT", "KILL"), "busy with a script"),
}


@asynccontextmanager
async def opened(url: str) -> AsyncGenerator[Store]:
    store = open_store(url)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def refused(store: Store) -> str:
    """What is said of a call that the server refuses; one sentence."""
    with pytest.raises(StoreError) as told:
        await enqueue(store)
    assert SENTENCE.fullmatch(str(told.value)), str(told.value)
    return str(told.value)


async def said(store: Store, words: str) -> bool:
    """Whether a server that was gone before refuses with these words, sooner or later."""
    deadline = time.monotonic() + PATIENCE
    while words not in await refused(store):
        assert time.monotonic() < deadline
    return True


async def serves_again(store: Store) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            await enqueue(store)
            return
        except StoreError:
            assert time.monotonic() < deadline


@pytest.mark.parametrize("code", REFUSALS)
async def test_a_refusal_is_one_sentence_and_passes(code: str) -> None:
    refuse, serve, words = REFUSALS[code]
    with RedisServer() as server, capture_logs() as logs:
        async with opened(server.url) as store:
            lease = await running(store)
            await asyncio.to_thread(refuse, server)
            assert words in await refused(store)
            with pytest.raises(StoreError, match=words):
                await store.jobs.settle(OWNER, [completed(lease)])
            await asyncio.to_thread(serve, server)
            await serves_again(store)
            assert await store.jobs.settle(OWNER, [completed(lease)]) == []
    assert all(SENTENCE.fullmatch(line["error"]) for line in logs if "error" in line), logs


async def test_a_server_that_loads_its_data_is_waited_for() -> None:
    with RedisServer() as server:
        async with opened(server.url) as store:
            lease = await running(store)
            for _ in range(100):
                await enqueue(store, payload=PAYLOAD)
            server.ask("BGREWRITEAOF")
            await asyncio.to_thread(await_condition, lambda: is_rewritten(server), PATIENCE)
            server.kill()
            server.options |= SLOW_LOADING
            starting = Thread(target=server.start)
            starting.start()
            await asyncio.to_thread(await_condition, lambda: is_loading(server), PATIENCE)
            with capture_logs() as logs:
                assert await said(store, "still loading its data")
            server.ask("CONFIG", "SET", "key-load-delay", "0")
            await asyncio.to_thread(starting.join)
            await serves_again(store)
            assert await store.jobs.settle(OWNER, [completed(lease)]) == []
    assert all(SENTENCE.fullmatch(line["error"]) for line in logs), logs


def is_rewritten(server: RedisServer) -> bool:
    told = server.ask("INFO", "persistence").decode().split()
    return {"aof_rewrite_in_progress:0", "aof_rewrites:1"} <= set(told)


def is_loading(server: RedisServer) -> bool:
    try:
        return server.ask("PING").startswith(b"-LOADING")
    except OSError:
        return False


@pytest.mark.thorough
async def test_a_cluster_that_lost_a_node_is_waited_for() -> None:
    with ValkeyCluster() as cluster:
        async with opened(cluster.url) as store:
            lease = await running(store)
            cluster.nodes[-1].kill()
            await asyncio.to_thread(await_condition, lambda: is_down(cluster), PATIENCE)
            assert await said(store, "its cluster is down")
            cluster.nodes[-1].start()
            await serves_again(store)
            assert await store.jobs.settle(OWNER, [completed(lease)]) == []


def is_down(cluster: ValkeyCluster) -> bool:
    told = [node.ask("CLUSTER", "INFO").decode() for node in cluster.nodes[:-1]]
    return all("cluster_state:fail" in answer for answer in told)


@pytest.mark.parametrize(
    "error",
    [
        redis.ConnectionError("Error while reading from h:1 : (104, 'Connection reset by peer')"),
        redis.ConnectionError("Error while reading from socket: (104, 'Connection reset by peer')"),
        redis.ConnectionError("Error 104 while writing to socket. Connection reset by peer."),
        ConnectionResetError(104, "Connection reset by peer"),
    ],
    ids=str,
)
def test_a_broken_line_is_told_in_words(error: Exception) -> None:
    told = translate("redis://localhost", error)
    assert "cannot be reached (Connection reset by peer);" in str(told)


def test_a_command_that_a_user_lacks_within_a_script_is_named() -> None:
    told = "ACL failure in script: User ann has no permissions to run the 'copy' command"
    error = translate("redis://h", redis.ResponseError(f"{told} script: on @user_script:512."))
    assert isinstance(error, AccessDenied)
    assert "(User ann has no permissions to run the 'copy' command); give it" in str(error)
