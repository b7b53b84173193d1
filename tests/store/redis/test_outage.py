"""A server that goes away while work runs, and comes back."""

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest
import redis

from penstock import Penstock, Settings
from penstock.model.states import Status
from penstock.model.store_errors import (
    ForkedStore,
    StoreClosed,
    StoreReadOnly,
    StoreUnavailable,
)
from penstock.store.contract import Store
from penstock.store.open import open_store
from penstock.store.redis.pipeline import ThreadPipelines
from penstock.store.redis.server import Server
from penstock.testing import Signals
from proof.conformance.build import (
    OWNER,
    a_job,
    claim_one,
    completed,
    enqueue,
    held,
    running,
    status_of,
)
from proof.proxy import Proxy
from proof.servers import RedisServer, ValkeyCluster
from proof.servers.ports import free_port
from proof.servers.process import await_condition
from tests.worker.running import working

PATIENCE = 30.0


async def opened(url: str) -> Store:
    store = open_store(url)
    await store.open()
    return store


async def until(condition: Callable[[], bool]) -> None:
    await asyncio.to_thread(await_condition, condition, PATIENCE)


async def answers(store: Store) -> None:
    """Return when the store works again."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await store.metrics.depths()
                return
            except StoreUnavailable:
                continue  # the store itself waits between two tries


@pytest.mark.parametrize("kind", ["valkey", "redis6"])
async def test_a_store_comes_back_by_itself_with_all_it_had(kind: str) -> None:
    with RedisServer(kind=kind, options={"appendfsync": "always"}) as server:  # type: ignore[arg-type]
        store = await opened(server.url)
        lease = await running(store)
        waiting = await enqueue(store)
        server.kill()
        for _ in range(3):
            with pytest.raises(StoreUnavailable):
                await enqueue(store)
        with pytest.raises(StoreUnavailable):
            store.leases.renew(OWNER, [held(lease)])
        server.start()
        await answers(store)
        assert store.leases.renew(OWNER, [held(lease)]).lost == []
        assert await store.jobs.settle(OWNER, [completed(lease)]) == []
        assert (await claim_one(store)).id == waiting
        await store.close()


async def test_a_silent_server_costs_a_bounded_time(valkey_url: str) -> None:
    with Proxy(valkey_url) as proxy:
        store = await opened(f"{proxy.url}&timeout=1")
        proxy.blackhole()
        began = time.monotonic()
        with pytest.raises(StoreUnavailable):
            await enqueue(store)
        with pytest.raises(StoreUnavailable):
            await asyncio.to_thread(store.leases.cancel_requests, OWNER)
        assert time.monotonic() - began < 5
        proxy.heal()
        await answers(store)
        await store.close()


async def test_calls_to_a_slow_server_share_a_few_connections(valkey_url: str) -> None:
    with Proxy(valkey_url) as proxy:
        store = await opened(proxy.url)
        proxy.delay(0.02)
        calls: list[asyncio.Task[str]] = []
        for _ in range(200):
            calls.append(asyncio.create_task(enqueue(store)))
            for _ in range(3):
                await asyncio.sleep(0)  # each call of another turn of the loop
        assert len(set(await asyncio.gather(*calls))) == 200
        assert proxy.connections <= ThreadPipelines.MOST + 2
        await store.close()


async def test_connections_that_were_reset_are_replaced(valkey_url: str) -> None:
    with Proxy(valkey_url) as proxy:
        store = await opened(proxy.url)
        lease = await running(store)
        proxy.reset()
        await answers(store)
        proxy.reset()
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    renewal = await asyncio.to_thread(store.leases.renew, OWNER, [held(lease)])
                    break
                except StoreUnavailable:
                    continue
        assert renewal.lost == []
        await store.close()


async def test_an_enqueue_whose_answer_was_lost_is_done_once(valkey_url: str) -> None:
    with Proxy(valkey_url) as proxy:
        store = await opened(proxy.url)
        await enqueue(store)
        job = a_job()
        dropped = proxy.drop_answer_after(lambda sent: job.id.encode() in sent)
        with pytest.raises(StoreUnavailable):
            await store.jobs.enqueue([job])
        assert dropped.is_set()
        await answers(store)
        [again] = await store.jobs.enqueue([job])
        assert (again.id, again.created) == (job.id, False)
        await store.close()


async def test_a_cancelled_call_leaves_no_answer_for_the_next(valkey_url: str) -> None:
    with Proxy(valkey_url) as proxy:
        store = await opened(proxy.url)
        ids = [await enqueue(store) for _ in range(3)]
        proxy.delay(0.05)
        for job_id in ids:
            call = asyncio.create_task(store.reader.get([job_id]))
            await asyncio.sleep(0)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
        proxy.heal()
        for job_id in ids:
            assert [job.id for job in await store.reader.get([job_id])] == [job_id]
        await store.close()


async def test_a_round_trip_that_was_given_up_does_not_disturb_the_next(valkey_url: str) -> None:
    with Proxy(valkey_url) as proxy:
        server = Server(proxy.url)
        await server.open()
        proxy.delay(0.05)
        call = asyncio.create_task(server.ask("ECHO", "first"))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(call, 0.02)
        proxy.heal()
        assert await server.ask("ECHO", "second") == b"second"
        await server.close()


async def test_scripts_that_the_server_forgot_are_sent_again() -> None:
    with RedisServer() as server:
        store = await opened(server.url)
        await enqueue(store)
        server.ask("SCRIPT", "FLUSH")
        lease = await claim_one(store)
        assert store.leases.renew(OWNER, [held(lease)]).lost == []
        await store.close()


async def test_a_server_that_became_a_replica_is_left_alone_until_it_leads_again() -> None:
    with RedisServer() as other, RedisServer() as server:
        store = await opened(server.url)
        job_id = await enqueue(store)
        server.ask("REPLICAOF", "127.0.0.1", str(other.port))
        with pytest.raises(StoreReadOnly):
            await enqueue(store)
        server.ask("REPLICAOF", "NO", "ONE")
        await enqueue(store)
        assert await store.reader.get([job_id]) is not None
        await store.close()


async def test_a_namespace_that_moves_to_another_node_is_followed() -> None:
    with ValkeyCluster() as cluster:
        store = await opened(f"{cluster.url}?namespace=wanderer")
        lease = await running(store)
        waiting = await enqueue(store)
        _move(cluster, "wanderer")
        assert store.leases.renew(OWNER, [held(lease)]).lost == []
        assert await store.jobs.settle(OWNER, [completed(lease)]) == []
        assert (await claim_one(store)).id == waiting
        await store.close()


def _move(cluster: ValkeyCluster, namespace: str) -> None:
    """Have another node hold all keys of a namespace."""
    with ExitStack() as stack:
        nodes = [stack.enter_context(redis.Redis(port=node.port)) for node in cluster.nodes]
        slot = nodes[0].cluster("KEYSLOT", f"{{{namespace}}}")
        source = next(node for node in nodes if node.cluster("COUNTKEYSINSLOT", slot))
        target = next(node for node in nodes if node is not source)
        old, new = (node.execute_command("CLUSTER MYID") for node in (source, target))
        target.execute_command("CLUSTER SETSLOT", slot, "IMPORTING", old)
        source.execute_command("CLUSTER SETSLOT", slot, "MIGRATING", new)
        keys: Any = source.execute_command("CLUSTER GETKEYSINSLOT", slot, 1_000)
        port = target.connection_pool.connection_kwargs["port"]
        source.execute_command("MIGRATE", "127.0.0.1", port, "", 0, 5_000, "KEYS", *keys)
        for node in (target, *nodes):
            node.execute_command("CLUSTER SETSLOT", slot, "NODE", new)


async def test_a_worker_keeps_its_jobs_through_an_outage(signals: Signals) -> None:
    with RedisServer(options={"appendfsync": "always"}) as server:
        app = Penstock(server.url, settings=Settings(poll_interval=0.05))
        runs: list[str] = []
        may_end = asyncio.Event()

        @app.job
        async def slow(name: str) -> str:
            runs.append(name)
            signals.send("started", name)
            await may_end.wait()
            return name

        async with app, working(app, concurrency=4):
            handles = [await slow.enqueue(str(number)) for number in range(4)]
            await signals.wait("started", times=4)
            server.kill()
            may_end.set()
            with pytest.raises(StoreUnavailable):
                await app.store.metrics.depths()
            server.start()
            await answers(app.store)
            assert [await handle.result(PATIENCE) for handle in handles] == list("0123")
            later = await slow.enqueue("later")
            assert await later.result(PATIENCE) == "later"
        assert sorted(runs) == ["0", "1", "2", "3", "later"]


@pytest.fixture
def signals() -> Signals:
    return Signals()


def _refused_in_child(uses: list[Callable[[], object]]) -> int:
    """How many uses a forked child is refused."""
    child = os.fork()
    if child == 0:
        refused = 0
        for use in uses:
            try:
                use()
            except ForkedStore:
                refused += 1
        os._exit(refused)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


async def test_a_forked_child_is_refused(valkey_url: str) -> None:
    store = await opened(valkey_url)
    uses: list[Callable[[], object]] = [
        lambda: store.leases.cancel_requests(OWNER),
        lambda: store.leases.renew(OWNER, []),
    ]
    store.leases.cancel_requests(OWNER)
    assert _refused_in_child(uses) == len(uses)
    assert await status_of(store, await enqueue(store)) is Status.QUEUED
    await store.close()


async def test_a_store_that_was_never_opened_says_so(valkey_url: str) -> None:
    store = open_store(valkey_url)
    with pytest.raises(StoreClosed):
        await enqueue(store)
    with pytest.raises(StoreClosed):
        store.leases.cancel_requests(OWNER)
    await store.close()


def _holder_of(cluster: ValkeyCluster, namespace: str) -> tuple[RedisServer, str]:
    """The node that holds a namespace, and its name in the cluster."""
    for node in cluster.nodes:
        if node.ask("EXISTS", f"{{{namespace}}}:meta") == b":1\r\n":
            return node, node.ask("CLUSTER", "MYID").decode().strip()
    raise AssertionError("no node holds the namespace")


def _follows(replica: RedisServer, cluster: ValkeyCluster) -> bool:
    """Whether it has the data, and everyone knows of it."""
    told = [node.ask("CLUSTER", "INFO") for node in (*cluster.nodes, replica)]
    known = all(b"cluster_known_nodes:4" in answer for answer in told)
    return known and b"master_link_status:up" in replica.ask("INFO", "replication")


@pytest.mark.thorough
async def test_a_replica_that_takes_over_in_a_cluster_is_found() -> None:
    spare = {"cluster-enabled": "yes", "cluster-port": str(free_port())}
    # A primary otherwise waits 5 s for more replicas before it sends its data.
    at_once = {"repl-diskless-sync-delay": "0"}
    with ValkeyCluster(options=at_once) as cluster, RedisServer(options=spare) as replica:
        store = await opened(f"{cluster.url}?namespace=heir")
        job_id = await enqueue(store)
        primary, name = _holder_of(cluster, "heir")
        bus = primary.options["cluster-port"]
        replica.ask("CLUSTER", "MEET", "127.0.0.1", str(primary.port), bus)
        replicates = partial(replica.ask, "CLUSTER", "REPLICATE", name)
        await until(lambda: replicates() == b"+OK\r\n")
        await until(lambda: _follows(replica, cluster))
        primary.kill()
        await answers(store)
        assert (await claim_one(store)).id == job_id
        assert await asyncio.to_thread(store.leases.cancel_requests, OWNER) == []
        await store.close()
