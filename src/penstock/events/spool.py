"""The spool: a local file that takes events while what they are meant for cannot.

An event is in a frame of its own, checked when it is read, and on disk before its caller goes on.
While anything is spooled, all that comes is spooled behind it, so that the order stays.
"""

import asyncio
import errno
import fcntl
import os
import struct
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import IO, Generic, TypeVar
from zlib import crc32

import msgspec
import structlog

from penstock.events.event import InvalidEvent, NewEvent
from penstock.model.errors import InvalidOption
from penstock.model.redact import redact, without_password
from penstock.model.store_errors import StoreFull, StoreReadOnly, StoreUnavailable
from penstock.service import Seldom
from penstock.store.open import sqlite_path

log = structlog.get_logger("penstock.events")

AWAY = (StoreUnavailable, StoreFull, StoreReadOnly)
"""What a target raises that cannot take anything now."""

MAGIC = b"\xf5PS\xff"
"""Begins a frame; no UTF-8 holds it, so that a reader finds the next frame after a torn one."""
HEADER = struct.Struct("<4sII")

PATIENCE_SECONDS, PATIENCE_PER_EVENT = 0.05, 0.001
"""So long a caller waits for the target before the event is spooled."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
CHUNK = 100
BLOCK = 1 << 16


def usual_place(stores: Iterable[str], stream: str) -> Path:
    """Where the spool is unless one was named: the same whatever folder a program runs in.

    It is beside the file of a SQLite store; else in the user's state folder, and named after the
    stream's server, so that it does not matter as whom a program asks for that.
    """
    for url in stores:
        file = sqlite_path(url) if url.startswith("sqlite://") else None
        if file is not None:
            return file.with_name(f"{file.name}.spool")
    scheme, _, rest = without_password(stream).partition("://")
    server = f"{scheme}://{rest.rpartition('@')[2]}"
    home = Path(os.environ.get("XDG_STATE_HOME", ""))
    if not home.is_absolute():
        try:
            home = Path.home() / ".local" / "state"
        except RuntimeError:
            expected = "the name of a file, as this user has no home"
            raise InvalidOption("events.spool", None, expected) from None
    return home / "penstock" / f"events-{sha256(server.encode()).hexdigest()[:16]}.spool"


class Spool:
    """The file, and a second one with what is being flushed; any number of processes share it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.flushing = path.with_name(path.name + ".flushing")
        self._lock = path.with_name(path.name + ".lock")
        self._anew = path.with_name(path.name + ".anew")

    @property
    def holds_any(self) -> bool:
        """Whether events wait here."""
        return self.path.exists() or self.flushing.exists()

    def append(self, events: Iterable[NewEvent]) -> None:
        """Write events; they are on disk when this returns."""
        data = b"".join(map(_frame, events))
        file, new = self._opened()
        try:
            before = os.fstat(file).st_size
            try:
                _write(file, data)
            except OSError:
                os.ftruncate(file, before)
                raise
            # Others may write while this waits for the disk.
            fcntl.flock(file, fcntl.LOCK_UN)
            os.fsync(file)
            if new:
                _sync_folder(self.path.parent)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise StoreFull(str(self.path)) from error
            raise StoreUnavailable(str(self.path), str(error.strerror)) from error
        finally:
            os.close(file)

    def _opened(self) -> tuple[int, bool]:
        """The file, locked, and whether it is new; not one that was taken to be flushed."""
        while True:
            new = not self.path.exists()
            try:
                if new:
                    _make_folder(self.path.parent)
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
                file = os.open(self.path, flags, 0o600)
            except OSError as error:
                raise StoreUnavailable(str(self.path), str(error.strerror)) from error
            fcntl.flock(file, fcntl.LOCK_EX)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file), self.path.stat()):
                    return file, new
            os.close(file)

    def events(self) -> Iterator[list[NewEvent]]:
        """What is being flushed, in its order, some at a time."""
        with self.flushing.open("rb") as file:
            chunk: list[NewEvent] = []
            for event in _events(file, self.flushing):
                chunk.append(event)
                if len(chunk) == CHUNK:
                    yield chunk
                    chunk = []
            if chunk:
                yield chunk

    def take(self) -> bool:
        """Set aside what was spooled, to flush it; whether there is anything."""
        if self.flushing.exists():
            return True
        try:
            file = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            self.path.rename(self.flushing)
        finally:
            os.close(file)
        return True

    def forget(self) -> None:
        """Remove what has been flushed."""
        self.flushing.unlink()

    @contextmanager
    def alone(self, *, wait: bool = False) -> Generator[bool, None, None]:
        """Hold the right to flush; whether no other process has it."""
        try:
            file = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            yield False
            return
        try:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except OSError:
                yield False
            else:
                yield True
        finally:
            os.close(file)

    def erase(self, matches: Callable[[NewEvent], bool]) -> int:
        """Drop and overwrite the events that match; how many they were.

        It waits for whoever flushes, who has then handed on what was here: erase there afterwards.
        """
        if not (self.holds_any or self._anew.exists()):
            return 0
        with self.alone(wait=True) as alone:
            if not alone:
                raise StoreUnavailable(str(self.path), "its lock could not be taken")
            with suppress(FileNotFoundError), self._anew.open("r+b") as left_by_a_crash:
                _overwrite(left_by_a_crash)
                self._anew.unlink()
            return sum([self._erase_from(path, matches) for path in (self.flushing, self.path)])

    def _erase_from(self, path: Path, matches: Callable[[NewEvent], bool]) -> int:
        """Have a file without some events take the place of one, and overwrite that one."""
        with suppress(FileNotFoundError), path.open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            gone = stays = 0
            for event, frame in _frames(file, path):
                if event is not None and matches(event):
                    gone += 1
                else:
                    stays += len(frame)
            if stays == file.seek(0, os.SEEK_END):
                return 0
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
            with os.fdopen(os.open(self._anew, flags, 0o600), "wb") as anew:
                for event, frame in _frames(file, path):
                    if event is None or not matches(event):
                        anew.write(frame)
                anew.flush()
                os.fsync(anew.fileno())
            # Until here a crash costs nothing, and from here on nothing that was to stay.
            self._anew.rename(path)
            _sync_folder(path.parent)
            _overwrite(file)
            return gone
        return 0


