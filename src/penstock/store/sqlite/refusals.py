"""Where the store refuses to work, and checking, one by one, what it promises."""

import os
import re
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import apsw

from penstock.model.store_errors import (
    ForeignConnection,
    ForeignHandle,
    NetworkFilesystem,
    NotAPenstockStore,
    SqliteTooOld,
    StoreCorrupt,
    StoreIsDirectory,
    StoreReadOnly,
    StoreUnavailable,
)
from penstock.store.contract import Durability
from penstock.store.sqlite.connect import WAL_BYTES, SqliteTransaction
from penstock.store.sqlite.errors import NOT_SQLITE, translated
from penstock.store.sqlite.files import Identity, identity, refuse_lost, rights
from penstock.store.sqlite.migrate import latest, version

OLDEST_SQLITE = (3, 51, 3)

_HEADER = b"SQLite format 3\0"
_SMALLEST_PAGE = 512
_MOUNTS = "/proc/self/mountinfo"
_DESCRIPTORS = "/proc/self/fd" if sys.platform == "linux" else "/dev/fd"
_LOOKS = 3
_SECONDS_BETWEEN_LOOKS = 0.005

_NETWORK_FILESYSTEM = re.compile(
    r"9p|afpfs|afs|beegfs|ceph|cifs|coda|davfs|gfs2|glusterfs|gpfs|lustre|ncpfs|nfs4?|ocfs2|"
    r"orangefs|prl_fs|pvfs2|smb[23]|smbfs|vboxsf|webdav|"
    r"fuse\.(blobfuse2?|ceph|ceph-fuse|curlftpfs|davfs2?|gcsfuse|glusterfs|goofys|grpcfuse|juicefs|"
    r"mfs|moosefs|mount-s3|mountpoint-s3|nfs|osxfs|quobyte|rclone|s3fs|seaweedfs|smbnetfs|sshfs)"
)


def check_path(path: str | os.PathLike[str]) -> None:
    """Refuse a file that the store could not keep its promises on; a missing file is fine."""
    store = os.fspath(path)
    try:
        real = os.path.realpath(store)
        refuse_directory(store, real)
        refuse_missing_parent(store, real)
        refuse_read_only(store, real)
        refuse_network_filesystem(store, real)
        refuse_old_sqlite(store)
        refuse_foreign_handle(store, real)
        refuse_lost(store, real)
        # Last, because it opens the file: beside another library even that would do harm.
        refuse_other_content(store, real)
    except (OSError, ValueError) as error:
        raise StoreUnavailable(store, str(error)) from error


def refuse_directory(store: str, real: str) -> None:
    """Refuse a path that names a directory."""
    if os.path.isdir(real):
        raise StoreIsDirectory(store)


def refuse_missing_parent(store: str, real: str) -> None:
    """Refuse a path whose directory does not exist: a typing error should not make directories."""
    parent = os.path.dirname(real)
    if not os.path.exists(parent):
        raise StoreUnavailable(store, f"{parent} does not exist: create it with mkdir -p {parent}")
    if not os.path.isdir(parent):
        raise StoreUnavailable(store, f"{parent} is not a directory")


def refuse_read_only(store: str, real: str) -> None:
    """Refuse a file, or a directory for its WAL, that cannot be written."""
    files = [real, real + "-wal", real + "-shm"]
    if not _writable(os.path.dirname(real), os.W_OK | os.X_OK) or not all(
        _writable(file, os.W_OK) for file in files if os.path.exists(file)
    ):
        raise StoreReadOnly(store)


def refuse_network_filesystem(store: str, real: str) -> None:
    """Refuse file systems whose locks and shared memory do not reach every host."""
    try:
        with open(_MOUNTS, encoding="utf-8", errors="surrogateescape") as file:
            mounts = file.read()
    except FileNotFoundError:
        return
    kind = filesystem(real, mounts)
    if is_network(kind):
        raise NetworkFilesystem(store, kind)


