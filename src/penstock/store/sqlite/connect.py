"""Opening a connection the way every part of this store needs it."""

import time
from pathlib import Path

import apsw

from penstock.store.sqlite.files import make_private
from penstock.store.sqlite.forks import refuse_inherited

BUSY_SECONDS = 30.0
LONGEST_STEP = 0.0003
WAL_PAGES = 2_000
WAL_BYTES = 32 * 1024 * 1024


def connect(path: Path | None, *, read_only: bool = False) -> apsw.Connection:
    """A connection in WAL mode that loses nothing it has committed (`None` is in memory)."""
    if path is None:
        return apsw.Connection(":memory:")
    refuse_inherited(path)
    if not read_only:
        make_private(path)
    flags = apsw.SQLITE_OPEN_READWRITE | (0 if read_only else apsw.SQLITE_OPEN_CREATE)
    connection = apsw.Connection(str(path), flags)
    connection.set_busy_handler(Patience())
    if read_only:
        connection.execute("PRAGMA query_only = ON")
        return connection
    _use_wal(connection)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA wal_autocheckpoint = {WAL_PAGES}")
    connection.execute(f"PRAGMA journal_size_limit = {WAL_BYTES}")
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute("PRAGMA cache_size = -32768")
    return connection


def _use_wal(connection: apsw.Connection) -> None:
    """Switch to WAL; SQLite does not wait by itself while another process switches too."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.005)
        else:
            return


class Patience:
    """Waits for a lock in small steps; SQLite's own steps grow to 100 ms and starve writers."""

    def __init__(self) -> None:
        self.waits = True
        self._started = 0.0

    def __call__(self, tries: int) -> bool:
        """Wait a step; whether to try again."""
        if not self.waits:
            return False
        if tries == 0:
            self._started = time.monotonic()
        time.sleep(min(0.0001 * (tries + 1), LONGEST_STEP))
        return time.monotonic() - self._started < BUSY_SECONDS
