"""Whether a job leaves the same behind however often it is begun: once, twice, and killed half-way.

A `Play` says what is there before, how the job is triggered, and how its effect is read. It is
performed on empty stores. One performance only counts the points at which the job makes something
last: commits of `app.transact`, checkpoints, files that get their name, and its end. Further ones
are each in a process that ends at one of these points, without a word to anybody; the lease is
taken away as a supervisor does it, and another process resumes the job.

In `make test` a job is killed half-way and at its end; in the long form wherever it can be, and
what is not killed has a process of its own, too.

    class Cleanup(Play):
        async def given(self, app): ...
        async def enqueue(self, app): await app.agents.enqueue("session-cleanup", {"maxAge": 1})
        async def state(self, app): return rows(app, "SELECT id, status FROM agents_sessions")

    async def test_a_cleanup_that_is_killed_is_resumed(stage: Stage) -> None:
        await twice_and_killed(stage, Cleanup())

The clock stands still and ids come from a fixed seed, so that states can be compared as they are.
"""

import asyncio
import os
import random
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pytest

from penstock import Penstock
from penstock.config import Settings
from penstock.model.ids import replaying
from penstock.testing import FakeClock
from penstock.worker.execution import Executor
from penstock.worker.reports import JobReporter
from penstock.worker.worker import Worker
from tests.support.places import LONG

KILLED = 77
OWNER = "killed:01"
NOW = "2026-01-01T00:00:00Z"
MOST = 100
"""Points at which the long form kills a job, spread from the first to its end."""


class Stage(NamedTuple):
    """Where plays are performed: `empty()` gives a store and a folder, which end with it."""

    kind: str
    empty: "Callable[[], AbstractContextManager[Setting]]"


class Setting(NamedTuple):
    """The store and the folder of one performance."""

    url: str
    folder: Path


class Play:
    """A job from its trigger to its effect. It is pickled: what it needs stands in its class."""

    settings: ClassVar[Mapping[str, Any]] = {}
    """Of `[penstock.agents]`."""

    extensions: ClassVar[Sequence[str]] = ("agents",)

    again: ClassVar[bool] = True
    """Whether a second job like it changes nothing more."""

    def stub(self, patch: pytest.MonkeyPatch) -> None:
        """Replace what is outside while the job runs."""

    async def given(self, app: Penstock) -> None:
        """Put there what the job works on."""

    async def enqueue(self, app: Penstock) -> None:
        """Trigger the job as users do."""
        raise NotImplementedError

    async def state(self, app: Penstock) -> Any:
        """Read what the job has changed, not through the code that changed it."""
        raise NotImplementedError

    def app(self, setting: Setting) -> Penstock:
        """The application, as each process makes it."""
        own = {"folder": str(setting.folder), "schedules": False, **self.settings}
        return Penstock(
            setting.url,
            extensions=list(self.extensions),
            settings=Settings(extension={"agents": own}),
            clock=FakeClock(NOW),
        )


async def twice_and_killed(stage: Stage, play: Play) -> Any:
    """Perform a play in all these ways; return the state, which was the same after each."""
    with stage.empty() as setting:
        async with _shared(play, setting) as app:
            points = await _trigger(play, setting, 1, None, app)
            once = await _state(play, setting, app)
            if play.again:
                await _trigger(play, setting, 2, None, app)
                twice = await _state(play, setting, app)
                assert twice == once, f"a second job changed more: {twice!r} instead of {once!r}"
    assert points, "the job made nothing last: nothing was tested"
    for number in _chosen(points):
        with stage.empty() as setting:
            await _trigger(play, setting, 1, number, None)
            async with _shared(play, setting) as app:
                await _resume(play, setting, app)
                resumed = await _state(play, setting, app)
        where = f"killed at point {number} of {points}"
        assert resumed == once, f"{where}, it left {resumed!r} instead of {once!r}"
    return once


@asynccontextmanager
async def _shared(play: Play, setting: Setting) -> AsyncIterator[Penstock | None]:
    """One application for all that is not killed; none in the long form, where each has its own."""
    if LONG:
        yield None
    else:
        async with play.app(setting) as app:
            yield app