def refuse_old_sqlite(store: str) -> None:
    """Refuse a SQLite library whose WAL can be corrupted by its own checkpoint."""
    found = apsw.sqlite_lib_version()
    if tuple(int(part) for part in found.split(".")) < OLDEST_SQLITE:
        raise SqliteTooOld(store, found, ".".join(map(str, OLDEST_SQLITE)))


def refuse_foreign_handle(store: str, real: str) -> None:
    """Refuse a file that another SQLite library in this process has open."""
    if foreign_handles(real):
        loaded = " (the standard library's sqlite3 is loaded)" if "_sqlite3" in sys.modules else ""
        raise ForeignHandle(store, f"another SQLite library{loaded}")


def refuse_other_content(store: str, real: str) -> None:
    """Refuse an existing file that does not begin like a SQLite database."""
    try:
        status = os.stat(real)
    except FileNotFoundError:
        return
    if not stat.S_ISREG(status.st_mode):
        raise NotAPenstockStore(store, "a device, pipe or socket")
    if status.st_size == 0 or _has_hot_journal(real):
        return
    header = _read_header(store, real)
    if not header.strip(b"\0"):
        raise StoreCorrupt(store, "it begins with zeros instead of a SQLite header")
    if header != _HEADER:
        raise NotAPenstockStore(store, NOT_SQLITE)
    if status.st_size < _SMALLEST_PAGE:
        raise StoreCorrupt(store, f"it is cut off after {status.st_size} bytes")


def refuse_foreign_connection(connection: object, path: str | os.PathLike[str]) -> apsw.Connection:
    """Return the connection if it is apsw's own and on our file; refuse every other."""
    store = os.fspath(path)
    if store == ":memory:":
        advice = "nothing can: in a test, drain a database that was made for it"
        raise ForeignConnection(store, _described(connection), advice)
    if not isinstance(connection, apsw.Connection):
        raise ForeignConnection(store, _described(connection))
    try:
        if _is_async(connection):
            raise ForeignConnection(store, "an asynchronous apsw connection")
        filename = connection.filename
    except apsw.ConnectionClosedError:
        raise ForeignConnection(store, "a closed apsw connection") from None
    except apsw.ThreadingViolationError:
        raise ForeignConnection(store, "an apsw connection busy in another thread") from None
    if not filename or identity(filename) != identity(store):
        raise ForeignConnection(store, f"an apsw connection to {filename or 'memory'}")
    return connection


def foreign_handles(path: str | os.PathLike[str]) -> bool:
    """Tell whether another SQLite library in this process has the file open; False if unsure."""
    for look in range(_LOOKS):
        # apsw opens a file a moment before it lists the connection, in another thread perhaps.
        if look:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        if not _foreign_now(os.path.realpath(path)):
            return False
    return True


def filesystem(path: str, mounts: str) -> str:
    """The kind of file system that holds `path`, from the text of /proc/self/mountinfo."""
    best, kind = "", ""
    for line in mounts.splitlines():
        left, separator, right = line.partition(" - ")
        fields = left.split(" ")
        if not separator or len(fields) < 5:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), fields[4])
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        # Of two mounts on one point the later one is on top.
        if inside and len(point) >= len(best):
            best, kind = point, right.split(" ")[0]
    return kind


def is_network(kind: str) -> bool:
    """Tell whether a kind of file system lives on other hosts."""
    return _NETWORK_FILESYSTEM.fullmatch(kind) is not None


def _writable(path: str, mode: int) -> bool:
    # access() sees read-only mounts and immutable files without opening anything. The mode bits
    # are looked at too, because root may write everything but was told not to.
    effective = os.access in os.supports_effective_ids
    return bool(os.stat(path).st_mode & 0o222) and os.access(path, mode, effective_ids=effective)


def _has_hot_journal(real: str) -> bool:
    # After a crash while the file was being made, only SQLite's own roll-back can judge it.
    journal = _status(real + "-journal")
    return journal is not None and journal.st_size > 0


def _read_header(store: str, real: str) -> bytes:
    # Through SQLite, which knows that closing a descriptor of its own would drop this process's
    # locks on the file; open() and close() here would do just that to a store already open.
    flags = [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY, 0]
    with translated(store):
        file = apsw.VFSFile("", real, flags)
        try:
            return file.xRead(len(_HEADER), 0)
        finally:
            file.xClose()


