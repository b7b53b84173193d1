"""The store refuses a file on which it could not keep its promises, and says what to do."""

import json
import os
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from penstock import Penstock
from penstock.model.store_errors import (
    ForeignConnection,
    ForeignHandle,
    NetworkFilesystem,
    NotAPenstockStore,
    SqliteTooOld,
    StoreClosed,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreIsDirectory,
    StoreReadOnly,
    StoreUnavailable,
)
from penstock.store.sqlite import refusals
from penstock.store.sqlite.errors import translated
from penstock.store.sqlite.refusals import (
    check_path,
    filesystem,
    foreign_handles,
    is_network,
    refuse_foreign_connection,
)

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

MOUNTS = """\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
40 27 0:40 / /home rw,relatime - autofs systemd-1 rw
41 40 0:41 / /home rw,relatime - nfs4 server:/home rw
42 27 0:42 / /mnt/my\\040share rw - fuse.sshfs host:/ rw
43 41 8:1 / /home/local rw - xfs /dev/sda1 rw
"""

TWO_WRITERS = """
import apsw, json, sqlite3, sys
ours = apsw.Connection(sys.argv[1])
ours.execute("INSERT INTO rows VALUES ('first')")
theirs = sqlite3.connect(sys.argv[1], isolation_level=None)
theirs.execute("SELECT * FROM rows").fetchall()
ours.execute("BEGIN IMMEDIATE; INSERT INTO rows VALUES ('apsw')")
theirs.execute("BEGIN IMMEDIATE")
theirs.execute("INSERT INTO rows VALUES ('stdlib')")
theirs.execute("COMMIT")
ours.execute("COMMIT")
print(json.dumps([row for row, in ours.execute("SELECT * FROM rows")]))
"""

CLOSING = """
import apsw, json, os, sqlite3, subprocess, sys
path, other = sys.argv[1:]
def ask_another_process():
    return subprocess.check_output([sys.executable, "-c", other, path], text=True).strip()
ours = apsw.Connection(path)
ours.execute("BEGIN IMMEDIATE; INSERT INTO rows VALUES ('apsw')")
before = ask_another_process()
theirs = sqlite3.connect(path)
theirs.execute("SELECT * FROM rows").fetchall()
theirs.close()
after = ask_another_process()
ours.execute("COMMIT")
print(json.dumps({"before": before, "after": after}), flush=True)
os._exit(0)
"""

TAKE_WRITE_LOCK = """
import apsw, sys
try:
    apsw.Connection(sys.argv[1]).execute("BEGIN IMMEDIATE")
    print("got the write lock")
except apsw.BusyError:
    print("locked")
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "work.db"


@pytest.fixture
def database(path: Path) -> Path:
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE rows (row)")
    return path


@pytest.fixture
def ours(database: Path) -> Iterator[apsw.Connection]:
    with closing(apsw.Connection(str(database))) as connection:
        connection.execute("SELECT * FROM rows").fetchall()
        yield connection


@pytest.fixture
def theirs(database: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(database)) as connection:
        yield connection


def run(script: str, *arguments: object) -> str:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def rows(path: Path) -> list[str]:
    script = (
        "import apsw, json, sys\n"
        "print(json.dumps([row for row, in "
        "apsw.Connection(sys.argv[1]).execute('SELECT * FROM rows')]))"
    )
    found: list[str] = json.loads(run(script, path))
    return found


class TestWhyTwoLibrariesOnOneFileAreRefused:
    """POSIX locks belong to the process, so two SQLite libraries in it do not see each other's."""

    def test_both_write_at_once_and_an_acknowledged_commit_is_lost(self, database):
        assert json.loads(run(TWO_WRITERS, database)) == ["first", "apsw"]

    def test_closing_one_drops_the_locks_of_the_other_and_deletes_its_wal(self, database):
        seen = json.loads(run(CLOSING, database, TAKE_WRITE_LOCK))
        assert seen == {"before": "locked", "after": "got the write lock"}
        assert rows(database) == []

    @linux_only
    def test_so_a_file_that_the_standard_library_has_open_is_refused(self, database, theirs):
        with pytest.raises(ForeignHandle, match=r"sqlite3 is loaded.*app\.connection\(\)"):
            check_path(database)

    @linux_only
    def test_and_one_that_it_opens_later_is_found_too(self, database, ours, theirs):
        assert not foreign_handles(database)
        theirs.execute("SELECT * FROM rows").fetchall()
        assert foreign_handles(database)

    def test_and_so_is_its_connection(self, database, theirs):
        with pytest.raises(ForeignConnection, match=r"standard library's sqlite3.*app\.connection"):
            refuse_foreign_connection(theirs, database)


