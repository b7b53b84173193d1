"""Import transcripts, and follow those of sessions that hooks tell of.

Lines are made safe in several processes and written by one, in their order. How far a file was read
is written in the commit of its events, so that whatever ends an import, the next one goes on there.
"""

import asyncio
import os
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from msgspec import Struct

from penstock.apps.recorder.capture import Clean, cleaner
from penstock.apps.recorder.captured import (
    conversation_id,
    digest,
    message_rows,
    redaction_rows,
)
from penstock.apps.recorder.transcripts import (
    PLATFORM,
    Chunk,
    UntrustedFile,
    captured,
    chunks,
    open_below,
)
from penstock.apps.recorder.writing import event_of, validation
from penstock.events.prepare import Preparer, Row
from penstock.extension import Shown
from penstock.model.errors import InvalidOption, QueueFull
from penstock.model.wording import counted

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

ENDING = ".jsonl"
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


class Ready(NamedTuple):
    """An event that is made safe and ready to be written."""

    row: Row
    conversation: str
    messages: list[dict[str, Any]]
    redactions: list[tuple[Any, ...]]


class Source(NamedTuple):
    """A transcript: the folder below which it is, its path, and how large it is."""

    root: str
    path: str
    size: int

    @property
    def id(self) -> str:
        """What it is remembered by; where it is tells of its user."""
        return digest(TRANSCRIPTS, os.path.abspath(self.path))

    @property
    def session(self) -> str:
        """The session that its name tells."""
        return os.path.basename(self.path).removesuffix(ENDING)


TRANSCRIPTS = "transcripts"


def find(path: str) -> list[Source]:
    """The transcripts in a file or a folder, in the order of their paths."""
    path = os.path.abspath(os.path.expanduser(path))
    if os.path.isfile(path):
        return [Source(os.path.dirname(path), path, os.stat(path).st_size)]
    if not os.path.isdir(path):
        raise InvalidOption("path", path, "a transcript (.jsonl) or a folder of such")
    found = []
    for folder, _, names in os.walk(path):
        for name in names:
            if name.endswith(ENDING):
                file = os.path.join(folder, name)
                found.append(Source(path, file, os.lstat(file).st_size))
    # A session's own file comes before those of its subagents.
    return sorted(found, key=lambda source: source.path.removesuffix(ENDING))


def ready(chunk: Chunk, session: str, clean: Clean, preparer: Preparer, now: int) -> list[Ready]:
    """The events of a chunk, checked and compressed."""
    # What our own gate would do was done; another one has its say.
    own = preparer.gate.__module__.startswith("penstock.apps.recorder")
    return [
        Ready(
            preparer.row(event_of(one), now, own=own),
            conversation_id(one.tenant_id, one.platform, one.session_id),
            message_rows(one),
            redaction_rows(one),
        )
        for one in captured(chunk, session, clean)
    ]


_here: dict[str, Any] = {}


def _begin(preparer: Preparer) -> None:
    """Make a process ready."""
    _here["preparer"] = preparer
    _here["clean"] = cleaner()[0]


def _ready(chunk: Chunk, session: str, now: int) -> list[Ready]:
    return ready(chunk, session, _here["clean"], _here["preparer"], now)


