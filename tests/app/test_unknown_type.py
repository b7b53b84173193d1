import asyncio
from pathlib import Path

import pytest

from penstock import Penstock, Status, Worker
from penstock.model.errors import UnknownType
from penstock.testing import Signals


async def test_an_unknown_type_waits_for_a_worker_that_knows_it(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'work.db'}"
    new, old = Penstock(url), Penstock(url)

    @new.job
    async def added_today() -> str:
        return "ran"

    @old.job
    async def known() -> None: ...

    async with new, old:
        job = await added_today.enqueue()
        await known.enqueue()
        await Worker(old, burst=True, upkeep=False).run()
        found = await old.get(job.id)
        assert (found.status, found.attempts, found.fence) == (Status.QUEUED, 0, 0)
        assert await old.store.workers.waiting_types() == {"added_today": 1}
        await Worker(new, burst=True, upkeep=False).run()
        assert await job.result(timeout=30) == "ran"


async def test_a_worker_goes_on_with_other_jobs_behind_an_unknown_one(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'work.db'}"
    new, old = Penstock(url), Penstock(url)
    signals = Signals()

    @new.job
    async def added_today() -> None: ...

    @old.job
    async def known() -> None:
        signals.send("ran")

    async with new, old:
        await new.enqueue_many([added_today.options(priority=1).new() for _ in range(50)])
        worker = Worker(old, concurrency=1, upkeep=False)
        running = asyncio.create_task(worker.run())
        await known.enqueue()
        await signals.wait("ran")
        worker.stop()
        await running
        assert await old.store.workers.waiting_types() == {"added_today": 50}


async def test_an_unknown_type_cannot_be_enqueued_by_name(app: Penstock) -> None:
    @app.job
    async def known() -> None: ...

    with pytest.raises(UnknownType, match=r"'unknown'.*known types are known"):
        await app.enqueue_payload("unknown")
