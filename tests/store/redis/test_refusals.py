"""A server that cannot keep the store's promises is refused, in one sentence."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock import Penstock
from penstock.config import Settings
from penstock.model.errors import InvalidOption
from penstock.model.store_errors import (
    AccessDenied,
    NotAPenstockStore,
    NoTransactions,
    SchemaTooNew,
    ServerTooOld,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    UnsafeServer,
)
from penstock.operate.move import move
from penstock.store.contract import Part, Store
from penstock.store.open import open_store
from penstock.store.redis.server import check_server, is_volatile, read_info
from proof.conformance.build import OWNER, a_job, claim_all, completed, enqueue
from proof.servers import RedisServer
from tests.support.namespaces import in_new_namespace

SENTENCE = re.compile(r"Store \S+ [^;]+; [^;]+\.")


@pytest.fixture(scope="module", params=["valkey", "redis6"])
def server(request: pytest.FixtureRequest) -> Iterator[RedisServer]:
    with RedisServer(kind=request.param) as server:
        yield server


async def refused(url: str, error: type[StoreError]) -> str:
    """What is said when a store cannot be opened; one sentence that says what to do."""
    store = open_store(url)
    with pytest.raises(error) as told:
        await store.open()
    await store.close()
    assert SENTENCE.fullmatch(str(told.value)), str(told.value)
    return str(told.value)


async def opened(url: str) -> Store:
    store = open_store(url)
    await store.open()
    return store


def with_account(url: str, account: str) -> str:
    return url.replace("://", f"://{account}@")


@pytest.fixture
def volatile(server: RedisServer) -> Iterator[str]:
    """The URL of an empty installation on a server that keeps nothing on disk."""
    server.ask("CONFIG", "SET", "appendonly", "no")
    yield in_new_namespace(server.url)
    server.ask("CONFIG", "SET", "save", "")
    server.ask("CONFIG", "SET", "appendonly", "yes")


async def test_a_server_that_keeps_nothing_on_disk_is_refused_and_nothing_is_made_there(
    server: RedisServer, volatile: str
) -> None:
    told = await refused(volatile, UnsafeServer)
    assert "writes nothing to disk" in told
    assert "allow_volatile=true" in told
    store = open_store(volatile)
    with pytest.raises(UnsafeServer):
        await store.open(moving=True)
    with pytest.raises(UnsafeServer):
        await store.migrate()
    assert not await store.exists()
    await store.close()
    server.ask("CONFIG", "SET", "save", "3600 1")
    await (await opened(volatile)).close()


async def test_it_is_taken_where_the_settings_or_the_url_allow_it(volatile: str) -> None:
    await (await opened(f"{volatile}&allow_volatile=true")).close()
    with pytest.raises(UnsafeServer):
        await Penstock(volatile).open()
    app = Penstock(volatile, settings=Settings(allow_volatile=True))
    await app.open()
    await app.close()
    with pytest.raises(InvalidOption, match="allow_volatile"):
        open_store(f"{volatile}&allow_volatile=perhaps")


async def test_a_move_goes_to_a_server_that_keeps_nothing_only_where_that_is_allowed(
    volatile: str, tmp_path: Path
) -> None:
    source = f"sqlite:///{tmp_path / 'work.db'}"
    async with Penstock(source) as app:
        await app.store.jobs.enqueue([a_job()])
    with pytest.raises(UnsafeServer):
        await move(source, volatile)
    assert (await move(source, volatile, allow_volatile=True)).tally.parts[Part.JOBS] == 1
    assert (await move(volatile, source, replace=True)).tally.parts[Part.JOBS] == 1


async def test_an_installation_may_be_moved_away_from_a_server_that_keeps_nothing(
    volatile: str,
) -> None:
    store = await opened(f"{volatile}&allow_volatile=true")
    job_id = await enqueue(store)
    await store.close()
    await refused(volatile, UnsafeServer)
    store = open_store(volatile)
    await store.open(moving=True)
    assert [job.id for job in await store.reader.get([job_id])] == [job_id]
    await store.close()


async def test_what_the_server_keeps_is_known_without_config(
    server: RedisServer, volatile: str
) -> None:
    server.ask("ACL", "SETUSER", "plain", "on", ">pw", "~*", "&*", "+@all", "-config")
    restricted = with_account(volatile, "plain:pw")
    assert "writes nothing to disk" in await refused(restricted, UnsafeServer)
    server.ask("CONFIG", "SET", "appendonly", "yes")
    await (await opened(restricted)).close()
    info = {"redis_version": "7.0.0", "aof_enabled": "0"}
    assert is_volatile(info | {"rdb_last_bgsave_time_sec": "-1"}, None)
    assert not is_volatile(info | {"rdb_last_bgsave_time_sec": "0"}, None)


async def test_a_wrong_password_is_not_shown_again(server: RedisServer) -> None:
    server.ask("CONFIG", "SET", "requirepass", "sesame")
    try:
        for account in (":wrong", "bob:wrong"):
            told = await refused(with_account(server.url, account), AccessDenied)
            assert "password" in told
            assert "wrong@" not in told
        await refused(server.url, AccessDenied)
        await (await opened(with_account(server.url, ":sesame"))).close()
    finally:
        await _open_again(server)


async def _open_again(server: RedisServer) -> None:
    store = await opened(with_account(server.url, ":sesame"))
    await store.close()
    server.restart()


async def test_a_user_without_the_right_is_told_which_is_missing(server: RedisServer) -> None:
    server.ask("ACL", "SETUSER", "weak", "on", ">pw", "~*", "&*", "+info", "+client")
    assert "hget" in (await refused(with_account(server.url, "weak:pw"), AccessDenied)).lower()
    server.ask("ACL", "SETUSER", "other", "on", ">pw", "~other:*", "&*", "+@all")
    assert "key" in await refused(with_account(server.url, "other:pw"), AccessDenied)


@pytest.mark.parametrize(
    "url",
    [
        "redis://127.0.0.1:1/0",
        "redis://no.such.host.invalid/0",
        "unix:///no/such/socket",
    ],
)
async def test_a_server_that_is_not_there_is_named(url: str) -> None:
    assert url in await refused(url, StoreUnavailable)


async def test_a_database_that_does_not_exist_is_named(server: RedisServer) -> None:
    assert "database" in await refused(server.url.replace("/0", "/99"), StoreUnavailable)


async def test_a_replica_is_refused(server: RedisServer) -> None:
    with RedisServer(options={"replicaof": f"127.0.0.1 {server.port}"}) as replica:
        assert "primary" in await refused(replica.url, StoreReadOnly)


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-ttl"])
async def test_a_server_that_may_evict_is_refused(server: RedisServer, policy: str) -> None:
    server.ask("CONFIG", "SET", "maxmemory-policy", policy)
    try:
        told = await refused(server.url, UnsafeServer)
        assert policy in told
        assert "noeviction" in told
    finally:
        server.ask("CONFIG", "SET", "maxmemory-policy", "noeviction")


async def test_the_policy_is_known_where_config_is_disabled() -> None:
    with RedisServer(options={"maxmemory-policy": "allkeys-lfu"}) as server:
        server.ask("ACL", "SETUSER", "app", "on", ">pw", "~*", "&*", "+@all", "-config")
        assert "allkeys-lfu" in await refused(with_account(server.url, "app:pw"), UnsafeServer)


async def test_a_namespace_of_a_newer_penstock_is_refused(server: RedisServer) -> None:
    url = in_new_namespace(server.url)
    await (await opened(url)).close()
    meta = f"{{{url.partition('namespace=')[2]}}}:meta"
    server.ask("HSET", meta, "layout", "1000")
    assert "1000" in await refused(url, SchemaTooNew)


async def test_a_namespace_with_other_data_is_refused(server: RedisServer) -> None:
    url = in_new_namespace(server.url)
    meta = f"{{{url.partition('namespace=')[2]}}}:meta"
    server.ask("SET", meta, "mine")
    assert "namespace" in await refused(url, NotAPenstockStore)
    server.ask("DEL", meta)
    server.ask("HSET", meta, "layout", "mine")
    await refused(url, NotAPenstockStore)


async def test_a_cluster_has_one_database(valkey_cluster_server_url: str) -> None:
    url = valkey_cluster_server_url.replace("/0", "/1")
    assert "database" in await refused(url, StoreUnavailable)


def test_a_server_that_is_too_old_is_refused() -> None:
    info = read_info(b"# Server\r\nredis_version:6.0.16\r\nmaxmemory_policy:noeviction\r\n")
    with pytest.raises(ServerTooOld, match=r"6\.0\.16.*6\.2"):
        check_server("redis://h/0", info)
    newer = read_info(b"redis_version:6.2.0\r\nmaxmemory_policy:noeviction\r\nrole:master\r\n")
    check_server("redis://h/0", newer)


def test_a_server_that_hides_its_policy_is_refused() -> None:
    with pytest.raises(UnsafeServer, match="does not tell"):
        check_server("redis://h/0", read_info(b"redis_version:7.2.4\r\n"))


async def test_text_that_is_no_unicode_fails_its_own_call_alone(valkey_url: str) -> None:
    store = await opened(valkey_url)
    first, *refused, last = await asyncio.gather(
        enqueue(store),
        enqueue(store, payload='"\ud800"'),
        enqueue(store, type="\ud800"),
        store.reader.get(["\ud800"]),
        enqueue(store, payload='"\\u0000"'),
        return_exceptions=True,
    )
    assert [type(error) for error in refused] == [InvalidOption] * 3
    assert len(await store.reader.get([str(first), str(last)])) == 2
    with pytest.raises(InvalidOption, match="Unicode"):
        store.leases.cancel_requests("\ud800")
    await store.close()


async def test_no_transaction_can_be_joined(valkey_url: str) -> None:
    store = await opened(valkey_url)
    with pytest.raises(NoTransactions):
        await store.jobs.enqueue([a_job()], connection=object())
    with pytest.raises(NoTransactions):
        store.connection()
    await store.close()


async def test_a_full_memory_refuses_new_jobs_and_lets_the_old_ones_end(
    server: RedisServer,
) -> None:
    store = await opened(in_new_namespace(server.url))
    ids = [await enqueue(store, payload='{"a":1}') for _ in range(20)]
    server.ask("CONFIG", "SET", "maxmemory", "100kb")
    try:
        with pytest.raises(StoreFull) as full:
            await enqueue(store)
        assert SENTENCE.fullmatch(str(full.value))
        leases = await claim_all(store)
        assert sorted(lease.id for lease in leases) == sorted(ids)
        assert await store.jobs.settle(OWNER, [completed(lease) for lease in leases]) == []
    finally:
        server.ask("CONFIG", "SET", "maxmemory", "0")
    assert all(job.status.terminal for job in await store.reader.get(ids))
    await enqueue(store)
    await store.close()