def _foreign_now(real: str) -> bool:
    database = identity(real)
    if database is None:
        return False
    ours = _apsw_may_have(database)
    descriptors = _count_descriptors(database)
    if not ours and not _apsw_may_have(database):
        return descriptors > 0
    # SQLite keeps descriptors of closed connections for as long as others hold locks, so counting
    # those of the database proves nothing; but a library opens the -shm file once per process.
    shared_memory = identity(real + "-shm")
    return shared_memory is not None and _count_descriptors(shared_memory) > 1


def _apsw_may_have(database: Identity) -> bool:
    for connection in apsw.connections():
        try:
            if _is_async(connection):
                return True
            files = [connection.db_filename(name) for name in connection.db_names()]
        except apsw.ConnectionClosedError:
            continue
        except apsw.ThreadingViolationError:
            return True
        if any(file and identity(file) == database for file in files):
            return True
    return False


def _count_descriptors(wanted: Identity) -> int:
    try:
        descriptors = [int(name) for name in os.listdir(_DESCRIPTORS)]
    except OSError:
        return 0
    return sum(identity(descriptor) == wanted for descriptor in descriptors)


def _status(file: str | int) -> os.stat_result | None:
    try:
        return os.stat(file)
    except OSError:
        return None


def _is_async(connection: apsw.Connection) -> bool:
    return bool(getattr(connection, "is_async", False))


def _described(connection: object) -> str:
    kinds = [kind for kind in type(connection).__mro__ if kind is not object]
    packages = {kind.__module__.partition(".")[0] for kind in kinds}
    name = type(connection).__qualname__
    if packages & {"sqlite3", "_sqlite3"}:
        return f"the standard library's sqlite3 (a {name})"
    if "sqlalchemy" in packages:
        return f"SQLAlchemy (a {name})"
    return f"a {type(connection).__module__}.{name}".replace("builtins.", "")


PROMISE = (
    "SQLite with synchronous=FULL: nothing acknowledged is lost, by a crash of a process, "
    "of the machine, or of its power."
)


def inspect(tx: SqliteTransaction, path: Path | None) -> Durability:
    """Every check with its outcome and a word on it."""
    return Durability(PROMISE, list(_checks(tx, path)))


def _checks(tx: SqliteTransaction, path: Path | None) -> Iterator[tuple[str, bool, str]]:
    yield "sqlite", True, f"SQLite {apsw.sqlite_lib_version()} inside apsw {apsw.apsw_version()}"
    found = version(tx.connection)
    yield "schema", found == latest(), f"version {found}, this penstock knows {latest()}"
    mode = _pragma(tx, "journal_mode")
    yield "journal", path is None or mode == "wal", f"journal_mode is {mode}"
    problem = _pragma(tx, "integrity_check(1)")
    yield "integrity", problem == "ok", f"integrity_check says {problem}"
    yield from _file_checks(path)
    yield from _row_checks(tx)


def _file_checks(path: Path | None) -> Iterator[tuple[str, bool, str]]:
    if path is None:
        yield "file", False, "in memory: everything is lost when the process ends"
        return
    private, told = rights(path)
    yield "private", private, told
    wal = path.with_name(path.name + "-wal")
    size = wal.stat().st_size if wal.exists() else 0
    yield "wal", size < 2 * WAL_BYTES, f"the write-ahead log is {size / 1e6:.1f} MB"
    foreign = foreign_handles(path)
    yield (
        "one library",
        not foreign,
        "another SQLite library has the file open" if foreign else "only apsw has the file open",
    )


def _row_checks(tx: SqliteTransaction) -> Iterator[tuple[str, bool, str]]:
    unowned = tx.value("leases_without_owner")
    yield "leases", unowned == 0, f"{unowned} running jobs without an owner"
    stray = tx.value("keys_without_job")
    yield "keys", stray == 0, f"{stray} unique keys held by no waiting or running job"


def _pragma(tx: SqliteTransaction, name: str) -> str:
    return str(tx.connection.execute(f"PRAGMA {name}").get)
