"""Import transcripts, and follow those of sessions that hooks tell of.

Lines are made safe in several processes and written by one, in their order.
"""

import asyncio
import os
from collections import Counter, deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import aclosing
from multiprocessing import get_context
from typing import TYPE_CHECKING, Annotated, NamedTuple

from msgspec import Struct

from penstock.apps.recorder import cursor_store
from penstock.apps.recorder.bulk import Kept, Position, Ready, keep, position_of, ready
from penstock.apps.recorder.capture import cleaner
from penstock.apps.recorder.captured import conversation_id, digest
from penstock.apps.recorder.transcripts import (
    CHUNK,
    PLATFORM,
    Chunk,
    UntrustedFile,
    captured,
    chunks,
    open_below,
)
from penstock.extension import Shown
from penstock.model.errors import InvalidOption
from penstock.model.wording import counted
from penstock.worker.child_process import end_with

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.apps.recorder.capture import Clean
    from penstock.apps.recorder.extension import RecorderSettings
    from penstock.events.prepare import Preparer

ENDING = ".jsonl"
KIND = "transcript"
AHEAD = 2
"""So many chunks for each process are made, or wait to be, while one is written."""
MOST_AHEAD = 64
"""Of small files, no more than so many."""
SMALL = 8 << 20
"""Less than so many bytes are not worth other processes."""
FOLLOWED_MS = 3_600_000
Progress = Callable[[str, int, int], None]


class Imported(Struct, kw_only=True):
    """What an import has done."""

    files: int = 0
    events: int = 0
    messages: int = 0
    bytes: int = 0
    unvalidated: int = 0
    left_out: list[str] = []

    def add(self, kept: Kept, size: int = 0) -> None:
        """Count what was written."""
        self.events += kept.events
        self.messages += kept.messages
        self.unvalidated += kept.unvalidated
        self.bytes += size


class Source(NamedTuple):
    """A transcript: the folder below which it is, its path, and how large it is."""

    root: str
    path: str
    size: int

    @property
    def id(self) -> str:
        """What it is remembered by: a hash, because its path tells of its user."""
        return digest(KIND, os.path.abspath(self.path))

    @property
    def session(self) -> str:
        """The session that its name tells."""
        return os.path.basename(self.path).removesuffix(ENDING)


def find(path: str) -> list[Source]:
    """The transcripts in a file or a folder, in the order of their paths."""
    path = os.path.abspath(os.path.expanduser(path))
    if os.path.isfile(path):
        return [Source(os.path.dirname(path), path, os.stat(path).st_size)]
    if not os.path.isdir(path):
        raise InvalidOption("path", path, "a transcript (.jsonl), a folder of such, or state.vscdb")
    found = []
    for folder, _, names in os.walk(path):
        for name in names:
            if name.endswith(ENDING):
                file = os.path.join(folder, name)
                found.append(Source(path, file, os.lstat(file).st_size))
    # A session's own file comes before those of its subagents.
    return sorted(found, key=lambda source: source.path.removesuffix(ENDING))


class Maker:
    """Makes lines safe and events of them ready, with the settings of an application."""

    def __init__(self, preparer: "Preparer", settings: "RecorderSettings") -> None:
        self._preparer = preparer
        self._settings = settings
        self._cleaners: dict[str, Clean] = {}

    def make(self, chunk: Chunk, session: str, now: int) -> list[Ready]:
        """The events of a chunk of a session's file."""
        clean = self._cleaners.get(session)
        if clean is None:
            told = self._settings
            clean, _ = cleaner(session, told.rules, pseudonyms=told.pseudonyms)
            self._cleaners = {session: clean}  # one file comes after the other
        return ready(captured(chunk, session, clean), self._preparer, now)


_makers: list[Maker] = []
"""That of this process, if it is one of several."""


def _begin(maker: Maker, parent_pid: int) -> None:
    end_with(parent_pid)
    _makers[:] = [maker]


def _make(chunk: Chunk, session: str, now: int) -> list[Ready]:
    """Make events in another process."""
    return _makers[0].make(chunk, session, now)


def _be_there() -> None:
    """Has a process begun, which takes a second: meanwhile this one makes lines safe."""