def _chosen(points: int) -> list[int]:
    if not LONG:
        return sorted({(points + 1) // 2, points})
    if points <= MOST:
        return list(range(1, points + 1))
    return sorted({1 + round(n * (points - 1) / (MOST - 1)) for n in range(MOST)})


async def _trigger(
    play: Play, setting: Setting, number: int, kill_at: int | None, shared: Penstock | None
) -> int:
    """Have the job run for the first or the second time; the points it passed."""
    async with shared or play.app(setting) as app:
        with _same_ids(app, number):
            if number == 1:
                await play.given(app)
            await play.enqueue(app)
    points = await _at_work(play, setting, kill_at, shared)
    assert (points == -1) == (kill_at is not None), f"the job ended before point {kill_at}"
    return points


async def _resume(play: Play, setting: Setting, shared: Penstock | None) -> None:
    async with shared or play.app(setting) as app:
        rescued = await app.store.upkeep.rescue(owner=OWNER, max_rescues=5)
    assert rescued, "nothing was running when its process was killed"
    await _at_work(play, setting, None, shared)


async def _state(play: Play, setting: Setting, shared: Penstock | None) -> Any:
    async with shared or play.app(setting) as app:
        for job in await app.find(limit=100):
            assert job.status == "completed", f"{job.type} is {job.status}: {job.error}"
        return await play.state(app)


async def _at_work(
    play: Play, setting: Setting, kill_at: int | None, shared: Penstock | None
) -> int:
    """Run what is there; the points it passed, or -1 if it was killed."""
    if shared is None:
        return await asyncio.to_thread(_in_a_process, play, setting, kill_at)
    with pytest.MonkeyPatch.context() as patch:
        return await _work(play, shared, None, patch)


def _in_a_process(play: Play, setting: Setting, kill_at: int | None) -> int:
    context = get_context("forkserver")
    context.set_forkserver_preload(["tests.apps.agents.preloaded"])
    ours, theirs = context.Pipe()
    process = context.Process(target=_tell_points, args=(play, setting, kill_at, theirs))
    process.start()
    theirs.close()
    try:
        points: int = ours.recv()
    except EOFError:
        points = -1
    process.join()
    code = process.exitcode
    process.close()
    ours.close()
    assert code == (KILLED if points == -1 else 0), f"the process of the job ended with {code}"
    return points


def _tell_points(play: Play, setting: Setting, kill_at: int | None, told: Connection) -> None:
    told.send(asyncio.run(_work(play, play.app(setting), kill_at, pytest.MonkeyPatch())))


async def _work(play: Play, app: Penstock, kill_at: int | None, patch: pytest.MonkeyPatch) -> int:
    fuse = Fuse(kill_at)
    fuse.lay(patch)
    play.stub(patch)
    with _same_ids(app, 100 + (kill_at or 0)):
        await _until_idle(app)
    return fuse.passed


async def _until_idle(app: Penstock) -> None:
    async with app:
        while True:
            worker = Worker(app, burst=True, upkeep=False, owner=OWNER)
            await worker.run()
            if not sum(worker.counts.values()) or not await app.store.workers.waiting_types():
                return


class Fuse:
    """Counts the points at which something is made to last, and ends the process at one."""

    def __init__(self, kill_at: int | None) -> None:
        self.passed = 0
        self._kill_at = kill_at
        self._burns = False

    def lay(self, patch: pytest.MonkeyPatch) -> None:
        """Put it through everything that makes something last while a job runs."""
        for owner, name in (
            (Penstock, "transact"),
            (JobReporter, "checkpoint"),
            (Executor, "_completed"),
            (os, "replace"),
            (os, "rename"),
        ):
            patch.setattr(owner, name, self._around(getattr(owner, name)))
        call = Executor._call

        def lit(*args: Any) -> Any:
            self._burns = True
            return call(*args)

        patch.setattr(Executor, "_call", lit)
        # In this process nothing can take down a worker that should go on.
        patch.setattr(Executor, "_wants_process", lambda *_: False)

    def _around(self, whole: Callable[..., Any]) -> Callable[..., Any]:
        def passing(*args: Any, **named: Any) -> Any:
            # What pytest compiles on the way is not of the job.
            if self._burns and not any(str(each).endswith(".pyc") for each in args):
                self.passed += 1
                if self.passed == self._kill_at:
                    os._exit(KILLED)
            return whole(*args, **named)

        return passing


@contextmanager
def _same_ids(app: Penstock, seed: int) -> Iterator[None]:
    chance = random.Random(seed)
    with replaying(app.store.clock.now, chance.randbytes):
        yield