class TestCheckPath:
    def test_a_new_file_in_an_existing_directory_is_fine(self, path):
        check_path(path)
        assert not path.exists()

    def test_an_existing_store_is_accepted_and_left_unchanged_open_or_not(self, database):
        content = database.read_bytes()
        check_path(database)
        assert database.read_bytes() == content
        with closing(apsw.Connection(str(database))) as connection:
            connection.execute("INSERT INTO rows VALUES ('kept')")
            check_path(database)
            assert connection.execute("SELECT row FROM rows").get == "kept"
        assert rows(database) == ["kept"]

    async def test_an_empty_file_becomes_a_new_store(self, path):
        path.touch()
        check_path(path)
        assert path.stat().st_size == 0
        async with Penstock(f"sqlite:///{path}") as app:
            assert await app.store.jobs.depth("default", 10) == 0
        assert path.read_bytes().startswith(b"SQLite format 3")

    def test_a_directory_is_refused(self, tmp_path):
        with pytest.raises(StoreIsDirectory, match="name a file in it"):
            check_path(tmp_path)

    def test_a_missing_directory_is_named_with_the_command_that_makes_it(self, tmp_path):
        with pytest.raises(StoreUnavailable, match=f"mkdir -p {tmp_path}/missing"):
            check_path(tmp_path / "missing" / "work.db")

    def test_a_parent_that_is_a_file_is_refused(self, database):
        with pytest.raises(StoreUnavailable, match="is not a directory"):
            check_path(database / "work.db")

    @pytest.mark.parametrize("name", ["a\0b.db", "x" * 300])
    def test_a_name_that_no_file_can_have_is_refused(self, tmp_path, name):
        with pytest.raises(StoreUnavailable):
            check_path(f"{tmp_path}/{name}")

    @pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
    def test_a_file_without_write_permission_is_refused_even_for_root(self, database, suffix):
        file = database.with_name(database.name + suffix)
        file.touch()
        file.chmod(0o444)
        with pytest.raises(StoreReadOnly, match="writable"):
            check_path(database)

    def test_a_directory_without_write_permission_is_refused_even_for_root(self, database):
        database.parent.chmod(0o555)
        try:
            with pytest.raises(StoreReadOnly):
                check_path(database)
        finally:
            database.parent.chmod(0o755)

    def test_what_the_system_calls_read_only_is_refused(self, database, monkeypatch):
        monkeypatch.setattr(refusals.os, "access", lambda *_, **__: False)
        with pytest.raises(StoreReadOnly):
            check_path(database)

    def test_a_text_file_is_not_a_store(self, path):
        path.write_text("Dear diary, " * 100)
        with pytest.raises(NotAPenstockStore, match="not a SQLite database"):
            check_path(path)

    def test_a_very_short_file_is_not_a_store(self, path):
        path.write_text("hi")
        with pytest.raises(NotAPenstockStore):
            check_path(path)

    def test_a_socket_is_not_a_store(self, path):
        with closing(socket.socket(socket.AF_UNIX)) as listener:
            listener.bind(str(path))
            with pytest.raises(NotAPenstockStore, match="socket"):
                check_path(path)

    def test_a_database_cut_off_in_its_header_is_damaged(self, database):
        os.truncate(database, 100)
        with pytest.raises(StoreCorrupt, match="cut off after 100 bytes"):
            check_path(database)

    def test_a_file_of_zeros_is_damaged(self, path):
        path.write_bytes(bytes(4096))
        with pytest.raises(StoreCorrupt, match="zeros"):
            check_path(path)

    def test_a_hot_journal_is_left_to_sqlite_to_roll_back(self, path):
        path.write_bytes(bytes(4096))
        journal = path.with_name("work.db-journal")
        journal.write_bytes(b"hot")
        check_path(path)
        assert (path.read_bytes(), journal.read_bytes()) == (bytes(4096), b"hot")
        journal.write_bytes(b"")  # a journal without content is not hot
        with pytest.raises(StoreCorrupt, match="zeros"):
            check_path(path)

    def test_an_old_sqlite_is_refused(self, path, monkeypatch):
        monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.51.2")
        with pytest.raises(SqliteTooOld, match=r"3\.51\.3 or newer.*3\.51\.2"):
            check_path(path)

    def test_a_network_file_system_is_refused(self, path, tmp_path, monkeypatch):
        mounts = tmp_path / "mountinfo"
        mounts.write_text(f"{MOUNTS}50 27 0:50 / {tmp_path} rw - nfs4 server:/ rw\n")
        monkeypatch.setattr(refusals, "_MOUNTS", str(mounts))
        with pytest.raises(NetworkFilesystem, match="nfs4"):
            check_path(path)

    def test_a_link_is_followed_to_its_file(self, tmp_path, database):
        link = tmp_path / "link.db"
        link.symlink_to(database)
        check_path(link)
        link.unlink()
        link.symlink_to(tmp_path / "missing" / "work.db")
        with pytest.raises(StoreUnavailable):
            check_path(link)

    def test_checking_a_file_does_not_drop_the_locks_of_its_connections(self, path):
        with closing(apsw.Connection(str(path))) as connection:
            connection.execute("CREATE TABLE rows (row)")
            connection.execute("BEGIN IMMEDIATE")
            check_path(path)
            assert run(TAKE_WRITE_LOCK, path) == "locked"
            connection.execute("ROLLBACK")


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/srv/work.db", "ext4"),
        ("/home/me/work.db", "nfs4"),
        ("/home/local/work.db", "xfs"),
        ("/homely/work.db", "ext4"),
        ("/mnt/my share/work.db", "fuse.sshfs"),
    ],
)
def test_the_innermost_and_latest_mount_holds_a_file(path, kind):
    assert filesystem(path, MOUNTS) == kind


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "fuse.sshfs"])
def test_network_file_systems_are_known(kind):
    assert is_network(kind)


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "tmpfs", "overlay", "fuse.ntfs-3g", ""])
def test_local_file_systems_are_not_taken_for_network_ones(kind):
    assert not is_network(kind)


