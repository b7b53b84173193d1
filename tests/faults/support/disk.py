"""A disk between SQLite and the real one, on which a test can see and refuse every change."""

from collections.abc import Iterator
from contextlib import contextmanager

import apsw


class Disk:
    """Lets everything through; subclasses watch, refuse by raising, or end the process."""

    def write(self, path: str, offset: int, data: bytes) -> None:
        """Before bytes are written."""

    def truncate(self, path: str, size: int) -> None:
        """Before a file is cut off."""

    def sync(self, path: str) -> None:
        """Before a file is synced."""

    def synced(self, path: str) -> None:
        """After a file was synced."""

    def delete(self, path: str, durable: bool) -> None:
        """Before a file is deleted; `durable` when its directory is synced too."""


class SmallDisk(Disk):
    """Has room for so many bytes, as the file system that SQLite thinks it writes to would."""

    def __init__(self, room: int) -> None:
        self.room = room
        self._sizes: dict[str, int] = {}

    def write(self, path: str, offset: int, data: bytes) -> None:
        """Refuse what does not fit."""
        size = max(self._sizes.get(path, 0), offset + len(data))
        others = sum(taken for name, taken in self._sizes.items() if name != path)
        if size > self._sizes.get(path, 0) and others + size > self.room:
            raise apsw.FullError("no room on this disk")
        self._sizes[path] = size

    def truncate(self, path: str, size: int) -> None:
        """Give room back."""
        self._sizes[path] = min(self._sizes.get(path, 0), size)

    def delete(self, path: str, durable: bool) -> None:
        """Give room back."""
        self._sizes.pop(path, None)


@contextmanager
def mounted(disk: Disk) -> Iterator[None]:
    """Put every database this process opens meanwhile on `disk`; close them before the end."""
    before = apsw.vfs_names()[0]
    vfs = _Vfs(disk, before)
    try:
        yield
    finally:
        apsw.set_default_vfs(before)
        vfs.unregister()


class _Vfs(apsw.VFS):
    def __init__(self, disk: Disk, base: str) -> None:
        self._disk = disk
        self._base = base
        super().__init__("penstock-faults", base, makedefault=True)

    def xOpen(self, name, flags):  # type: ignore[no-untyped-def] # noqa: N802
        return _File(self._disk, self._base, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        self._disk.delete(filename, syncdir)
        super().xDelete(filename, syncdir)

    def excepthook(self, *_: object) -> bool:
        """SQLite passes over failures of a checkpoint; so does this."""
        return True


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, base: str, name: str | apsw.URIFilename, flags: list[int]):
        self._disk = disk
        self._path = name.filename() if isinstance(name, apsw.URIFilename) else name
        super().__init__(base, name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._disk.write(self._path, offset, data)
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        self._disk.truncate(self._path, newsize)
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._disk.sync(self._path)
        super().xSync(flags)
        self._disk.synced(self._path)

    def excepthook(self, *_: object) -> bool:
        """The error reaches the caller through SQLite's result code."""
        return True