class Importer:
    """Imports transcripts into a store; `processes` make lines safe."""

    def __init__(self, app: "Penstock", *, again: bool = False, processes: int = 0) -> None:
        self.done = Imported()
        self._app = app
        self._again = again
        self._processes = processes or os.cpu_count() or 1
        self._maker = Maker(app.events.preparer, app.extensions.settings("recorder"))
        self._pool: ProcessPoolExecutor | None = None
        self._begun: list[Future[None]] = []

    async def run(self, sources: Sequence[Source], show: Progress | None = None) -> Imported:
        """Import all of them; one that cannot be trusted is left out and told of."""
        total = sum(source.size for source in sources)
        if total > SMALL and self._processes > 1:
            context = get_context("spawn")
            told = (self._maker, os.getpid())
            self._pool = ProcessPoolExecutor(self._processes, context, _begin, told)
            self._begun = [self._pool.submit(_be_there) for _ in range(self._processes)]
        try:
            await self._all(sources, _shown(show, total))
        finally:
            if self._pool is not None:
                self._pool.shutdown(cancel_futures=True)
        return self.done

    async def _all(self, sources: Sequence[Source], show: Callable[[int], None]) -> None:
        """Write what was made safe, in order, while more is: of the next files, too."""
        waiting: deque[_Part] = deque()
        before = ahead = 0
        for source in sources:
            async with aclosing(self._parts(source, before)) as parts:
                async for part in parts:
                    waiting.append(part)
                    ahead += len(part.chunk.data)
                    while ahead > AHEAD * self._processes * CHUNK or len(waiting) > MOST_AHEAD:
                        ahead -= len(waiting[0].chunk.data)
                        await self._write(waiting.popleft(), show)
            before += source.size
        while waiting:
            await self._write(waiting.popleft(), show)
        show(before)

    async def _parts(self, source: Source, before: int) -> AsyncGenerator["_Part", None]:
        """Read a file, and have every part of it made safe."""
        try:
            file = open_below(source.root, source.path)
        except UntrustedFile as error:
            self.done.left_out.append(str(error))
            return
        try:
            begin = await self._position(source, file)
            reading = _Reading(before, begin, await self._spoken(source))
            for chunk in chunks(file, begin.position, begin.at):
                yield _Part(reading, chunk, self._submit(chunk, source.session))
        finally:
            os.close(file)
        self.done.files += 1

    def _submit(self, chunk: Chunk, session: str) -> Awaitable[list[Ready]]:
        now = self._app.store.clock.now()
        if self._pool is None or not any(each.done() for each in self._begun):
            return asyncio.ensure_future(asyncio.to_thread(self._maker.make, chunk, session, now))
        return asyncio.wrap_future(self._pool.submit(_make, chunk, session, now))

    async def _position(self, source: Source, file: int) -> Position:
        """Where to go on reading."""
        found = os.fstat(file)
        mark = f"{found.st_dev}:{found.st_ino}"
        known = await position_of(self._app, source.id)
        if known and not self._again and known.mark == mark and known.position <= found.st_size:
            return known
        return Position(source.id, KIND, 0, mark, round(found.st_mtime * 1000))

    async def _spoken(self, source: Source) -> Counter[str]:
        """What others have written down of a session: it is not written down once more."""
        asked = (conversation_id("", PLATFORM, source.session),)
        rows = await self._app.read(lambda tx: tx.recorder.rows("hashes_by_hooks", asked))
        return Counter(str(hashed) for (hashed,) in rows)

    async def _write(self, part: "_Part", show: Callable[[int], None]) -> None:
        """Write a part of a file and how far that is, in one commit."""
        events, reading, chunk = await part.made, part.reading, part.chunk
        last = events[-1].row.timestamp if events else chunk.since
        reading.position = reading.position._replace(position=chunk.end, at=last)
        kept = await keep(self._app, events, reading.position, reading.spoken)
        self.done.add(kept, len(chunk.data))
        show(reading.before + chunk.end)


class _Reading(Struct):
    """A file that is read: what comes before it, how far it was written, and what others wrote."""

    before: int
    position: Position
    spoken: Counter[str]


class _Part(NamedTuple):
    """A part of a file, and what is made of it elsewhere."""

    reading: _Reading
    chunk: Chunk
    made: Awaitable[list[Ready]]


def _shown(show: Progress | None, total: int) -> Callable[[int], None]:
    def tell(read: int) -> None:
        if show is not None:
            show("Importing", min(total, read), total)

    return tell


async def import_transcripts(
    app: "Penstock",
    progress: Progress,
    path: Annotated[str, "A transcript of Claude Code, a folder of them, or Cursor's state.vscdb."],
    again: Annotated[bool, "Read from the beginning what was read before."] = False,
    processes: Annotated[int, "How many make lines safe; as many as there are cores."] = 0,
) -> Shown:
    """Import transcripts of Claude Code, or Cursor's store; what is there stays as it is."""
    if path.endswith(cursor_store.FILE):
        done = Imported(files=1)
        done.add(await cursor_store.import_store(app, path, again=again))
    else:
        done = await Importer(app, again=again, processes=processes).run(find(path), progress)
    events, messages = counted(done.events, "event"), counted(done.messages, "message")
    parts = [f"{counted(done.files, 'file')}: {events} and {messages} are new.", *done.left_out]
    if done.unvalidated:
        waiting = counted(done.unvalidated, "message")
        parts.append(f"{waiting} of these wait to be validated, because the queue is full.")
    return Shown(tuple(parts), done)


async def follow(app: "Penstock") -> int:
    """Read on in transcripts of sessions whose hooks told of a complete turn; the leader's pass."""
    roots = _folders(app.extensions.settings("recorder").transcripts)
    if not roots:
        return 0
    since = app.store.clock.now() - FOLLOWED_MS
    rows = await app.read(lambda tx: tx.recorder.rows("sessions_to_follow", (PLATFORM, since)))
    sources = [each for (session,) in rows for root in roots for each in _of_session(root, session)]
    if not sources:
        return 0
    return (await Importer(app, processes=1).run(sources)).events


def _folders(named: Sequence[str]) -> list[str]:
    return [path for path in map(os.path.expanduser, named) if os.path.isdir(path)]


def _of_session(root: str, session: str) -> Iterator[Source]:
    """The files of a session, wherever its project's folder is."""
    if not session or os.sep in session or session.startswith("."):
        return
    for folder in sorted(os.scandir(root), key=lambda each: each.name):
        path = os.path.join(folder.path, f"{session}{ENDING}")
        if folder.is_dir(follow_symlinks=False) and os.path.isfile(path):
            yield Source(root, path, os.lstat(path).st_size)
            agents = os.path.join(folder.path, session, "subagents")
            for name in sorted(os.listdir(agents)) if os.path.isdir(agents) else ():
                if name.endswith(ENDING):
                    path = os.path.join(agents, name)
                    yield Source(root, path, os.lstat(path).st_size)
