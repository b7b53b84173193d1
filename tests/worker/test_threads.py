import asyncio
import threading
from queue import SimpleQueue
from typing import Any

import pytest

from penstock.worker import threads
from penstock.worker.threads import Threads


class Slow(SimpleQueue[Any]):
    """Keeps whoever took something from going on with it."""

    open = threading.Event()

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        item = super().get(block, timeout)
        assert self.open.wait(30)
        return item


async def test_no_work_waits_for_a_thread_that_has_just_taken_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(threads, "SimpleQueue", Slow)
    Slow.open.set()
    pool = Threads()
    await pool.run(lambda: None)
    together = threading.Barrier(2)
    Slow.open.clear()
    first = asyncio.create_task(pool.run(lambda: together.wait(30)))
    await asyncio.sleep(0)
    while pool._work.qsize():  # noqa: ASYNC110 - the thread of before takes it
        await asyncio.sleep(0)
    second = asyncio.create_task(pool.run(lambda: together.wait(30)))
    await asyncio.sleep(0)
    Slow.open.set()
    await asyncio.wait_for(asyncio.gather(first, second), 40)
    pool.close()


async def test_threads_are_kept_for_the_next_job() -> None:
    pool = Threads()
    names = {(await pool.run(lambda: threading.current_thread().name))[0] for _ in range(20)}
    assert len(names) == 1
    pool.close()
