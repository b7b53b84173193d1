"""Whether a job leaves the same behind however often it is begun: once, twice, and killed half-way.

A `Play` says what is there before, how the job is triggered, and how its effect is read. It is
performed in processes of its own, each on an empty store. One performance only counts the points at
which the job makes something last: commits of `app.transact`, checkpoints, files that get their
name, and its end. Further ones end their process at one of these points, without a word to anybody;
the lease is taken away as a supervisor does it, and another process resumes the job.

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

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
MOST = 100 if LONG else 3
"""Points at which a job is killed, spread from the first to its end."""

PRELOADED = [
    "numpy",
    "penstock.apps.agents.jobs",
    "penstock.apps.agents.namespace",
    "penstock.apps.agents.vectors.batch",
    "penstock.apps.agents.vectors.pgvector_store",
    "penstock.store.postgres.store",
    "penstock.store.sqlite.store",
    "penstock.testing",
    "penstock.worker.worker",
    "pytest",
    "usearch.index",
]


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

    def stub(self) -> None:
        """Replace what is outside, in the process of the job."""

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


async def twice_and_killed(stage: Stage, play: Play, *, most: int = MOST) -> Any:
    """Perform a play in all these ways; return the state, which was the same after each."""
    with stage.empty() as setting:
        points = await _trigger(play, setting, 1, None)
        once = await _state(play, setting)
        if play.again:
            await _trigger(play, setting, 2, None)
            twice = await _state(play, setting)
            assert twice == once, f"a second job changed more: {twice!r} instead of {once!r}"
    assert points, "the job made nothing last: nothing was tested"
    for number in _spread(points, most):
        with stage.empty() as setting:
            await _trigger(play, setting, 1, number)
            await _resume(play, setting)
            resumed = await _state(play, setting)
        where = f"killed at point {number} of {points}"
        assert resumed == once, f"{where}, it left {resumed!r} instead of {once!r}"
    return once


def _spread(points: int, most: int) -> list[int]:
    if points <= most:
        return list(range(1, points + 1))
    return sorted({1 + round(n * (points - 1) / (most - 1)) for n in range(most)})


async def _trigger(play: Play, setting: Setting, number: int, kill_at: int | None) -> int:
    """Have the job run for the first or the second time; the points it passed."""
    async with play.app(setting) as app:
        with _same_ids(app, number):
            if number == 1:
                await play.given(app)
            await play.enqueue(app)
    points = await asyncio.to_thread(_at_work, play, setting, kill_at)
    assert (points == -1) == (kill_at is not None), f"the job ended before point {kill_at}"
    return points


async def _resume(play: Play, setting: Setting) -> None:
    async with play.app(setting) as app:
        rescued = await app.store.upkeep.rescue(owner=OWNER, max_rescues=5)
    assert rescued, "nothing was running when its process was killed"
    await asyncio.to_thread(_at_work, play, setting, None)


async def _state(play: Play, setting: Setting) -> Any:
    async with play.app(setting) as app:
        for job in await app.find(limit=100):
            assert job.status == "completed", f"{job.type} is {job.status}: {job.error}"
        return await play.state(app)


def _at_work(play: Play, setting: Setting, kill_at: int | None) -> int:
    """Run what is there in a process of its own; the points it passed, or -1 if it was killed."""
    context = get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(play, setting, kill_at, theirs))
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


def _work(play: Play, setting: Setting, kill_at: int | None, told: Connection) -> None:
    fuse = Fuse(kill_at)
    fuse.lay()
    play.stub()
    app = play.app(setting)
    with _same_ids(app, 100 + (kill_at or 0)):
        asyncio.run(_until_idle(app))
    told.send(fuse.passed)


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

    def lay(self) -> None:
        """Put it through everything that makes something last while a job runs."""
        self._around(Penstock, "transact")
        self._around(JobReporter, "checkpoint")
        self._around(Executor, "_completed")
        self._around(os, "replace")
        self._around(os, "rename")
        call = Executor._call

        def lit(*args: Any) -> Any:
            self._burns = True
            return call(*args)

        setattr(Executor, "_call", lit)  # noqa: B010
        # In this process nothing can take down a worker that should go on.
        setattr(Executor, "_wants_process", lambda *_: False)  # noqa: B010

    def _around(self, owner: Any, name: str) -> None:
        whole = getattr(owner, name)

        def passing(*args: Any, **named: Any) -> Any:
            if self._burns:
                self.passed += 1
                if self.passed == self._kill_at:
                    os._exit(KILLED)
            return whole(*args, **named)

        setattr(owner, name, passing)


@contextmanager
def _same_ids(app: Penstock, seed: int) -> Iterator[None]:
    chance = random.Random(seed)
    with replaying(app.store.clock.now, chance.randbytes):
        yield
