"""Read-only connections, one per reading thread, so questions never wait for the writer."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import apsw

from penstock.model.clock import Clock
from penstock.store.sqlite.connect import connect
from penstock.store.sqlite.errors import translated
from penstock.store.sqlite.files import OpenFile
from penstock.store.sqlite.forks import refuse_inherited
from penstock.store.sqlite.transaction import SqliteTransaction

T = TypeVar("T")


class Readers:
    """A small pool; each question sees one consistent snapshot."""

    def __init__(self, path: Path, clock: Clock, threads: int = 2) -> None:
        self._path = path
        self._file = OpenFile(str(path))
        self._clock = clock
        self._local = threading.local()
        self._open: list[apsw.Connection] = []
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="penstock-reader")

    async def run(self, question: Callable[[SqliteTransaction], T]) -> T:
        """Ask in a thread of the pool."""
        refuse_inherited(self._path)  # a forked pool has no threads and would never answer
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, self.call, question)

    def call(self, question: Callable[[SqliteTransaction], T]) -> T:
        """Ask in the calling thread."""
        refuse_inherited(self._path)
        self._file.check()
        with translated(str(self._path)):
            connection = self._connection()
            connection.execute("BEGIN")
            try:
                return question(
                    SqliteTransaction(connection, self._clock.now(), self._clock.monotonic())
                )
            finally:
                self._end(connection)

    def close(self) -> None:
        """Let all connections go."""
        self._pool.shutdown(wait=True)
        for connection in self._open:
            connection.close()
        self._open.clear()

    def _end(self, connection: apsw.Connection) -> None:
        """End the transaction, which an I/O error may have done; or else the connection."""
        try:
            if connection.in_transaction:
                connection.execute("COMMIT")
        except apsw.Error:
            self._local.connection = None
            with suppress(apsw.Error):
                connection.close(True)
            raise

    def _connection(self) -> apsw.Connection:
        connection: apsw.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = connect(self._path, read_only=True)
            self._local.connection = connection
            self._open.append(connection)
        return connection
