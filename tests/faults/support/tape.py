"""Every change to a disk on a tape, from which the disk after a power cut can be made."""

import copy
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

import apsw

from tests.faults.support.disk import Disk

SECTOR = 512


class Change(NamedTuple):
    """One step on the tape."""

    kind: str
    path: str = ""
    offset: int = 0
    data: bytes = b""


class Tape(Disk):
    """Records; `done()` marks that an operation was acknowledged."""

    def __init__(self) -> None:
        self.changes: list[Change] = []

    def write(self, path: str, offset: int, data: bytes) -> None:
        """Record it."""
        self.changes.append(Change("write", path, offset, bytes(data)))

    def truncate(self, path: str, size: int) -> None:
        """Record it."""
        self.changes.append(Change("truncate", path, size))

    def synced(self, path: str) -> None:
        """Record it."""
        self.changes.append(Change("sync", path))

    def delete(self, path: str, durable: bool) -> None:
        """Record it."""
        self.changes.append(Change("delete", path))
        if durable:
            self.changes.append(Change("sync", path))

    def done(self) -> None:
        """Mark that everything so far was acknowledged."""
        self.changes.append(Change("done"))


class ForgetfulTape(Tape):
    """A disk whose sync can fail; what the sync should have kept is then lost, as on Linux."""

    def __init__(self) -> None:
        super().__init__()
        self.failing = False
        self.failures = 0

    def sync(self, path: str) -> None:
        """Fail while `failing`."""
        if self.failing:
            self.failures += 1
            self.changes.append(Change("lost", path))
            error = apsw.IOError("the disk did not take it")
            error.extendedresult = apsw.SQLITE_IOERR_FSYNC  # type: ignore[attr-defined]
            raise error


class Cut:
    """The disk at one moment: what was synced, and what was on its way."""

    def __init__(self) -> None:
        self.after = 0
        self.done = 0
        self._synced: dict[str, bytearray] = {}
        self._pending: dict[str, list[Change]] = {}

    def follow(self, change: Change) -> None:
        """Go on by one step of the tape."""
        self.after += 1
        if change.kind == "done":
            self.done += 1
        elif change.kind == "sync":
            self._sync(change.path)
        elif change.kind == "lost":
            self._pending.pop(change.path, None)
        else:
            self._pending.setdefault(change.path, []).append(change)

    def _sync(self, path: str) -> None:
        pending = self._pending.pop(path, [])
        new = path not in self._synced or any(change.kind == "delete" for change in pending)
        for change in pending:
            _apply(self._synced, change)
        if new and not path.endswith(".db"):
            # SQLite syncs the directory of a new journal or WAL, and with it all deletions there.
            for other, changes in list(self._pending.items()):
                if changes[-1].kind == "delete":
                    _apply(self._synced, self._pending.pop(other)[-1])

    def _files(self, luck: Random | None) -> dict[str, bytearray]:
        """The files after a cut here: unsynced sectors are gone, or survive at random."""
        files = copy.deepcopy(self._synced)
        if luck is not None:
            for pending in self._pending.values():
                for change in pending:
                    for part in _sectors(change):
                        if luck.random() < 0.5:
                            _apply(files, part)
        return files

    def restore(self, folder: Path, luck: Random | None = None) -> None:
        """Make a folder that holds the files of this cut and nothing else."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for path, content in self._files(luck).items():
            (folder / Path(path).name).write_bytes(content)


def cuts(changes: list[Change]) -> Iterator[Cut]:
    """The disk before the first change, and after each."""
    cut = Cut()
    yield cut
    for change in changes:
        cut.follow(change)
        yield cut


def _apply(files: dict[str, bytearray], change: Change) -> None:
    if change.kind == "delete":
        files.pop(change.path, None)
        return
    content = files.setdefault(change.path, bytearray())
    end = change.offset + len(change.data)
    if len(content) < end:
        content.extend(bytes(end - len(content)))
    if change.kind == "write":
        content[change.offset : end] = change.data
    else:
        del content[change.offset :]


def _sectors(change: Change) -> Iterator[Change]:
    if change.kind != "write":
        yield change
        return
    start = 0
    while start < len(change.data):
        end = start + SECTOR - (change.offset + start) % SECTOR
        yield change._replace(offset=change.offset + start, data=change.data[start:end])
        start = end