class Importer:
    """Imports transcripts into a store; `processes` make lines safe."""

    def __init__(self, app: "Penstock", *, again: bool = False, processes: int = 0) -> None:
        self.done = Imported()
        self._app = app
        self._again = again
        self._processes = processes or os.cpu_count() or 1
        self._pool: ProcessPoolExecutor | None = None

    async def run(self, sources: Sequence[Source], show: Progress | None = None) -> Imported:
        """Import all of them; one that cannot be trusted is left out and told of."""
        total = sum(source.size for source in sources)
        self._app.events.preparer  # noqa: B018  # loaded here, and copied to the others
        try:
            if total > SMALL and self._processes > 1:
                self._pool = ProcessPoolExecutor(
                    self._processes,
                    get_context("spawn"),
                    initializer=_begin,
                    initargs=(self._app.events.preparer,),
                )
            else:
                _begin(self._app.events.preparer)
            before = 0
            for source in sources:
                await self._file(source, _shown(show, before, total))
                before += source.size
        finally:
            if self._pool is not None:
                self._pool.shutdown(cancel_futures=True)
        return self.done

    async def _file(self, source: Source, show: Callable[[int], None]) -> None:
        try:
            file = open_below(source.root, source.path)
        except UntrustedFile as error:
            self.done.left_out.append(str(error))
            return
        try:
            begin, since = await self._position(source, file)
            spoken = await self._spoken(source)
            waiting: deque[tuple[Chunk, Awaitable[list[Ready]]]] = deque()
            for chunk in chunks(file, begin, since):
                waiting.append((chunk, self._submit(chunk, source.session)))
                if len(waiting) > self._processes:
                    await self._write(source, file, *waiting.popleft(), spoken)
                    show(chunk.end)
            while waiting:
                await self._write(source, file, *waiting.popleft(), spoken)
            show(source.size)
            self.done.files += 1
        finally:
            os.close(file)

    def _submit(self, chunk: Chunk, session: str) -> Awaitable[list[Ready]]:
        now = self._app.store.clock.now()
        if self._pool is None:
            return asyncio.to_thread(_ready, chunk, session, now)
        return asyncio.wrap_future(self._pool.submit(_ready, chunk, session, now))

    async def _position(self, source: Source, file: int) -> tuple[int, int]:
        """Where to go on reading, and the time of the last record before."""
        found = os.fstat(file)
        mark = f"{found.st_dev}:{found.st_ino}"
        asked = (source.id,)
        row = await self._app.read(lambda tx: tx.recorder.row("position", asked))
        if row is None or self._again or row[1] != mark or row[0] > found.st_size:
            return 0, round(found.st_mtime * 1000)
        return int(row[0]), int(row[2])

    async def _spoken(self, source: Source) -> Counter[str]:
        """What hooks have written down of a session: it is not written down once more."""
        asked = (conversation_id("", PLATFORM, source.session),)
        rows = await self._app.read(lambda tx: tx.recorder.rows("hashes_by_hooks", asked))
        return Counter(str(hashed) for (hashed,) in rows)

    async def _write(
        self,
        source: Source,
        file: int,
        chunk: Chunk,
        made: Awaitable[list[Ready]],
        spoken: Counter[str],
    ) -> None:
        """Write a chunk and how far that is, in one commit."""
        events = await made
        found = os.fstat(file)
        last = events[-1].row.timestamp if events else chunk.since
        position = (source.id, TRANSCRIPTS, chunk.end, f"{found.st_dev}:{found.st_ino}", last)
        left = spoken.copy()
        try:
            new, messages = await self._app.transact(
                lambda tx: _commit(tx, self._app, events, position, left, validate=True)
            )
        except QueueFull:
            left = spoken.copy()
            new, messages = await self._app.transact(
                lambda tx: _commit(tx, self._app, events, position, left, validate=False)
            )
            self.done.unvalidated += messages
        spoken.clear()
        spoken.update(left)
        self.done.events += new
        self.done.messages += messages
        self.done.bytes += len(chunk.data)


def _commit(
    tx: Any,
    app: "Penstock",
    events: Sequence[Ready],
    position: tuple[Any, ...],
    spoken: Counter[str],
    *,
    validate: bool,
) -> tuple[int, int]:
    """Write events that are new, their messages and jobs; how many events and messages."""
    log, queries = tx.events, tx.recorder
    new: dict[tuple[Any, ...], Ready] = {}
    for event in events:
        if event.row.key not in new and log.queries.row("known", event.row.key) is None:
            new[event.row.key] = event
    if new:
        log.keep_dictionary(PLATFORM)
        log.write([event.row for event in new.values()])
    rows = []
    for event in new.values():
        for row in event.messages:
            if spoken[row["content_hash"]] > 0:
                spoken[row["content_hash"]] -= 1
            else:
                rows.append(row)
    queries.many("add_message", rows)
    queries.many("add_redaction", [row for event in new.values() for row in event.redactions])
    jobs = list(validation(app, rows)) if validate else []
    if jobs:
        tx.enqueue_many(jobs)
    queries.run("keep_position", (*position, tx.now))
    return len(new), len(rows)


def _shown(show: Progress | None, before: int, total: int) -> Callable[[int], None]:
    def tell(position: int) -> None:
        if show is not None:
            show("Importing", min(total, before + position), total)

    return tell


async def import_transcripts(
    app: "Penstock",
    progress: Progress,
    path: Annotated[str, "A transcript of Claude Code, or a folder of them."],
    again: Annotated[bool, "Read from the beginning what was read before."] = False,
    processes: Annotated[int, "How many make lines safe; as many as there are cores."] = 0,
) -> Shown:
    """Import transcripts of Claude Code; what is there already stays as it is."""
    done = await Importer(app, again=again, processes=processes).run(find(path), progress)
    told = (
        f"{counted(done.files, 'file')}: {counted(done.events, 'event')} and "
        f"{counted(done.messages, 'message')} are new."
    )
    parts = [told, *done.left_out]
    if done.unvalidated:
        parts.append(
            f"{counted(done.unvalidated, 'message')} wait without a job, because the queue is full."
        )
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
    done = await Importer(app, processes=1).run(sources)
    return done.events


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
            if os.path.isdir(agents):
                for name in sorted(os.listdir(agents)):
                    if name.endswith(ENDING):
                        path = os.path.join(agents, name)
                        yield Source(root, path, os.lstat(path).st_size)
