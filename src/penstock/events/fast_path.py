"""The fast path: from the stream into the log, and acknowledged after the commit that has it.

Reading, making ready, writing and acknowledging go on at once, each batch behind the one before it,
so that the order of the stream is the order of the log. What is read again after a crash is written
once, since an event is known by its id and time.
"""

import asyncio
import os
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import structlog
from msgspec import Struct

from penstock.events.event import InvalidEvent
from penstock.events.letters import Letter, bury, letter_of_row
from penstock.events.log import ErasedMeanwhile
from penstock.events.prepare import Row
from penstock.events.preparing import Prepared, Preparing, prepare
from penstock.events.stages import Stages
from penstock.events.stream import EVENTS, GROUP, Entry, Stream, entries_of
from penstock.model.ids import new_id
from penstock.model.redact import redact
from penstock.model.store_errors import (
    AccessDenied,
    StoreClosed,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from penstock.service import Seldom
from penstock.store.redis.errors import translate

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

log = structlog.get_logger("penstock.events")

T = TypeVar("T")

BATCH = 100
BATCH_SECONDS = 0.1
BLOCK_MS = 1_000
GATHER_SECONDS = 0.005
"""Between two looks at a stream that holds less than a batch."""
AHEAD = 5
"""So many batches are read at once, and wait between two stages."""
TRIES = 3
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 10.0
TURN_SECONDS = 0.0005
"""Who writes asks for the interpreter several times a batch: nobody must keep it for long."""
LEASE_MS = 10_000
UPKEEP_SECONDS = 2.0

UNKNOWN = -1
"""How many erasures there were before an entry was read that somebody else had before."""

AWAY = (StoreUnavailable, StoreFull, StoreClosed, StoreReadOnly, AccessDenied, StoreCorrupt)
"""What says nothing about an event: the store is away, and the batch waits for it."""


class NameLost(Exception):
    """Another process reads under this name now."""


class Batch(Struct):
    """Entries on their way through the stages: rows to write, and letters of what cannot be.

    When they were read, there had been so many `erasures`, as far as was known.
    """

    entries: list[Entry]
    erasures: int
    rows: list[tuple[Entry, Row]] = []
    letters: list[Letter] = []


class FastPath:
    """One consumer of the group: `fast-path-1`, or the first number that nobody alive has."""

    def __init__(
        self,
        app: "Penstock",
        stream: Stream,
        name: str | None = None,
        stages: Stages | None = None,
    ) -> None:
        self.app = app
        self.stream = stream
        self.name = ""
        self.stages = stages or Stages()
        self.events = 0
        self.errors = 0
        self.failing_since: int | None = None
        self._wanted = name
        self._owner = f"{socket.gethostname()}:{os.getpid()}:{new_id()}"
        self._key = stream.key(EVENTS)
        # A read that waits would hold up everything else on the same connection.
        self._reader = Stream(stream.server.url, allow_volatile=True)
        self._after: str | None = "0-0"
        """The entry of ours to go on after; None once all that we were given before is read."""
        self._held: set[str] = set()
        self._erasures = UNKNOWN
        """How many there were when last a batch was written."""
        self._left: list[Entry] = []
        """What others left, to be written next."""
        self._progress_at = 0
        self._acknowledged_at: float | None = None
        self.preparing = Preparing(app.events.preparer)
        self._may_warn = Seldom()

    async def run(self) -> None:
        """Run all stages until cancelled; NameLost if another process has taken the name."""
        read: asyncio.Queue[Batch] = asyncio.Queue(AHEAD)
        ready: asyncio.Queue[asyncio.Task[Batch]] = asyncio.Queue(AHEAD)
        written: asyncio.Queue[Batch] = asyncio.Queue(AHEAD)
        stages = [
            self._reading(read),
            self._preparing(read, ready),
            self._writing(ready, written),
            self._acknowledging(written),
            self._upkeep(),
        ]
        tasks = [asyncio.create_task(stage) for stage in stages]
        usual = sys.getswitchinterval()
        sys.setswitchinterval(min(usual, TURN_SECONDS))
        try:
            await asyncio.gather(*tasks)
        finally:
            sys.setswitchinterval(usual)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def run_once(self, *, block_ms: int | None = None) -> int:
        """Take one batch through all stages; how many entries it had."""
        if not self.name:
            await self.take_name()
        erasures = self._erasures
        entries = await self.read(block_ms)
        if entries:
            batch = self.prepare(entries, erasures)
            await self.write(batch)
            await self.acknowledge(batch)
        return len(entries)

    async def close(self) -> None:
        """Give the name back, and let go."""
        _owners.discard(self._owner)
        if self.name:
            with suppress(StoreError):
                key = self.stream.key(f"{EVENTS}:{self.name}")
                await self.stream.call("release", [key], self._owner)
        await self.preparing.close()
        await self._reader.close()

    async def take_name(self) -> None:
        """Take the name that was asked for, or the first that is free or whose owner is dead."""
        _owners.add(self._owner)
        with suppress(StoreError):  # else what is read first is looked at again
            self._erasures = await self.app.read(lambda tx: tx.events.queries.value("erasures"))
        number = 1
        while True:
            name = self._wanted or f"fast-path-{number}"
            holder = await self._hold(name)
            if holder != self._owner and _is_dead(holder):
                holder = await self._hold(name, instead_of=holder)
            if holder == self._owner:
                self.name = name
                return
            if self._wanted:
                await asyncio.sleep(UPKEEP_SECONDS)
            number += 1

    async def _hold(self, name: str, instead_of: str = "") -> str:
        key = self.stream.key(f"{EVENTS}:{name}")
        holder: bytes = await self.stream.call("hold", [key], self._owner, LEASE_MS, instead_of)
        return holder.decode()

    async def read(self, block_ms: int | None = None) -> list[Entry]:
        """Entries that were ours before a crash, then new ones; none if there are none now."""
        while self._after is not None:
            found = await self._read_after(self._after, None, BATCH)
            if not found:
                self._after = None
                break
            self._after = found[-1].id
            entries = [entry for entry in found if entry.id not in self._held]
            if entries:
                return self._hold_on(entries)
        return self._hold_on(await self._read_after(">", block_ms, AHEAD * BATCH))

    def _hold_on(self, entries: list[Entry]) -> list[Entry]:
        self._held.update(entry.id for entry in entries)
        return entries

    async def _read_after(
        self, after: str, block_ms: int | None, count: int = BATCH
    ) -> list[Entry]:
        blocking = () if block_ms is None else ("BLOCK", block_ms)
        group = ("GROUP", GROUP, self.name, "COUNT", count, *blocking)
        command = ("XREADGROUP", *group, "STREAMS", self._key, after)
        began = time.perf_counter()
        await self._reader.open()
        answer = await self._reader.server.reply(command)
        if isinstance(answer, Exception):
            if not str(answer).startswith("NOGROUP"):
                raise translate(self.stream.server.url, answer) from answer
            await self._make_group()
            return []
        entries = entries_of(answer[0][1]) if answer else []
        if len(entries) >= BATCH:
            self.stages.add("read", began, len(entries) // BATCH)
        return entries

    async def _make_group(self) -> None:
        """Have the group, which a server that came back empty has not."""
        answer = await self._reader.server.reply(
            ("XGROUP", "CREATE", self._key, GROUP, "0", "MKSTREAM")
        )
        if isinstance(answer, Exception) and not str(answer).startswith("BUSYGROUP"):
            raise translate(self.stream.server.url, answer) from answer

    def prepare(self, entries: Sequence[Entry], erasures: int = UNKNOWN) -> Batch:
        """Parse entries, take them through the gate and compress them, here and now."""
        now = self.app.store.clock.now()
        return self._filled(entries, erasures, prepare(self.app.events.preparer, entries, now))

    async def _prepared(self, batch: Batch, *, many: bool) -> Batch:
        """The same for a batch, wherever there is a core for it."""
        now = self.app.store.clock.now()
        prepared = await self.preparing.prepare(batch.entries, now, many=many)
        return self._filled(batch.entries, batch.erasures, prepared)

    def _filled(self, entries: Sequence[Entry], erasures: int, prepared: Prepared) -> Batch:
        for work in prepared.work:
            self.stages.add_work(work)
        rows = [(entries[place], row) for place, row in prepared.rows]
        return Batch(list(entries), erasures, rows, prepared.letters)

    async def write(self, batch: Batch) -> None:
        """Write a batch, however long the store is away; what it does not take becomes a letter."""
        pause = FIRST_PAUSE
        while True:
            try:
                await self._commit(batch)
            except Exception as error:
                if isinstance(error, AWAY) or not batch.rows:
                    await self._hold_back(error, pause)
                    pause = min(2 * pause, LONGEST_PAUSE)
                    continue
                self.errors += 1
                log.info("batch_failed", error=redact(repr(error)))
                await self._one_by_one(batch)
            else:
                self.failing_since = None
                self.events += len(batch.entries)
                self._progress_at = self.app.store.clock.now()
                return

    async def _commit(self, batch: Batch) -> None:
        began = time.perf_counter()
        try:
            if batch.letters:
                await bury(self.app, batch.letters, erasures=batch.erasures)
                reason = batch.letters[0].reason
                log.warning("entries_dead", count=len(batch.letters), reason=reason)
            if batch.rows:
                rows = [row for _, row in batch.rows]
                await self.app.events.write(rows, erasures=batch.erasures)
                self.stages.add("write", began)
        except ErasedMeanwhile as erased:
            await self._look_again(batch, erased.happened)
            await self._commit(batch)

    async def _look_again(self, batch: Batch, erasures: int) -> None:
        """Leave out of a batch what was erased from the stream since it was read."""
        asked = [("XRANGE", self._key, entry.id, entry.id) for entry in batch.entries]
        answers = await self._told(partial(self.stream.ask_all, asked), "ingest_cannot_look")
        there = [entry for entry, found in zip(batch.entries, answers, strict=True) if found]
        anew = self.prepare(there, erasures)
        batch.rows, batch.letters, batch.erasures = anew.rows, anew.letters, erasures
        self._erasures = max(self._erasures, erasures)

    async def _one_by_one(self, batch: Batch) -> None:
        """Find what cannot be written: the others are, and it is buried after some tries."""
        rows, batch.rows = batch.rows, []
        for entry, row in rows:
            try:
                failed = await self._tried(row, batch.erasures)
            except ErasedMeanwhile as erased:
                await self._look_again(batch, erased.happened)
                return
            if failed is not None:
                error, tries = failed
                now = self.app.store.clock.now()
                letter = letter_of_row(entry.id, entry.milliseconds, row, error, tries, now)
                batch.letters.append(letter)

    async def _tried(self, row: Row, erasures: int) -> tuple[Exception, int] | None:
        """Write one event; why it cannot be, and how often that was tried."""
        tries, pause = 0, FIRST_PAUSE
        while True:
            try:
                await self.app.events.write([row], erasures=erasures)
            except ErasedMeanwhile:
                raise
            except AWAY as error:
                await self._hold_back(error, pause)
            except InvalidEvent as error:
                return error, tries + 1
            except Exception as error:
                tries += 1
                self.errors += 1
                if tries == TRIES:
                    return error, tries
                await asyncio.sleep(pause)
            else:
                return None
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _hold_back(self, error: Exception, pause: float) -> None:
        self.errors += 1
        self.failing_since = self.failing_since or self.app.store.clock.now()
        self._warn("ingest_waits", error)
        await asyncio.sleep(pause)

    async def acknowledge(self, *batches: Batch) -> None:
        """Acknowledge and delete what is in the log, in one step, however long Redis is away."""
        ids = [entry.id for batch in batches for entry in batch.entries]
        began = time.perf_counter()
        call = partial(self.stream.call, "acknowledge", [self._key], GROUP, *ids)
        await self._told(call, "not_acknowledged")
        self._held.difference_update(ids)
        self.stages.add("acknowledge", began, len(batches))
        if self._acknowledged_at is not None and len(ids) >= BATCH:
            self.stages.add("whole", self._acknowledged_at, len(batches))
        self._acknowledged_at = time.perf_counter()

    async def _told(self, ask: Callable[[], Awaitable[T]], event: str) -> T:
        """What Redis answers, however long it is away."""
        pause = FIRST_PAUSE
        while True:
            try:
                return await ask()
            except StoreError as error:
                self._warn(event, error)
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)

    async def take_over(self) -> list[Entry]:
        """Take entries that a consumer was given and left: nobody holds its name any more."""
        key = self._key
        consumers = await self.stream.ask("XINFO", "CONSUMERS", key, GROUP)
        for each in consumers:
            told = dict(zip(each[::2], each[1::2], strict=True))
            name = told[b"name"].decode()
            lease = self.stream.key(f"{EVENTS}:{name}")
            if name == self.name or not int(told[b"pending"]):
                continue
            if int(await self.stream.ask("EXISTS", lease)):
                continue
            idle = ("IDLE", LEASE_MS, "-", "+", BATCH, name)
            pending = await self.stream.ask("XPENDING", key, GROUP, *idle)
            ids = [entry[0] for entry in pending]
            if not ids:
                continue
            claim = ("XCLAIM", key, GROUP, self.name, LEASE_MS, *ids)
            entries = self._hold_on(entries_of(await self.stream.ask(*claim)))
            log.warning("entries_taken_over", consumer=name, count=len(entries))
            return entries
        return []

    async def tell(self) -> None:
        """Have the store know how this process fares."""
        stages = msgspec.json.encode(self.stages.percentiles()).decode()
        figures = (self._progress_at, self.events, self.errors, self.failing_since, stages)

        def work(tx: Any) -> None:
            tx.events.queries.run("tell_ingest", (self.name, self._owner, tx.now, *figures))

        await self.app.transact(work)

    async def _reading(self, read: "asyncio.Queue[Batch]") -> None:
        pause = FIRST_PAUSE
        while True:
            try:
                entries, self._left = self._left, []
                erasures = UNKNOWN if entries else self._erasures
                entries = entries or await self.read(BLOCK_MS)
                if entries and self._after is None:
                    await self._fill(entries)
                pause = FIRST_PAUSE
            except StoreError as error:
                # What the server gave in an answer that was lost is ours, and is asked for again.
                self._after = "0-0"
                self._warn("ingest_cannot_read", error)
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
            else:
                for first in range(0, len(entries), BATCH):
                    await read.put(Batch(entries[first : first + BATCH], erasures))

    async def _fill(self, entries: list[Entry]) -> None:
        """Wait a moment for what makes a batch whole."""
        until = time.monotonic() + BATCH_SECONDS
        with suppress(StoreError):  # what has been read is written; the next read fails, too
            while len(entries) < BATCH and time.monotonic() < until:
                await asyncio.sleep(GATHER_SECONDS)
                more = await self._read_after(">", None, BATCH - len(entries))
                entries += self._hold_on(more)

    async def _preparing(
        self, read: "asyncio.Queue[Batch]", ready: "asyncio.Queue[asyncio.Task[Batch]]"
    ) -> None:
        async with asyncio.TaskGroup() as preparing:
            while True:
                batch = await read.get()
                making = self._prepared(batch, many=not read.empty())
                await ready.put(preparing.create_task(making))

    async def _writing(
        self, ready: "asyncio.Queue[asyncio.Task[Batch]]", written: "asyncio.Queue[Batch]"
    ) -> None:
        while True:
            batch = await (await ready.get())
            await self.write(batch)
            await written.put(batch)

    async def _acknowledging(self, written: "asyncio.Queue[Batch]") -> None:
        while True:
            batches = [await written.get()]
            while not written.empty():
                batches.append(written.get_nowait())
            await self.acknowledge(*batches)

    async def _upkeep(self) -> None:
        while True:
            await asyncio.sleep(UPKEEP_SECONDS)
            try:
                if await self._hold(self.name) != self._owner:
                    raise NameLost
                if not self._left:
                    self._left = await self.take_over()
                await self.preparing.rest()
                async with asyncio.timeout(UPKEEP_SECONDS):
                    await self.tell()
            except (StoreError, TimeoutError) as error:
                self._warn("ingest_upkeep_failed", error)

    def _warn(self, event: str, error: Exception) -> None:
        if self._may_warn():
            log.warning(event, consumer=self.name, error=redact(str(error)))


_owners: set[str] = set()
"""Those of this process."""


def _is_dead(owner: str) -> bool:
    """Whether a process of this machine, of which a name was last heard, has ended."""
    host, pid, _ = owner.rsplit(":", 2)
    if host != socket.gethostname():
        return False
    if int(pid) == os.getpid():
        return owner not in _owners  # one before us had the same number
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
