import asyncio
import time
from typing import Any

import pytest

from penstock import Penstock
from penstock.testing import Signals
from penstock.worker.memory import ExecutionMemory, PeakMemory
from tests.worker.running import working

pytestmark = pytest.mark.skipif(PeakMemory().kb() is None, reason="this system does not tell")


def fill(megabytes: int) -> int:
    """Hold some memory, for long enough to be measured."""
    held = bytearray(megabytes * 1_000_000)
    until = time.monotonic() + 0.02
    while time.monotonic() < until:
        pass
    return len(held)


def test_a_peak_is_forgotten_when_asked() -> None:
    peak = PeakMemory()
    peak.reset()
    before = peak.kb() or 0
    assert len(bytearray(50_000_000)) == 50_000_000
    assert (peak.kb() or 0) - before > 40_000
    peak.reset()
    assert (peak.kb() or 0) - before < 20_000
    peak.close()
    assert peak.kb() is None
    peak.reset()


@pytest.mark.parametrize("kind", ["loop", "thread"])
async def test_an_execution_that_ran_alone_has_the_peak_of_its_worker(
    app: Penstock, drain: Any, kind: str
) -> None:
    async def fill_async(megabytes: int) -> int:
        return fill(megabytes)

    type_ = app.job(name="fill")(fill if kind == "thread" else fill_async)
    figures: list[int] = []
    for megabytes in (60, 1):
        job = await type_.enqueue(megabytes)
        await drain()
        (execution,) = await app.executions(job.id)
        assert execution.memory_kb is not None
        figures.append(execution.memory_kb)
    assert figures[0] - figures[1] > 40_000


async def test_of_executions_side_by_side_nobody_knows_the_memory(
    app: Penstock, signals: Signals
) -> None:
    @app.job
    async def meet(number: int) -> None:
        signals.send("here")
        await asyncio.to_thread(signals.wait_in_thread, "here", 2)

    async with working(app):
        jobs = [await meet.enqueue(number) for number in range(2)]
        for job in jobs:
            await job.result(timeout=30)
    assert [e.memory_kb for job in jobs for e in await app.executions(job.id)] == [None, None]


def test_quick_executions_are_not_measured_until_one_is_slow() -> None:
    memory = ExecutionMemory()
    resets: list[int] = []
    memory._peak.reset = lambda: resets.append(1)  # type: ignore[method-assign]

    def execution(seconds: float) -> int | None:
        token = object()
        memory.enter(token, "task")
        memory._since -= seconds
        return memory.leave(token, "task")

    assert [execution(0), execution(0), execution(1)] == [None, None, None]
    assert len(resets) == 1
    assert execution(1) is not None
    assert len(resets) == 2
