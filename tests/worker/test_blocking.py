"""A handler that blocks the event loop is named while it does."""

import asyncio
import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from traceback import FrameSummary
from typing import Any

import pytest

from penstock import Context, Penstock
from penstock.logs import configure_logs
from penstock.testing import drain
from penstock.worker import execution, processes
from penstock.worker.blocking import LoopWatch, of_handler
from penstock.worker.worker import Worker

Lines = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def logging(capsys: pytest.CaptureFixture[str]) -> Callable[[], Lines]:
    """Calling it configures the log; then the lines are read from what it gives."""

    def begin() -> Lines:
        configure_logs(json=True)
        return lambda: [json.loads(line) for line in capsys.readouterr().err.splitlines()]

    return begin


class Time:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> tuple[Time, list[LoopWatch]]:
    """The clock of the watches that workers make, and these; none looks by itself."""
    clock, watches = Time(), list[LoopWatch]()
    monkeypatch.setattr("penstock.worker.blocking.LOOK_SECONDS", 3600.0)

    class Watch(LoopWatch):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given, clock)
            watches.append(self)

    monkeypatch.setattr("penstock.worker.worker.LoopWatch", Watch)
    return clock, watches


def look_from_outside(watch: LoopWatch) -> None:
    """Let another thread look while this one, that of the event loop, waits for it."""
    thread = threading.Thread(target=watch.look)
    thread.start()
    thread.join()


async def test_the_job_and_the_line_are_named_after_a_second_in_the_log_and_with_the_job(
    logging: Callable[[], Lines], watched: tuple[Time, list[LoopWatch]]
) -> None:
    lines = logging()
    app, (clock, watches) = Penstock("sqlite:///:memory:"), watched

    @app.job
    async def crunch() -> None:
        clock.now += 0.9
        look_from_outside(watches[0])
        clock.now += 0.2
        look_from_outside(watches[0])

    async with app:
        job = await crunch.enqueue()
        await Worker(app, burst=True, upkeep=False).run()
        told = [line for line in lines() if line["event"] == "loop_blocked"]
        kept = [(line.level, line.message) for line in await app.logs(job.id)]
    assert [(line["job_id"], line["job_type"]) for line in told] == [(job.id, "crunch")]
    assert re.match(r"test_blocking.py:\d+, in look_from_outside: thread", told[0]["where"])
    assert told[0]["seconds"] == 1.1
    assert "run_in='process'" in told[0]["cure"]
    assert [level for level, _ in kept] == ["warning"]
    assert "blocks the event loop at test_blocking.py" in kept[0][1]


async def test_a_blocked_worker_says_so_at_once_and_again_when_it_is_over(
    watched: tuple[Time, list[LoopWatch]],
) -> None:
    app, (clock, watches) = Penstock("sqlite:///:memory:"), watched
    seen: list[tuple[str, str]] = []

    async def look(job_id: str) -> None:
        [worker] = await app.store.workers.list()
        seen.append((worker.state, (await app.explain(job_id)).summary))

    @app.job
    async def crunch(ctx: Context) -> None:
        clock.now += 1.5
        look_from_outside(watches[0])
        await look(ctx.id)
        watches[0].tick()
        look_from_outside(watches[0])
        await look(ctx.id)

    async with app:
        await crunch.enqueue()
        await Worker(app, burst=True, upkeep=False).run()
    (blocked, told), (over, later) = seen
    assert (blocked, over) == ("blocked", "running")
    assert "A handler blocks the event loop of that worker" in told
    assert "blocks" not in later


async def test_a_worker_is_not_called_blocked_where_no_handler_is_guilty(
    logging: Callable[[], Lines], watched: tuple[Time, list[LoopWatch]]
) -> None:
    lines = logging()
    app, (clock, watches) = Penstock("sqlite:///:memory:"), watched

    @app.job
    async def work() -> None:
        await asyncio.create_task(another())

    async def another() -> None:
        clock.now += 1.5
        look_from_outside(watches[0])
        [worker] = await app.store.workers.list()
        assert (worker.state, watches[0].is_blocked) == ("running", False)

    async with app:
        job = await work.enqueue()
        await Worker(app, burst=True, upkeep=False).run()
        assert (await job.get()).status == "completed"
        assert await app.logs(job.id) == []
    [told] = [line for line in lines() if line["event"] == "loop_blocked"]
    assert "cure" not in told


