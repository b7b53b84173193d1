"""Entries of the stream made ready for the log, by another process while there are many.

Parsing, the gate and compression are most of the work of ingest, and Python works on one core at a
time: a child does that part while this process reads, writes and acknowledges. Nothing is lost
with a child: what it was given and has not answered is made ready here.
"""

import asyncio
import os
import pickle
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec
import structlog
from msgspec import Struct

from penstock.events.event import InvalidEvent, NewEvent
from penstock.events.letters import Letter, stub
from penstock.events.prepare import Preparer, Row
from penstock.events.stages import Stopwatch, Work
from penstock.events.stream import Entry, event_of
from penstock.model.redact import add_rule, redact, rules_added
from penstock.worker.child_process import ChildProcess, framed, hear, parent

log = structlog.get_logger("penstock.events")

ENVELOPE = 1 << 16
"""What an entry may take beside its body."""
REST_SECONDS = 30.0
"""A child that had nothing to do for so long is ended: it takes memory."""
ANEW_SECONDS = 10.0
"""So long after a child has ended by itself, another is started at the earliest."""


class Prepared(Struct, array_like=True):
    """What became of entries: rows, each with the place of its entry, and letters of the others."""

    rows: list[tuple[int, Row]] = []
    letters: list[Letter] = []
    work: list[Work] = []


def prepare(preparer: Preparer, entries: Sequence[Entry], now: int) -> Prepared:
    """Parse entries, take them through the gate and compress them."""
    prepared = Prepared()
    watch = Stopwatch()
    events = [
        (place, entry, _parsed(entry, preparer.limit))
        for place, entry in enumerate(entries)
        if entry.fields is not None
    ]
    prepared.work.append(watch.work("parse"))
    watch = Stopwatch()
    rows = iter(preparer.each([event for *_, event in events if isinstance(event, NewEvent)], now))
    for place, entry, event in events:
        row = next(rows) if isinstance(event, NewEvent) else event
        if isinstance(row, Row):
            prepared.rows.append((place, row))
        else:
            fields = entry.fields or ()
            letter = stub(entry.id, entry.milliseconds, fields, row, preparer.gate, now)
            prepared.letters.append(letter)
    prepared.work.append(watch.work("compress"))
    return prepared


def _parsed(entry: Entry, limit: int) -> NewEvent | Exception:
    """The event of an entry, or why it is none."""
    try:
        if entry.size > limit + ENVELOPE:
            size = f"{entry.size:,} bytes, more than the {limit:,} of events.event_limit"
            raise InvalidEvent("", f"takes {size}")
        return event_of(entry)
    except Exception as error:
        return error


class Preparing:
    """Has entries made ready: by a thread, and by a child as soon as there are many."""

    def __init__(self, preparer: Preparer) -> None:
        self._preparer = preparer
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="penstock-ingest")
        self._child: _Child | None = None
        self.starting: asyncio.Task[None] | None = None
        """While a child begins."""
        self._not_before = 0.0
        self._used_at = 0.0

    @property
    def pid(self) -> int | None:
        """The child's number; None while there is none."""
        return None if self._child is None else self._child.pid

    async def prepare(self, entries: Sequence[Entry], now: int, *, many: bool = False) -> Prepared:
        """What becomes of entries; `many` more wait behind them."""
        if many:
            self._have_child()
        child, self._used_at = self._child, time.monotonic()
        if child is not None:
            answer = await child.ask(_encode((entries, now)))
            if answer is not None:
                return _prepared.decode(answer)
            self._give_up(child)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, prepare, self._preparer, entries, now)

    async def rest(self) -> None:
        """End a child that has nothing to do."""
        child = self._child
        if child is not None and time.monotonic() - self._used_at > REST_SECONDS:
            self._child = None
            await child.close()

    async def close(self) -> None:
        """End the child, and the thread."""
        if self.starting is not None:
            self.starting.cancel()
            await asyncio.gather(self.starting, return_exceptions=True)
        if self._child is not None:
            await self._child.close()
        self._thread.shutdown()

    def _have_child(self) -> None:
        """Begin to start a child, unless there is one, or no core for it."""
        if self._child is None and self.starting is None and time.monotonic() > self._not_before:
            self._not_before = time.monotonic() + ANEW_SECONDS
            if _cores() > 1:
                self.starting = asyncio.create_task(self._start())

    async def _start(self) -> None:
        try:
            carried = pickle.dumps((rules_added(), self._preparer))
            self._child = await _Child.start(carried)
        except Exception as error:  # a gate that cannot be carried, no memory, no process left
            log.info("ingest_stays_in_one_process", error=redact(repr(error)))
        finally:
            self.starting = None

    def _give_up(self, child: "_Child") -> None:
        if self._child is child:
            self._child = None
            self._not_before = time.monotonic() + ANEW_SECONDS
            log.warning("ingest_lost_its_child")


class _Child:
    """A process that answers in the order in which it is asked."""

    def __init__(self, process: ChildProcess) -> None:
        self._process = process
        self._asked: deque[asyncio.Future[bytes | None]] = deque()
        self._ended = False
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    async def start(cls, carried: bytes) -> "_Child":
        process = await ChildProcess.start("penstock.events.preparing")
        try:
            process.send(carried)
            if await process.receive() is None:
                raise ChildProcessError("it ended before it was ready")
        except BaseException:
            await process.close()
            raise
        return cls(process)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def ask(self, message: bytes) -> bytes | None:
        """Its answer; None if it has ended."""
        if self._ended:
            return None
        answer: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()
        self._asked.append(answer)
        self._process.send(message)
        return await answer

    async def close(self) -> None:
        """End it; who still waits for an answer gets none."""
        await self._process.close()
        await self._listening

    async def _listen(self) -> None:
        heard: bytes | None = b""
        while heard is not None:
            heard = await self._process.receive()
            self._ended = heard is None
            for _ in range(len(self._asked) if self._ended else 1):
                answer = self._asked.popleft()
                if not answer.done():  # cancelled meanwhile
                    answer.set_result(heard)
        await self._process.close()


def _cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_encode = msgspec.msgpack.Encoder().encode
_prepared = msgspec.msgpack.Decoder(Prepared)
_asked = msgspec.msgpack.Decoder(tuple[list[Entry], int])


def main() -> None:
    """Answer the parent for as long as there is one."""
    connection = parent()
    try:
        rules, preparer = pickle.loads(hear(connection))
        for rule in rules:
            add_rule(rule)
        connection.sendall(framed(b"ready"))
        while True:
            entries, now = _asked.decode(hear(connection))
            connection.sendall(framed(_encode(prepare(preparer, entries, now))))
    except Exception:
        os._exit(1)  # no traceback: the parent fails at the same, and tells of it as it should


if __name__ == "__main__":
    main()
