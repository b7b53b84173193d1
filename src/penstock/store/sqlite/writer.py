"""The one writer of a process: it commits what arrives together in one transaction.

Operations that share a transaction each run in a savepoint of their own, so one that fails takes
nothing else with it, and none is acknowledged before the commit that holds it is on disk.
"""

import os
import time
from collections.abc import Callable

import apsw

from penstock.model.clock import Clock
from penstock.model.errors import StoreUnavailable
from penstock.store.relational.group_commit import Entry, GroupCommit
from penstock.store.sqlite.errors import translated
from penstock.store.sqlite.transaction import SqliteSavepoint, SqliteTransaction

LONG_SECONDS = 0.002
GAP = 0.1


class Writer(GroupCommit[SqliteTransaction]):
    """Group commit on one file.

    SQLite keeps no line in front of its lock: a worker that always has something to write would
    keep other processes out. So after a long transaction it leaves them a gap, a tenth as long.
    """

    def __init__(
        self,
        path: str,
        connection: apsw.Connection,
        clock: Clock,
        on_change: Callable[[], None],
    ) -> None:
        self._path = path
        self._connection = connection
        self._clock = clock
        self._identity = _identity(path)
        self._free_until = 0.0
        super().__init__(path, on_change)

    def commit(self, batch: list[Entry[SqliteTransaction]]) -> bool:
        """Run the operations in one transaction; whether something changed."""
        try:
            with translated(self._path):
                self._check_file()
                self._leave_gap()
                self._connection.execute("BEGIN IMMEDIATE")
                began = time.monotonic()
                transaction = SqliteTransaction(
                    self._connection, self._clock.now(), self._clock.monotonic()
                )
                if len(batch) == 1:  # needs no savepoint: its failure undoes the transaction
                    batch[0].result = batch[0].operation(transaction)
                else:
                    for entry in batch:
                        self._attempt(entry, transaction)
                self._connection.execute("COMMIT")
                held = time.monotonic() - began
                self._free_until = began + held * (1 + GAP) if held > LONG_SECONDS else 0.0
                return transaction.changed
        except BaseException as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            for entry in batch:
                entry.error = entry.error or error
            return False

    def let_go(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _leave_gap(self) -> None:
        missing = self._free_until - time.monotonic()
        if missing > 0:
            time.sleep(missing)

    def _check_file(self) -> None:
        """A file that was deleted or moved would take commits that nobody can ever read."""
        if self._identity is not None and _identity(self._path) != self._identity:
            raise StoreUnavailable(self._path, "its file was moved or deleted while it was open")

    def _attempt(self, entry: Entry[SqliteTransaction], transaction: SqliteTransaction) -> None:
        try:
            with translated(self._path), SqliteSavepoint(self._connection):
                entry.result = entry.operation(transaction)
        except BaseException as error:
            entry.error = error
            if not self._connection.in_transaction:
                raise


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
