"""What goes wrong between a caller and its server: nothing is lost and nothing done twice."""

import asyncio
from collections.abc import Iterator
from contextlib import AbstractContextManager

import pytest

from penstock import Penstock, Status, connect
from penstock.model.store_errors import StoreClosed, StoreUnavailable
from penstock.remote.client import Remote
from penstock.server.app import create_server
from penstock.testing import drain
from proof.proxy import Proxy
from proof.servers.ports import free_port
from tests.remote.kitchen import make_app
from tests.support.http_server import serving


@pytest.fixture
def proxy(address: str) -> Iterator[Proxy]:
    with Proxy(address) as between:
        yield between


def remote_through(proxy: Proxy, types: Penstock) -> Remote:
    return connect(proxy.url, app=types, patience=20)


async def test_a_batch_whose_answer_is_lost_is_sent_again_and_makes_no_job_twice(
    proxy: Proxy, types: Penstock, behind: Penstock
) -> None:
    add = types.types["add"]
    async with remote_through(proxy, types) as remote:
        dropped = proxy.drop_answer_after(lambda sent: b"POST /api/jobs" in sent)
        calls = [add.new(n) for n in range(200)]
        handles = await remote.enqueue_many(calls)
    assert dropped.is_set()
    assert [handle.id for handle in handles] == [call.job.id for call in calls]
    assert all(handle.created for handle in handles)
    assert len(await behind.find(limit=1000)) == 200


@pytest.mark.thorough
async def test_connections_that_are_cut_while_batches_are_under_way_lose_and_double_nothing(
    proxy: Proxy, types: Penstock, behind: Penstock
) -> None:
    add, acknowledged = types.types["add"], list[str]()
    async with remote_through(proxy, types) as remote:
        for start in range(20):
            calls = [add.new(start, n) for n in range(25)]
            sending = asyncio.create_task(remote.enqueue_many(calls))
            for _ in range(start):
                await asyncio.sleep(0)  # so that the cut comes ever later
            await asyncio.to_thread(proxy.reset)
            acknowledged += [handle.id for handle in await sending]
    stored = [job.id for job in await behind.find(limit=1000)]
    assert len(stored) == 500
    assert sorted(stored) == sorted(acknowledged)


async def test_a_server_that_is_replaced_between_batches_loses_and_doubles_nothing(
    store_url: str, types: Penstock
) -> None:
    add, port = types.types["add"], free_port()
    acknowledged: list[str] = []
    under_way = asyncio.Event()

    async def produce(remote: Remote) -> None:
        for start in range(40):
            made = await remote.enqueue_many([add.new(start, n) for n in range(25)])
            acknowledged.extend(handle.id for handle in made)
            if start == 5:
                under_way.set()

    def new_server() -> AbstractContextManager[str]:
        return serving(create_server(make_app(store_url), trusts_callers=True), port)

    async with connect(f"http://127.0.0.1:{port}", app=types, patience=60) as remote:
        first = new_server()
        await asyncio.to_thread(first.__enter__)
        producing = asyncio.create_task(produce(remote))
        await under_way.wait()
        await asyncio.to_thread(first.__exit__, None, None, None)
        second = new_server()
        await asyncio.to_thread(second.__enter__)
        await producing
        await asyncio.to_thread(second.__exit__, None, None, None)
    async with make_app(store_url) as behind:
        stored = [job.id for job in await behind.find(limit=2000)]
    assert len(acknowledged) == 1000
    assert sorted(stored) == sorted(acknowledged)


async def test_a_watch_survives_a_cut_connection(
    proxy: Proxy, types: Penstock, behind: Penstock
) -> None:
    async with remote_through(proxy, types) as remote:
        handle = await remote.enqueue(types.types["stir"].new(3))
        watching = remote.watch(handle.id)
        assert (await anext(watching)).status is Status.QUEUED
        proxy.reset()
        await drain(behind)
        seen = [job async for job in watching]
        assert seen[-1].status is Status.COMPLETED
        assert seen[-1] == await behind.get(handle.id)
        assert await handle.result(timeout=20) == 3


async def test_many_jobs_are_followed_a_few_at_a_time(
    remote: Remote, behind: Penstock, types: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.remote.handle.MOST_STREAMS", 2)
    add = types.types["add"]
    handles = await remote.enqueue_many([add.new(n) for n in range(7)])
    watching = remote.watch(*(handle.id for handle in handles))
    first = await anext(watching)
    await drain(behind)
    ended = {job.id for job in [first, *[job async for job in watching]] if job.status.terminal}
    assert ended == {handle.id for handle in handles}


async def test_a_server_that_is_not_there_is_named_once_patience_has_run_out(
    types: Penstock,
) -> None:
    async with connect(f"http://127.0.0.1:{free_port()}", app=types, patience=0.2) as remote:
        with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1"):
            await remote.enqueue(types.types["add"].new(1))


async def test_an_answer_that_does_not_come_is_given_up(
    proxy: Proxy, types: Penstock, behind: Penstock
) -> None:
    async with connect(proxy.url, app=types, timeout=0.2, patience=0.1) as remote:
        proxy.blackhole()
        with pytest.raises(StoreUnavailable, match="Timeout"):
            await remote.find()
        proxy.heal()


async def test_requests_share_a_connection(proxy: Proxy, types: Penstock) -> None:
    async with remote_through(proxy, types) as remote:
        for number in range(5):
            await remote.enqueue(types.types["add"].new(number))
            assert proxy.connections == 1


async def test_a_remote_that_is_not_open_says_so(address: str) -> None:
    with pytest.raises(StoreClosed, match="async with"):
        await connect(address).find()