def _frame(event: NewEvent) -> bytes:
    return _framed(_encoder.encode(event))


def _framed(body: bytes) -> bytes:
    return HEADER.pack(MAGIC, len(body), crc32(body)) + body


def _events(file: IO[bytes], path: Path) -> Iterator[NewEvent]:
    """The events of a file; what is torn was never acknowledged, and is told."""
    for event, _ in _frames(file, path):
        if event is not None:
            yield event


def _frames(file: IO[bytes], path: Path) -> Iterator[tuple[NewEvent | None, bytes]]:
    """The whole frames of a file, each with its event; None for one that holds none."""
    at = torn = 0
    size = file.seek(0, os.SEEK_END)
    while at < size:
        body = _body(file, at)
        if body is None:
            end = _next_frame(file, at + 1, size)
            torn += end - at
        else:
            end = at + HEADER.size + len(body)
            yield _decoded(body, path), _framed(body)
        at = end
    if torn:
        log.warning("spool_torn", path=str(path), bytes=torn)


def _body(file: IO[bytes], at: int) -> bytes | None:
    """What is in the frame at a place; None if no whole frame begins there."""
    file.seek(at)
    header = file.read(HEADER.size)
    if len(header) < HEADER.size:
        return None
    magic, length, check = HEADER.unpack(header)
    body = file.read(length) if magic == MAGIC else b""
    return body if magic == MAGIC and len(body) == length and crc32(body) == check else None