def test_a_worker_that_is_held_up_while_it_starts_a_process_blames_no_handler() -> None:
    def stack(*files: str) -> list[FrameSummary]:
        return [FrameSummary(file, 1, "f") for file in files]

    started = stack("main.py", asyncio.__file__, execution.__file__, processes.__file__)
    assert of_handler([*started, *stack(subprocess.__file__)]) == []
    called = stack("tasks.py", subprocess.__file__)
    assert of_handler([*started[:-1], *called]) == called


async def test_a_worker_that_drains_says_so_although_it_is_blocked(
    watched: tuple[Time, list[LoopWatch]],
) -> None:
    app, (clock, watches) = Penstock("sqlite:///:memory:"), watched
    seen: list[str] = []

    @app.job
    async def crunch() -> None:
        worker.drain()
        clock.now += 1.5
        look_from_outside(watches[0])
        assert watches[0].is_blocked
        seen.extend(each.state for each in await app.store.workers.list())

    async with app:
        await crunch.enqueue()
        worker = Worker(app, upkeep=False)
        await worker.run()
    assert seen == ["draining"]


async def test_a_block_is_told_once_then_seldom_and_its_end_is_told(
    logging: Callable[[], Lines],
) -> None:
    lines = logging()
    clock = Time()
    watch = LoopWatch("w", list, lambda *_: None, clock)
    for _ in range(10_000):  # 1,000 seconds
        clock.now += 0.1
        watch.look()
    watch.tick()
    clock.now += 0.5
    watch.look()
    watch.tick()
    told = [(line["event"], line["seconds"]) for line in lines()]
    assert [seconds for event, seconds in told if event == "loop_blocked"] == pytest.approx(
        [1.0, 10.0, 60.0, 300.0, 600.0, 900.0], abs=0.3
    )
    assert told[-1] == ("loop_free_again", 1000.0)


async def test_a_loop_that_goes_round_is_left_in_peace(logging: Callable[[], Lines]) -> None:
    lines = logging()
    clock = Time()
    watch = LoopWatch("w", list, lambda *_: None, clock)
    for _ in range(100):
        clock.now += 0.9
        watch.look()
        watch.tick()
    assert lines() == []


async def test_a_worker_looks_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = asyncio.Event()
    loop = asyncio.get_running_loop()
    monkeypatch.setattr("penstock.worker.blocking.LOOK_SECONDS", 0.001)
    monkeypatch.setattr(LoopWatch, "look", lambda _: loop.call_soon_threadsafe(looked.set))
    app = Penstock("sqlite:///:memory:")

    @app.job
    async def work() -> None:
        await looked.wait()

    async with app:
        await work.enqueue()
        await drain(app)
    assert looked.is_set()


GARBAGE_THAT_WANTS_THE_LOCK = """
import gc
import threading

from penstock.worker.blocking import frame_of

released = threading.Event()

def deep(level):
    return deep(level - 1) if level else released.wait()

for _ in range(8):
    threading.Thread(target=deep, args=(20,), daemon=True).start()
gc.disable()
gc.collect()
ring = type("Ring", (), {})()
ring.itself, ring.of_threads = ring, threading.local()
ring.of_threads.value = 1
del ring
gc.set_threshold(gc.get_count()[0] + 5)
gc.enable()
assert frame_of(threading.get_ident()) is not None
assert gc.isenabled()
"""


def test_looking_where_a_thread_is_does_not_stand_still_when_garbage_is_collected() -> None:
    subprocess.run([sys.executable, "-c", GARBAGE_THAT_WANTS_THE_LOCK], check=True, timeout=60)
