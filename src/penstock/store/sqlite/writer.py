"""The one writer of a process: it commits what arrives together in one transaction.

Operations that share a transaction each run in a savepoint of their own, so one that fails takes
nothing else with it, and none is acknowledged before the commit that holds it is on disk.
"""

import time
from collections.abc import Callable
from contextlib import suppress

import apsw

from penstock.model.clock import Clock
from penstock.model.errors import StoreUnavailable
from penstock.store.relational.group_commit import Entry, GroupCommit
from penstock.store.sqlite.errors import translated
from penstock.store.sqlite.files import OpenFile
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
        *,
        reconnect: Callable[[], apsw.Connection] | None = None,
    ) -> None:
        self._path = path
        self._connection = connection
        self._reconnect = reconnect
        self._broken = False
        self._clock = clock
        self._file = OpenFile(path)
        self._free_until = 0.0
        super().__init__(path, on_change)

    def commit(self, batch: list[Entry[SqliteTransaction]]) -> bool:
        """Run the operations in one transaction; whether something changed."""
        try:
            with translated(self._path):
                self._file.check()
                if self._broken:
                    self._connect_anew()
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
            self._undo()
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

    def _undo(self) -> None:
        """Roll back; a connection that cannot even do that is of no use any more."""
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except apsw.Error:
            self._broken = True
            # Closing it undoes the transaction, too, and gives the lock back.
            with suppress(apsw.Error):
                self._connection.close(True)

    def _connect_anew(self) -> None:
        if self._reconnect is None:
            advice = "it could not undo a transaction; start this process again"
            raise StoreUnavailable(self._path, advice)
        self._connection = self._reconnect()
        self._broken = False

    def _attempt(self, entry: Entry[SqliteTransaction], transaction: SqliteTransaction) -> None:
        try:
            with translated(self._path), SqliteSavepoint(self._connection):
                entry.result = entry.operation(transaction)
        except BaseException as error:
            entry.error = error
            if not self._connection.in_transaction:
                raise
