"""Crews whose workers are no processes, so that they start and end when a test says so."""

import asyncio
import signal
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from structlog.testing import capture_logs

from penstock import Penstock
from penstock.testing import FakeClock, in_memory
from penstock.worker import respawn
from penstock.worker.autoscale import Crew, Policy
from penstock.worker.process import WorkerSpec
from penstock.worker.supervisor import Supervisor
from tests.worker.autoscale import yard

QUICK = Policy(least=1, most=2, up_depth=2, down_depth=1, cool_down=0, calm=0)


class Child:
    """A worker process that ends when it is told to finish."""

    def __init__(self) -> None:
        self.returncode: int | None = None
        self.told: list[int] = []
        self.ended = asyncio.Event()

    def finish(self) -> None:
        """End well."""
        self.returncode = 0
        self.ended.set()


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> list[Child]:
    """All workers that any crew has started, the oldest first; they hear signals, and go on."""
    made: list[Child] = []
    monkeypatch.setattr(respawn, "tell", lambda child, number: child.told.append(number))

    async def run_child(self: Any, _: int, owner: str) -> int:
        child = self._children[owner] = Child()
        made.append(child)
        try:
            await child.ended.wait()
        finally:
            del self._children[owner]
        return 0

    async def briefly(_: Any, __: float) -> None:
        await asyncio.sleep(0.001)

    monkeypatch.setattr(Supervisor, "_run_child", run_child)
    monkeypatch.setattr(respawn, "until", briefly)
    return made


@pytest.fixture
def app(clock: FakeClock) -> Iterator[Penstock]:
    """The application of the crews, with nothing to do."""
    with in_memory(yard.app, clock) as opened:
        yield opened


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def new_crew(**fields: Any) -> Crew:
    return Crew(WorkerSpec(target="tests.worker.autoscale.yard:app", **fields), QUICK, 0.001)


@asynccontextmanager
async def running(crew: Crew, children: list[Child]) -> AsyncGenerator[None]:
    task = asyncio.create_task(crew.run())
    try:
        yield
    finally:
        crew.stop()
        for child in children:
            child.finish()
        await task


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - nothing rings
            await asyncio.sleep(0.001)


@asynccontextmanager
async def frozen(crew: Crew) -> AsyncGenerator[None]:
    """A crew that does nothing for a while, as one whose process is stopped."""
    still, thaw = asyncio.Event(), asyncio.Event()

    async def look(_: Penstock) -> None:
        still.set()
        await thaw.wait()

    crew.__dict__["_look"] = look
    await still.wait()
    try:
        yield
    finally:
        del crew.__dict__["_look"]
        thaw.set()


async def looks(app: Penstock, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """Until crews have looked so often."""
    seen = 0
    depths = app.store.metrics.depths

    async def counting() -> Any:
        nonlocal seen
        seen += 1
        return await depths()

    with monkeypatch.context() as watched:
        watched.setattr(app.store.metrics, "depths", counting)
        await until(lambda: seen >= times)


async def test_a_worker_that_was_let_go_finishes_and_is_not_replaced(
    app: Penstock, children: list[Child], monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [await yard.hold.enqueue("gate") for _ in range(5)]
    crew = new_crew()
    async with running(crew, children):
        await until(lambda: len(children) == 2)
        for job in jobs:
            await app.cancel(job.id)
        await until(lambda: crew.workers == 1)
        await looks(app, monkeypatch, 3)
        assert [child.told for child in children] == [[], [signal.SIGTERM]]
        children[1].finish()
        await looks(app, monkeypatch, 10)
        assert (len(children), crew.workers) == (2, 1)


async def test_a_second_crew_with_the_same_work_stands_by_until_the_first_is_gone(
    app: Penstock, clock: FakeClock, children: list[Child]
) -> None:
    first, second = new_crew(), new_crew()
    async with running(first, children):
        await until(lambda: first.workers == 1)
        with capture_logs() as lines:
            async with running(second, children):
                await until(lambda: "autoscale_stands_by" in [line["event"] for line in lines])
                assert (second.workers, len(children)) == (0, 1)
                async with frozen(first):
                    clock.advance(60)
                    await until(lambda: second.workers == 1)
                await until(lambda: first.workers == 0)
                assert children[0].told == [signal.SIGTERM]


async def test_crews_of_different_names_or_queues_do_not_wait_for_each_other(
    app: Penstock, children: list[Child]
) -> None:
    one, other = new_crew(name="one"), new_crew(queues=("mail",))
    async with running(one, children), running(other, children):
        await until(lambda: one.workers == other.workers == 1)
