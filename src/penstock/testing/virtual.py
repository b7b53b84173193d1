"""Time for users' tests: days pass in milliseconds, and everything in them happens."""

import random
from collections.abc import Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import datetime, timedelta
from typing import Any, NoReturn, TypedDict, Unpack, overload
from weakref import WeakKeyDictionary

from penstock.app.job_type import JobType
from penstock.app.penstock import Penstock
from penstock.app.sync import SyncPenstock
from penstock.model.clock import from_iso, milliseconds, utc
from penstock.model.errors import InvalidOption
from penstock.model.ids import replaying
from penstock.testing.app import URL, in_memory
from penstock.testing.clock import FakeClock
from penstock.testing.history import Happening, History, recorded
from penstock.testing.lone_worker import LoneWorker
from penstock.testing.timeline import Timeline

MILLISECOND = timedelta(milliseconds=1)
Moment = str | int | datetime

# A second stretch on the same store must not make the ids of the first again.
_stretches: WeakKeyDictionary[FakeClock, int] = WeakKeyDictionary()


class Span(TypedDict, total=False):
    """A stretch of time."""

    milliseconds: float
    seconds: float
    minutes: float
    hours: float
    days: float
    weeks: float


@overload
def virtual_time(
    app: Penstock, start: Moment | None = None, *, seed: int = 0, prune: bool = True
) -> "AbstractContextManager[VirtualTime]": ...
@overload
def virtual_time(
    app: SyncPenstock, start: Moment | None = None, *, seed: int = 0, prune: bool = True
) -> "AbstractContextManager[SyncVirtualTime]": ...


def virtual_time(
    app: Penstock | SyncPenstock,
    start: Moment | None = None,
    *,
    seed: int = 0,
    prune: bool = True,
) -> "AbstractContextManager[VirtualTime | SyncVirtualTime]":
    """`with virtual_time(app, "2026-03-28T12:00:00Z") as time: await time.advance(days=2)`.

    The application stands on an empty store in memory, or on the one that `in_memory` gave it. The
    same seed gives the same retry delays, ids and order. Pass `app.sync` without an event loop.
    """
    if isinstance(app, SyncPenstock):
        return _sync(app, start, seed, prune)
    return _begun(app, start, seed, prune)


class VirtualTime:
    """The time of one application; nothing happens in it but by `advance` and `until`."""

    def __init__(self, app: Penstock, clock: FakeClock, history: History, *, prune: bool) -> None:
        self.clock = clock
        self.history = history
        self._app = app
        self._prune = prune
        self._worker = LoneWorker(app, clock)
        self._timeline = Timeline(app, clock, self._worker.run_due)

    @property
    def now(self) -> datetime:
        """What time it is, in UTC."""
        return utc(self.clock.now())

    async def advance(self, **span: Unpack[Span]) -> list[Happening]:
        """Let time pass: `await time.advance(days=2)`; what happened in it, in order.

        Without a span, what is due now happens.
        """
        return await self._pass(_milliseconds(span))

    async def until(self, when: Moment) -> list[Happening]:
        """Let time pass up to a moment: `await time.until("2026-03-30T00:00:00Z")`."""
        left = _moment_ms(when) - self.clock.now()
        if left < 0:
            raise InvalidOption("when", str(when), f"no earlier than {self.now.isoformat()}")
        return await self._pass(left)

    def times(self, what: str, type_: str | JobType[..., ..., Any]) -> list[datetime]:
        """When something happened to jobs of a type: `time.times("completed", report)`."""
        return self.history.times(what, type_.name if isinstance(type_, JobType) else type_)

    def crash(self) -> NoReturn:
        """Have the worker die at this point of a handler; its lease runs out and is rescued."""
        self._worker.die()

    def crash_after(self, type_: str | JobType[..., ..., Any]) -> None:
        """Have the worker die when it has run the next job of a type, before it is settled."""
        found = self._app.find_type(type_) if isinstance(type_, str) else type_
        self._worker.doom(found.name)

    async def spend(self, **span: Unpack[Span]) -> None:
        """Let time pass inside a handler, which then took so long; at its timeout it is stopped."""
        await self._worker.spend(_milliseconds(span))

    async def _pass(self, milliseconds: int) -> list[Happening]:
        if self._worker.busy:
            raise RuntimeError("A handler cannot move the time it runs in; let it spend() some.")
        seen = len(self.history)
        end = self.clock.monotonic() + milliseconds
        async with self._app as app, self._worker.at_work():
            await app.declare()
            await self._timeline.play(milliseconds)
            self.clock.advance(max(0, end - self.clock.monotonic()) / 1000)
            await self._timeline.happen()
            if self._prune:
                await self._timeline.prune()
        return self.history[seen:]


