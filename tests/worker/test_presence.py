import asyncio
import logging
import os
import threading
from typing import Any

import pytest

from penstock import Context, Penstock, Worker
from penstock.model.store_errors import StoreUnavailable
from penstock.service import Service
from penstock.testing import FakeClock, Signals
from penstock.worker import pump
from tests.worker.running import working


@pytest.fixture
def beats(app: Penstock, monkeypatch: pytest.MonkeyPatch) -> Signals:
    app.settings = app.settings.replace(heartbeat_interval=0.02)
    signals = Signals()
    beat = app.store.workers.beat

    def signalled(said: Any) -> None:
        beat(said)
        signals.send("beat", said)

    monkeypatch.setattr(app.store.workers, "beat", signalled)
    return signals


async def test_a_workers_row_tells_who_it_is_and_how_it_fares(
    app: Penstock, clock: FakeClock, beats: Signals
) -> None:
    @app.job
    async def task(fail: bool) -> None:
        if fail:
            raise PermissionError

    async with working(app, name="mailer", queues=["default"], concurrency=7) as worker:
        jobs = await app.enqueue_many([task.new(False), task.new(False), task.new(True)])
        async for _ in app.store.reader.watch([job.id for job in jobs]):
            pass
        clock.advance(3)
        await beats.wait("beat", times=len(beats.values("beat")) + 2)
        (row,) = await app.store.workers.list()
    assert (row.owner, row.name, row.pid) == (worker.owner, "mailer", os.getpid())
    assert (row.queues, row.types, row.concurrency) == (("default",), ("task",), 7)
    assert (row.running, row.completed, row.failed, row.state) == (0, 2, 1, "running")
    assert row.memory_mb > 1
    assert row.cpu_percent >= 0
    assert 0 <= row.poll_age_ms < 60_000
    assert row.heartbeat_at - row.started_at == 3_000
    assert await app.store.workers.list() == []


async def test_a_worker_that_drains_says_so_at_once(app: Penstock, beats: Signals) -> None:
    app.settings = app.settings.replace(heartbeat_interval=3600)
    signals = Signals()

    @app.job
    async def long() -> None:
        signals.send("started")
        await asyncio.to_thread(signals.wait_in_thread, "go")

    await long.enqueue()
    async with working(app) as worker:
        await signals.wait("started")
        worker.stop()
        await beats.wait("beat", times=2)
        (row,) = await app.store.workers.list()
        assert (row.state, row.running) == ("draining", 1)
        signals.send("go")


async def test_a_worker_that_the_store_fails_says_so_until_it_is_served_again(
    app: Penstock, beats: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.job
    async def task() -> None: ...

    async def refuse(*args: Any) -> None:
        raise StoreUnavailable("work.db", "its disk is full")

    monkeypatch.setattr(pump, "RETRY_SECONDS", 0.01)
    async with working(app):
        with monkeypatch.context() as outage:
            outage.setattr(app.store.jobs, "claim", refuse)
            await task.enqueue()
            await beats.wait("beat", times=len(beats.values("beat")) + 3)
            (row,) = await app.store.workers.list()
            assert row.state == "degraded"
        handle = await task.enqueue()
        await handle.result(timeout=30)
        await beats.wait("beat", times=len(beats.values("beat")) + 2)
        (row,) = await app.store.workers.list()
        assert row.state == "running"


async def test_a_worker_above_its_memory_limit_recycles_itself(app: Penstock) -> None:
    app.settings = app.settings.replace(memory_limit_mb=1)

    @app.job
    async def task() -> None: ...

    worker = Worker(app, upkeep=False)
    await worker.run()
    assert "over the limit of 1" in str(worker.recycling.chosen)


async def test_a_worker_with_too_many_abandoned_threads_recycles_itself(
    app: Penstock, clock: FakeClock
) -> None:
    app.settings = app.settings.replace(max_abandoned_threads=1)
    signals = Signals()

    @app.job(timeout=10, max_retries=0)
    def stuck(ctx: Context) -> None:
        signals.send("started")
        signals.wait_in_thread("go", timeout=60)

    await app.enqueue_many([stuck.new(), stuck.new()])
    worker = Worker(app, upkeep=False)
    running = asyncio.create_task(worker.run())
    await signals.wait("started", times=2)
    clock.advance(10)
    await running
    signals.send("go")
    assert "2 handlers outlived" in str(worker.recycling.chosen)


async def test_a_worker_with_repeated_errors_of_its_own_recycles_itself(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    app.settings = app.settings.replace(max_internal_errors=3)
    monkeypatch.setattr(pump, "RETRY_SECONDS", 0.001)

    async def broken(*args: Any) -> None:
        raise RuntimeError("a bug of ours")

    monkeypatch.setattr(app.store.jobs, "claim", broken)

    @app.job
    async def task() -> None: ...

    worker = Worker(app, upkeep=False)
    await worker.run()
    assert "internal errors" in str(worker.recycling.chosen)


async def test_errors_of_handlers_recycle_nobody(app: Penstock) -> None:
    app.settings = app.settings.replace(max_internal_errors=0, max_abandoned_threads=0)

    @app.job(max_retries=0)
    async def broken() -> None:
        raise RuntimeError("a bug of theirs")

    await app.enqueue_many([broken.new() for _ in range(50)])
    worker = Worker(app, burst=True, upkeep=False)
    await worker.run()
    assert worker.recycling.chosen is None
    assert worker.counts == {"completed": 0, "failed": 50}


async def test_a_worker_that_cannot_start_leaves_nothing_behind(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(Service):
        async def start(self) -> None:
            raise LookupError("no table")

        async def run_once(self) -> None:
            """Never called."""

    app.job(name="any")(lambda: None)
    threads, handlers = set(threading.enumerate()), list(logging.getLogger().handlers)
    monkeypatch.setattr(Worker, "_services", lambda _: [Broken(1)])
    with pytest.raises(LookupError, match="no table"):
        await Worker(app).run()
    left = [each.name for each in set(threading.enumerate()) - threads]
    assert [name for name in left if name in ("penstock-heartbeat", "penstock-loop-watch")] == []
    assert logging.getLogger().handlers == handlers
    assert await app.store.workers.list() == []
