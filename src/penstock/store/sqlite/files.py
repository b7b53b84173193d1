"""The files of a store: made for their owner alone, recognised again, and missed when lost."""

import os
import stat
import sys
import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path

from penstock.model.store_errors import ForkedStore, StoreUnavailable

_open: Counter[str] = Counter()
_inherited: set[str] = set()


def opened(path: str | os.PathLike[str]) -> None:
    """Remember that a store in this process has the file open."""
    _open[os.path.realpath(path)] += 1


def closed(path: str | os.PathLike[str]) -> None:
    """Remember that a store in this process let the file go."""
    _open[os.path.realpath(path)] -= 1


def is_inherited(path: str | os.PathLike[str]) -> bool:
    """Tell whether the file was open when this process was forked."""
    return bool(_inherited) and os.path.realpath(path) in _inherited


def refuse_inherited(path: str | os.PathLike[str]) -> None:
    """Refuse any use of a file that was open when this process was forked."""
    if is_inherited(path):
        raise ForkedStore(os.fspath(path))


def _after_fork() -> None:
    _inherited.update(path for path, count in _open.items() if count > 0)
    _open.clear()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_after_fork)


BESIDE = ("", "-wal", "-shm")

Identity = tuple[int, int]


def make_private(path: str | os.PathLike[str]) -> None:
    """Make an empty file that only its owner may read, unless there is one already.

    SQLite gives the files that it makes beside a database the same rights as the database has.
    """
    real = os.path.realpath(path)
    if os.path.exists(real):
        return
    descriptor, made = tempfile.mkstemp(prefix=f".{Path(real).name}.", dir=Path(real).parent)
    # Closed before it has its name: closing any descriptor of a database drops the locks of all.
    os.close(descriptor)
    try:
        put_in_place(made, real)
    except FileExistsError:
        return
    finally:
        Path(made).unlink(missing_ok=True)


def put_in_place(made: str | os.PathLike[str], name: str | os.PathLike[str]) -> None:
    """Give a finished file its name; raises FileExistsError rather than take another's place."""
    try:
        os.link(made, name)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if os.path.exists(name):
            raise FileExistsError(os.fspath(name)) from None
        os.rename(made, name)
    else:
        os.unlink(made)


def keep_rights(old: str | os.PathLike[str], new: str | os.PathLike[str]) -> None:
    """Give a file that takes another's place the rights that somebody chose for that one."""
    found = os.stat(old)
    with suppress(PermissionError):
        os.chown(new, found.st_uid, found.st_gid)
    os.chmod(new, stat.S_IMODE(found.st_mode))


def identity(file: str | int | os.PathLike[str]) -> Identity | None:
    """Tell one file from another, whatever it is called; None if there is none."""
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_dev, found.st_ino


class OpenFile:
    """A file that a store has open, by its name and by what it is."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._identity = identity(path)

    def check(self) -> None:
        """Refuse one that was deleted or moved: nobody could ever read what is written there."""
        if self._identity is not None and identity(self._path) != self._identity:
            raise lost(self._path)


def lost(path: str) -> StoreUnavailable:
    """Return what to say of a file that went away while it was open."""
    return StoreUnavailable(
        path,
        "its file was moved or deleted while it was open; put it back in its place, or stop all "
        "that have it open, put a copy there with `penstock restore` and start again",
    )


def refuse_lost(store: str, real: str) -> None:
    """Refuse to begin anew beside the log of a file that is gone: SQLite would delete it."""
    wal = real + "-wal"
    if _size(real) == 0 and _size(wal) > 0:
        raise StoreUnavailable(
            store,
            f"its file is gone, but {wal} is there, which holds the newest commits of it; put the "
            "file back beside it, or stop all that had it open and put a copy in its place with "
            f"`penstock restore`; to begin with nothing, move {wal} away",
        )


def rights(path: Path) -> tuple[bool, str]:
    """Tell whether a stranger may read or write the files of a store, with a word on it."""
    shared = {
        file: mode
        for file in (Path(f"{path}{suffix}") for suffix in BESIDE)
        if (mode := _mode(file)) & 0o077
    }
    if not shared:
        return True, "only their owner may read the files"
    mend = f"chmod 600 {' '.join(str(file) for file in shared)}"
    worst = max(mode & 0o777 for mode in shared.values())
    if any(mode & 0o007 for mode in shared.values()):
        return False, f"everybody on this machine may use the files ({worst:04o}): {mend}"
    return True, f"their group may use the files ({worst:04o}); if that is not meant: {mend}"


def _mode(file: Path) -> int:
    try:
        return stat.S_IMODE(file.stat().st_mode)
    except OSError:
        return 0


def _size(file: str) -> int:
    try:
        return os.stat(file).st_size
    except OSError:
        return 0