class SyncVirtualTime:
    """The same without an event loop."""

    def __init__(self, time: VirtualTime, app: SyncPenstock) -> None:
        self.clock = time.clock
        self.history = time.history
        self.times = time.times
        self.crash = time.crash
        self.crash_after = time.crash_after
        self._time = time
        self._app = app

    @property
    def now(self) -> datetime:
        """What time it is, in UTC."""
        return self._time.now

    def advance(self, **span: Unpack[Span]) -> list[Happening]:
        """Let time pass; what happened in it, in order."""
        return self._app.run(self._time.advance(**span))

    def until(self, when: Moment) -> list[Happening]:
        """Let time pass up to a moment."""
        return self._app.run(self._time.until(when))

    def spend(self, **span: Unpack[Span]) -> None:
        """Let time pass inside a handler, which then took so long."""
        self._app.run(self._time.spend(**span))


@contextmanager
def _sync(
    app: SyncPenstock, start: Moment | None, seed: int, prune: bool
) -> Generator[SyncVirtualTime, None, None]:
    with _begun(app.app, start, seed, prune) as time:
        yield SyncVirtualTime(time, app)


@contextmanager
def _begun(
    app: Penstock, start: Moment | None, seed: int, prune: bool
) -> Generator[VirtualTime, None, None]:
    with ExitStack() as stack:
        clock = _clock_of(app)
        if clock is None:
            clock = FakeClock() if start is None else FakeClock(_moment_ms(start))
            stack.enter_context(in_memory(app, clock))
        elif start is not None:
            clock.set_wall(_moment_ms(start))
        stack.enter_context(_seeded(app, clock, seed))
        history = History()
        plain = app.store
        app.__dict__["store"] = recorded(plain, history)
        stack.callback(app.__dict__.__setitem__, "store", plain)
        yield VirtualTime(app, clock, history, prune=prune)


def _clock_of(app: Penstock) -> FakeClock | None:
    """The clock of a store that is open already, if a test may move it."""
    store = app.__dict__.get("store")
    return store.clock if store is not None and isinstance(store.clock, FakeClock) else None


@contextmanager
def _seeded(app: Penstock, clock: FakeClock, seed: int) -> Generator[None, None, None]:
    """The same chance every time. On a file, ids stay random: it may hold the same ones already."""
    kept = random.getstate()
    random.seed(seed)
    _stretches[clock] = stretch = _stretches.get(clock, 0) + 1
    chance = random.Random(f"{seed} {stretch}")
    try:
        with ExitStack() as stack:
            if app.settings.url == URL:
                stack.enter_context(replaying(clock.now, chance.randbytes))
            yield
    finally:
        random.setstate(kept)


def _milliseconds(span: Span) -> int:
    passed = timedelta(**span)
    if passed < timedelta(0):
        raise InvalidOption("span", str(passed), "no less than 0: time passes in one direction")
    return passed // MILLISECOND


def _moment_ms(when: Moment) -> int:
    if isinstance(when, datetime):
        if when.tzinfo is None:
            raise InvalidOption("time", str(when), "a time with a zone, such as UTC")
        return milliseconds(when)
    return from_iso(when) if isinstance(when, str) else when
