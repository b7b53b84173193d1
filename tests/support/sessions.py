"""Sessions of PostgreSQL that tests use in turn.

A new one compiles every function and looks up every table again, which costs several times what a
test asks of it.
"""

import threading
from collections import defaultdict
from collections.abc import Callable, Hashable
from functools import partial

import psycopg
from psycopg import pq
from psycopg.pq.abc import PGconn

from penstock.store.postgres import connect
from penstock.store.postgres.connect import Address, Connection

AT_MOST = 8
# All that DISCARD ALL does, except that plans are kept.
AS_NEW = b"""
SET SESSION AUTHORIZATION DEFAULT; RESET ALL; DEALLOCATE ALL; CLOSE ALL; UNLISTEN *;
SELECT pg_advisory_unlock_all(); DISCARD TEMP; DISCARD SEQUENCES
"""


class Kept(psycopg.Connection):
    """A connection whose session outlives it."""

    give_back: Callable[[PGconn], None]

    def close(self) -> None:
        """End the connection alone."""
        if not self.closed:
            session, self.pgconn = self.pgconn, _ended()
            self._closed = True
            self.give_back(session)


class Sessions:
    """Keeps the sessions of some databases when a test closes them, for the next to use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: dict[str, dict[Hashable, list[PGconn]]] = {}
        self._connect: Callable[[Address, float], Connection] = getattr(connect, "_connected")  # noqa: B009
        setattr(connect, "_connected", self._connected)  # noqa: B010

    def keep(self, database: str) -> None:
        """From now on, the sessions of this database are kept."""
        self._idle[database] = defaultdict(list)

    def pids(self, database: str) -> list[int]:
        """The server processes of those that wait for a test."""
        with self._lock:
            return [each.backend_pid for idle in self._idle[database].values() for each in idle]

    def forget(self, database: str) -> None:
        """End those of a database, and keep them no longer."""
        with self._lock:
            for idle in self._idle.pop(database).values():
                for each in idle:
                    each.finish()

    def close(self) -> None:
        """Forget them all."""
        setattr(connect, "_connected", self._connect)  # noqa: B010
        for database in list(self._idle):
            self.forget(database)

    def _connected(self, address: Address, patience: float) -> Connection:
        if address.options["dbname"] not in self._idle:
            return self._connect(address, patience)
        with self._lock:
            idle = self._waiting(address)
            session = idle.pop() if idle else None
        if session is None:
            opened = self._connect(address, patience)
            session, opened.pgconn = opened.pgconn, _ended()
        kept = Kept(session)
        kept.autocommit, kept.prepare_threshold = True, None
        kept.give_back = partial(self._take_back, address)
        return kept

    def _take_back(self, address: Address, session: PGconn) -> None:
        if _is_as_new(session):
            with self._lock:
                idle = self._waiting(address)
                if idle is not None and len(idle) < AT_MOST:
                    idle.append(session)
                    return
        session.finish()

    def _waiting(self, address: Address) -> list[PGconn] | None:
        """Those that were opened with the same options."""
        of = self._idle.get(str(address.options["dbname"]))
        return None if of is None else of[frozenset(address.options.items())]


def _is_as_new(session: PGconn) -> bool:
    """Whether it is in no transaction, and could be told to forget what a test had set."""
    if session.transaction_status != pq.TransactionStatus.IDLE:
        return False
    session.exec_(AS_NEW)
    while session.notifies():
        pass
    return session.status == pq.ConnStatus.OK


def _ended() -> PGconn:
    """A session that nobody can use."""
    session = pq.PGconn.connect_start(b"host=/nowhere")
    session.finish()
    return session