@linux_only
class TestForeignHandles:
    def test_a_file_nobody_has_open_has_none(self, database):
        assert not foreign_handles(database)

    def test_a_missing_file_has_none(self, path):
        assert not foreign_handles(path)

    def test_our_own_connections_are_not_foreign_however_many_open_and_close(self, database, ours):
        for _ in range(10):
            with closing(apsw.Connection(str(database))) as another:
                another.execute("SELECT * FROM rows").fetchall()
                assert not foreign_handles(database)
        assert not foreign_handles(database)

    def test_a_connection_that_has_the_file_attached_is_not_foreign(self, database):
        with closing(apsw.Connection(":memory:")) as connection:
            connection.execute("ATTACH ? AS other", (str(database),))
            connection.execute("SELECT * FROM other.rows").fetchall()
            assert not foreign_handles(database)

    def test_a_connection_busy_in_another_thread_is_not_foreign(self, database, ours):
        inside, done = threading.Event(), threading.Event()

        def pause() -> None:
            inside.set()
            done.wait()

        ours.create_scalar_function("pause", pause)
        thread = threading.Thread(target=lambda: ours.execute("SELECT pause()").fetchall())
        thread.start()
        inside.wait()
        try:
            assert not foreign_handles(database)
        finally:
            done.set()
            thread.join()

    def test_a_plain_open_file_is_foreign_because_closing_it_drops_our_locks(self, database):
        with database.open("rb"):
            assert foreign_handles(database)
        assert not foreign_handles(database)

    def test_a_closed_foreign_connection_no_longer_counts(self, database, theirs):
        theirs.execute("SELECT * FROM rows").fetchall()
        assert foreign_handles(database)
        theirs.close()
        assert not foreign_handles(database)
        check_path(database)