def _decoded(body: bytes, path: Path) -> NewEvent | None:
    """The event of a whole frame; whoever wrote one that holds none knew of other events."""
    try:
        return _decoder.decode(body)
    except (ValueError, RecursionError, msgspec.MsgspecError) as error:
        told = redact(str(error))
        log.error("spool_unreadable", path=str(path), bytes=len(body), error=told)
        return None


def _next_frame(file: IO[bytes], at: int, size: int) -> int:
    """Where the next frame begins, or the file ends."""
    file.seek(at)
    window = b""
    while more := file.read(BLOCK):
        window = window[-len(MAGIC) + 1 :] + more
        place = window.find(MAGIC)
        if place >= 0:
            return file.tell() - len(window) + place
    return size


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(NewEvent)


def _write(file: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(file, left) :]


def _overwrite(file: IO[bytes]) -> None:
    """Leave nothing of what a file held."""
    left = file.seek(0, os.SEEK_END)
    file.seek(0)
    while left:
        left -= file.write(b"\0" * min(left, BLOCK))
    file.flush()
    os.fsync(file.fileno())
    file.truncate(0)


def _make_folder(folder: Path) -> None:
    """Have a folder, and on disk, for its owner alone if it is new."""
    if not folder.exists():
        _make_folder(folder.parent)
        folder.mkdir(0o700, exist_ok=True)
        _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    """Have the name of a new file on disk, too."""
    file = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


T = TypeVar("T")
Deliver = Callable[[Sequence[NewEvent]], Awaitable[list[T]]]
Refuse = Callable[[NewEvent, InvalidEvent], Awaitable[None]]


class Intake(Generic[T]):
    """Takes events for a target that may be away: it has them, or the spool has.

    `deliver` hands events on. `refuse` keeps one that was spooled and that the target refuses.
    """

    def __init__(self, spool: Spool, deliver: Deliver[T], refuse: Refuse) -> None:
        self.spool = spool
        self._deliver = deliver
        self._refuse = refuse
        self._flusher: asyncio.Task[None] | None = None
        self._may_warn = Seldom()

    async def accept(self, events: Sequence[NewEvent]) -> list[T] | None:
        """Hand events on, or spool them; None if they were spooled."""
        if not self.spool.holds_any:
            try:
                async with asyncio.timeout(PATIENCE_SECONDS + PATIENCE_PER_EVENT * len(events)):
                    return await self._deliver(events)
            except (*AWAY, TimeoutError) as error:
                self._warn(error)
        await asyncio.to_thread(self.spool.append, events)
        self._start()
        return None

    async def flush(self) -> bool:
        """Hand on what is spooled, in its order; whether nothing is left.

        An event that was handed on before a crash is handed on again, and is there once.
        """
        with self.spool.alone() as alone:
            if not alone:
                return not self.spool.holds_any
            while self.spool.take():
                count = 0
                for events in self.spool.events():
                    await self._hand_on(events)
                    count += len(events)
                self.spool.forget()
                log.info("spool_flushed", path=str(self.spool.path), events=count)
        return not self.spool.holds_any

    async def close(self) -> None:
        """Stop flushing; what is left is flushed by whoever comes next."""
        flusher, self._flusher = self._flusher, None
        if flusher is not None:
            flusher.cancel()
            await asyncio.gather(flusher, return_exceptions=True)

    async def _hand_on(self, events: Sequence[NewEvent]) -> None:
        try:
            await self._deliver(events)
        except InvalidEvent:
            for event in events:
                try:
                    await self._deliver([event])
                except InvalidEvent as error:
                    await self._refuse(event, error)

    def _start(self) -> None:
        if self._flusher is None or self._flusher.done():
            self._flusher = asyncio.create_task(self._flush_soon(), name="penstock-spool")

    async def _flush_soon(self) -> None:
        pause = FIRST_PAUSE
        while True:
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
            try:
                if await self.flush():
                    return
            except Exception as error:
                self._warn(error)

    def _warn(self, error: Exception) -> None:
        if self._may_warn():
            log.warning("events_spooled", path=str(self.spool.path), error=redact(str(error)))
