"""A process that dies is started again, at once or after a pause, and ends when it is alone."""

import asyncio
import os
import sys
import threading
from asyncio.subprocess import Process

import psutil
import pytest

from penstock.model.errors import InvalidOption
from penstock.model.store_errors import StoreFull, StoreUnavailable
from penstock.worker import respawn
from penstock.worker.respawn import KeptChild, exit_code_of, keep, orphaned, until


class Lives:
    """A process that lives for so many seconds each time, on a clock of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *seconds: float) -> None:
        self.left = list(seconds)
        self.pauses: list[float] = []
        self.now = 0.0
        monkeypatch.setattr(respawn, "monotonic", lambda: self.now)
        monkeypatch.setattr(respawn, "until", self.pause)

    async def run(self) -> bool:
        self.now += self.left.pop(0)
        return bool(self.left)

    async def pause(self, _: asyncio.Event, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


async def test_pauses_grow_while_it_dies_young_and_start_anew_when_it_was_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lives = Lives(monkeypatch, 0, 1, 9, 11, 0, 0)
    await keep(lives.run, asyncio.Event())
    assert lives.pauses == pytest.approx([0.2, 0.4, 0.8, 0.1, 0.2])


async def test_no_pause_is_longer_than_half_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    lives = Lives(monkeypatch, *[0] * 20)
    await keep(lives.run, asyncio.Event())
    assert max(lives.pauses) == lives.pauses[-1] == 30


async def test_an_event_ends_a_pause() -> None:
    event = asyncio.Event()
    async with asyncio.timeout(30):
        pausing = asyncio.create_task(until(event, 60))
        event.set()
        await pausing
        await until(asyncio.Event(), 0.001)


async def test_a_process_is_an_orphan_when_its_parent_is_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(respawn, "ORPHAN_SECONDS", 0)
    parents = [4, 4, 1]
    monkeypatch.setattr(os, "getppid", lambda: parents.pop(0))
    async with asyncio.timeout(30):
        await orphaned(4)
    assert parents == []


def test_a_store_that_is_away_is_worth_another_try() -> None:
    errors = (StoreUnavailable("sqlite", "away"), StoreFull("sqlite"), InvalidOption("a", 1, "b"))
    assert [exit_code_of(error) for error in errors] == [1, 1, 2]


async def test_who_tells_a_process_to_stop_that_just_ended_leaves_its_exit_code_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun = asyncio.Event()
    may_wait = threading.Event()
    wait = os.waitpid
    children: list[psutil.Process] = []

    class Brief(KeptChild):
        async def start_child(self, *, again: bool) -> Process:
            child = await asyncio.create_subprocess_exec(sys.executable, "-c", "")
            children.append(psutil.Process(child.pid))
            begun.set()
            return child

    def waitpid(pid: int, options: int) -> tuple[int, int]:
        if threading.current_thread() is not threading.main_thread():
            may_wait.wait(60)
        return wait(pid, options)

    monkeypatch.setattr(os, "waitpid", waitpid)
    kept = Brief("brief")
    running = asyncio.create_task(kept.run())
    try:
        await begun.wait()
        while children[0].status() != psutil.STATUS_ZOMBIE:
            os.sched_yield()
        kept.stop()
        assert children[0].status() == psutil.STATUS_ZOMBIE, "nobody has waited for it here"
    finally:
        may_wait.set()
    assert await running == 0