class TestRefuseForeignConnection:
    def test_our_own_connection_is_returned(self, database, ours):
        assert refuse_foreign_connection(ours, database) is ours

    def test_a_connection_to_another_file_is_refused_by_name(self, database, tmp_path):
        with (
            closing(apsw.Connection(str(tmp_path / "other.db"))) as other,
            pytest.raises(ForeignConnection, match=r"other\.db"),
        ):
            refuse_foreign_connection(other, database)

    def test_a_connection_to_memory_is_refused(self, database):
        with (
            closing(apsw.Connection(":memory:")) as memory,
            pytest.raises(ForeignConnection, match="memory"),
        ):
            refuse_foreign_connection(memory, database)

    def test_a_closed_connection_is_refused(self, database, ours):
        ours.close()
        with pytest.raises(ForeignConnection, match="closed"):
            refuse_foreign_connection(ours, database)

    @pytest.mark.parametrize("name", ["Session", "Connection", "Engine"])
    def test_sqlalchemy_is_refused_by_name(self, database, name):
        thing = type(name, (), {"__module__": "sqlalchemy.orm.session"})()
        with pytest.raises(ForeignConnection, match=rf"SQLAlchemy \(a {name}\)"):
            refuse_foreign_connection(thing, database)

    @pytest.mark.parametrize("thing", [None, "sqlite:///work.db", 7, object()])
    def test_anything_else_is_refused(self, database, thing):
        with pytest.raises(ForeignConnection, match=type(thing).__name__):
            refuse_foreign_connection(thing, database)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (apsw.SQLITE_BUSY, StoreUnavailable),
        (apsw.SQLITE_BUSY_SNAPSHOT, StoreUnavailable),
        (apsw.SQLITE_LOCKED, StoreUnavailable),
        (apsw.SQLITE_FULL, StoreFull),
        (apsw.SQLITE_IOERR_SHMSIZE, StoreFull),
        (apsw.SQLITE_IOERR_FSYNC, StoreUnavailable),
        (apsw.SQLITE_IOERR_CORRUPTFS, StoreCorrupt),
        (apsw.SQLITE_CORRUPT, StoreCorrupt),
        (apsw.SQLITE_NOTADB, NotAPenstockStore),
        (apsw.SQLITE_READONLY, StoreReadOnly),
        (apsw.SQLITE_READONLY_DBMOVED, StoreUnavailable),
        (apsw.SQLITE_CANTOPEN, StoreUnavailable),
        (apsw.SQLITE_CANTOPEN_ISDIR, StoreIsDirectory),
        (apsw.SQLITE_ERROR, StoreError),
        (apsw.SQLITE_CONSTRAINT_UNIQUE, StoreError),
    ],
)
def test_every_error_of_sqlite_becomes_one_of_penstock(code, expected):
    with pytest.raises(StoreError) as caught, translated("work.db"):
        raise apsw.exception_for(code)
    assert type(caught.value) is expected
    assert isinstance(caught.value.__cause__, apsw.Error)


def test_a_closed_connection_means_a_closed_store(ours):
    ours.close()
    with pytest.raises(StoreClosed), translated("work.db"):
        ours.execute("SELECT 1")


def test_other_errors_pass_untranslated():
    with pytest.raises(KeyError), translated("work.db"):
        raise KeyError("mine")


async def test_a_store_in_memory_says_what_a_test_can_do_instead(app: Penstock) -> None:
    @app.job
    async def pack() -> None: ...

    async with app:
        with pytest.raises(ForeignConnection, match="drain a database"):
            await pack.options(connection=object()).enqueue()
