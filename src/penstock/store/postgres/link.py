"""One connection that comes back: transactions are repeated where that is safe.

A deadlock or a serialisation failure is the server asking for that. A connection that was lost
before the commit was sent has done nothing; once it was sent, nobody can know, and the caller is
told instead.
"""

import os
import random
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from enum import Enum, auto
from functools import partial
from typing import Any, TypeVar, cast

import psycopg

from penstock.model.clock import Clock, ServerClock
from penstock.model.errors import StoreError, StoreUnavailable
from penstock.store.postgres.connect import PATIENCE_SECONDS, Address, Connection, connect, readable
from penstock.store.postgres.errors import is_contended, is_repeatable, translate, translated
from penstock.store.postgres.transaction import PostgresTransaction
from penstock.store.postgres.trip import Alone, Trip

T = TypeVar("T")
MAX_REPEATS = 20
REPEAT_SECONDS = 0.005
TOO_LONG_SECONDS = 45.0
GIVE_WAY_MS = 100


class Kind(Enum):
    """How a transaction begins; one that gives way waits for nobody long, and is not repeated."""

    WRITING = auto()
    READING = auto()
    GIVING_WAY = auto()


class GaveWay(Exception):
    """Others held what a transaction wanted, and it was undone."""


class Link:
    """A connection to one database, used by one thread at a time; others wait for their turn."""

    def __init__(self, address: Address, clock: Clock) -> None:
        self._address = address
        self._clock = clock
        self._in_session = False
        self._connection: Connection | None = None
        self._asked = False
        self._lock = threading.RLock()
        self.busy_since: float | None = None

    def ask(self, question: Callable[[PostgresTransaction], T]) -> T:
        """Ask, seeing one state of the database throughout."""
        return self.perform(question, kind=Kind.READING)[0]

    def perform(
        self, operation: Callable[[PostgresTransaction], T], *, kind: Kind = Kind.WRITING
    ) -> tuple[T, bool]:
        """Run an operation in a transaction; its answer, and whether it changed something.

        A trip that can do without one does.
        """
        with self._lock:
            repeats = 0
            fresh = self._connection is None
            while True:
                try:
                    return self._once(operation, kind)
                except UnicodeEncodeError as error:
                    raise translate(self._address.name, error) from error
                except psycopg.Error as error:
                    lost = self._connection is None
                    if lost and not fresh:
                        fresh = True  # it had gone while it was idle: once more on a new one
                    elif kind is Kind.GIVING_WAY and is_contended(error):
                        raise GaveWay from error
                    elif not is_repeatable(error) or repeats == MAX_REPEATS:
                        raise translate(self._address.name, error) from error
                    else:
                        repeats += 1
                        time.sleep(random.uniform(0, REPEAT_SECONDS * repeats))

    def send(self, statement: bytes) -> bool:
        """Send a statement of no consequence, and wait for no answer; false if it cannot go."""
        with self._lock:
            connection = self._connection
            if connection is None:
                return False
            self.busy_since = time.monotonic()
            try:
                _collect(connection)
                connection.pgconn.send_query(statement)
                connection.pgconn.flush()
            except psycopg.Error:
                return False
            finally:
                self.busy_since = None
            self._asked = True
            return True

    def close(self) -> None:
        """Let the connection go."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def cut_if_silent(self) -> None:
        """Break a connection that has not answered for too long, from another thread."""
        since, connection = self.busy_since, self._connection
        if since is None or connection is None or time.monotonic() - since < TOO_LONG_SECONDS:
            return
        with (
            suppress(OSError, psycopg.Error),
            socket.socket(fileno=os.dup(connection.fileno())) as s,
        ):
            s.shutdown(socket.SHUT_RDWR)

    def _once(self, operation: Callable[[PostgresTransaction], T], kind: Kind) -> tuple[T, bool]:
        connection = self._connection or self._connect()
        self.busy_since = time.monotonic()
        committing = False
        try:
            if self._asked:
                self._asked = False
                _collect(connection)
            if isinstance(operation, Trip) and self._in_session and _is_silent(connection):
                committing = True
                done: T | None = operation.alone(Alone(connection, self._clock))
                if done is not None:
                    return done, operation.changes
                committing = False
            tx = self._opened(connection, kind)
            answer = operation(tx)
            committing = True
            connection.execute("COMMIT")
        except BaseException as error:
            self._abandon(connection)
            if committing and isinstance(error, psycopg.Error) and self._connection is None:
                raise self._unknown() from error
            raise
        finally:
            self.busy_since = None
        return answer, tx.changed

    def _connect(self) -> Connection:
        connection = connect(self._address, patience=PATIENCE_SECONDS)
        # A role is given back after every transaction, whoever may come next.
        self._in_session = self._address.tenant is None and connection.prepare_threshold is not None
        if self._in_session:
            with translated(self._address.name):
                connection.execute(self._address.session())
        self._asked = False
        begin = partial(self._address.begin, in_session=self._in_session)
        self._begin = {
            Kind.WRITING: begin(),
            Kind.READING: begin(read_only=True),
            Kind.GIVING_WAY: begin(lock_ms=GIVE_WAY_MS),
        }
        self._connection = connection
        return connection

    def _opened(self, connection: Connection, kind: Kind) -> PostgresTransaction:
        cursor = connection.execute(self._begin[kind])
        while cursor.nextset():
            pass
        now = int(cast("tuple[Any, ...]", cursor.fetchone())[0])
        if isinstance(self._clock, ServerClock):
            self._clock.heard(now)
            return PostgresTransaction(connection, now, now)
        return PostgresTransaction(connection, self._clock.now(), self._clock.monotonic())

    def _abandon(self, connection: Connection) -> None:
        """Undo what was done, or forget a connection that cannot even do that."""
        try:
            connection.execute("ROLLBACK")
        except psycopg.Error:
            connection.close()
            self._connection = None

    def _unknown(self) -> StoreError:
        return StoreUnavailable(
            self._address.name, "the connection was lost during a commit; it may or may not be done"
        )


def _is_silent(connection: Connection) -> bool:
    """Whether nothing has come unasked: where it has, the connection may be about to end."""
    return not readable([connection.fileno()], 0)


def _collect(connection: Connection) -> None:
    """Take the answer to what was sent, whatever it is."""
    while True:
        while connection.pgconn.is_busy():
            readable([connection.fileno()], None)
            connection.pgconn.consume_input()
        if connection.pgconn.get_result() is None:
            return
