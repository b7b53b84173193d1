"""One connection that comes back: transactions are repeated where that is safe."""

import asyncio
import os
import random
import select
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from enum import Enum, auto
from functools import partial
from typing import Any, TypeVar, cast

import psycopg
from psycopg import pq
from psycopg.pq.abc import PGresult

from penstock.model.clock import Clock, ServerClock
from penstock.model.store_errors import StoreError, StoreUnavailable
from penstock.store.postgres.connect import PATIENCE_SECONDS, Address, Connection, connect, readable
from penstock.store.postgres.errors import is_contended, is_repeatable, translate, translated
from penstock.store.postgres.round_trip import (
    Alone,
    Ended,
    Question,
    RoundTrip,
    Row,
    Sent,
    prepare,
    rows_of,
    values_of,
)
from penstock.store.postgres.transaction import PostgresTransaction

T = TypeVar("T")

MAX_REPEATS = 20
REPEAT_SECONDS = 0.005
TOO_LONG_SECONDS = 45.0
GIVE_WAY_MS = 100
_NO_SUCH_STATEMENT = b"26000"
MOST_AT_ONCE = 8192
"""So many bytes go out without waiting: the buffer of a connection holds more."""


class Kind(Enum):
    """How a transaction begins; one that gives way waits for nobody long, and is not repeated."""

    WRITING = auto()
    READING = auto()
    GIVING_WAY = auto()


class GaveWay(Exception):
    """Others held what a transaction wanted, and it was undone."""


class Session:
    """A connection to one database, used by one thread at a time; others wait for their turn."""

    def __init__(self, address: Address, clock: Clock) -> None:
        self._address = address
        self._clock = clock
        self._keeps_settings = False
        self._connection: Connection | None = None
        self._asked = False
        self._prepared: set[str] = set()
        self._sent: Sent[Any] | None = None
        self._behind: bytes | None = None
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
            self._finish_sent()
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

    def begin(self, trip: RoundTrip[T], loop: asyncio.AbstractEventLoop, ended: Ended) -> bool:
        """Send a trip and let the loop wait for its answer; false, and nothing done, if it cannot.

        Whoever needs the connection before that waits for the answer first, so that a loop which
        is held up holds up nobody else. It is `ended` in the thread of either.
        """
        if not self._lock.acquire(blocking=False):
            return False
        try:
            connection = self._connection
            if connection is None or self._sent is not None or not self._keeps_settings:
                return False
            alone = Alone(self._clock)
            question = trip.ask(alone)
            if question is None or question[0] not in self._prepared:
                return False
            if not self._asked and not _is_silent(connection):
                return False
            try:
                sent = Sent(trip, alone, question, ended)
            except (psycopg.DataError, UnicodeEncodeError):
                return False  # the usual way tells what is wrong
            if sum(map(len, filter(None, sent.values))) > MOST_AT_ONCE:
                return False
            self._sent = sent
            self.busy_since = time.monotonic()
            if not self._advance(connection, sent, wait=False):
                sent.watch(loop, connection.fileno(), self._look)
            return True
        finally:
            self._lock.release()

    def finish(self) -> None:
        """Wait for the answer to a trip that is under way."""
        with self._lock:
            self._finish_sent()

    def send(self, statement: bytes) -> bool:
        """Send a statement of no consequence, and wait for no answer; false if it cannot go.

        Behind a trip that is under way, it goes when that has ended.
        """
        with self._lock:
            if self._sent is not None:
                self._behind = statement
                return True
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
            self._finish_sent()
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def use(self, connection: Connection) -> None:
        """Go on with a connection that nobody else uses any more."""
        # A role is given back after every transaction, whoever may come next.
        self._keeps_settings = (
            self._address.tenant is None and connection.prepare_threshold is not None
        )
        if self._keeps_settings:
            with translated(self._address.name):
                connection.execute(self._address.session())
        self._asked = False
        self._prepared.clear()
        begin = partial(self._address.begin, in_session=self._keeps_settings)
        self._begin = {
            Kind.WRITING: begin(),
            Kind.READING: begin(read_only=True),
            Kind.GIVING_WAY: begin(lock_ms=GIVE_WAY_MS),
        }
        self._connection = connection

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
            if isinstance(operation, RoundTrip) and self._keeps_settings and _is_silent(connection):
                alone = Alone(self._clock)
                question = operation.ask(alone)
                if question is not None:
                    values = self._prepare(connection, question)
                    committing = True
                    rows = self._rows(connection, question[0], values)
                    done: T | None = operation.answer(alone, rows)
                    if done is not None:
                        return done, operation.changes
                    committing = False
            tx = self._opened(connection, kind)
            answer = operation(tx)
            if connection.pgconn.transaction_status == pq.TransactionStatus.INERROR:
                raise self._swallowed()  # a COMMIT would undo everything and report no error
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

    def _prepare(self, connection: Connection, question: Question) -> list[bytes | None]:
        """Do all of a statement that can be done before it is sent; its values."""
        if question[0] not in self._prepared:
            prepare(connection, question[0])
            self._prepared.add(question[0])
        return values_of(question)

    def _rows(self, connection: Connection, name: str, values: list[bytes | None]) -> list[Row]:
        connection.pgconn.send_query_prepared(name.encode(), values)
        results = _collect(connection)
        if _is_forgotten(results):
            prepare(connection, name)
            connection.pgconn.send_query_prepared(name.encode(), values)
            results = _collect(connection)
        return rows_of(connection, results)

    def _look(self, sent: Sent[Any]) -> None:
        """Take what has come, in the thread of an event loop."""
        if not self._lock.acquire(blocking=False):
            return  # whoever has the connection takes the answer first, or gives it back at once
        try:
            connection = self._connection
            if sent is not self._sent or connection is None:
                sent.unwatch()
            else:
                self._advance(connection, sent, wait=False)
        finally:
            self._lock.release()

    def _finish_sent(self) -> None:
        if self._sent is not None and self._connection is not None:
            self._advance(self._connection, self._sent, wait=True)

    def _advance(self, connection: Connection, sent: Sent[Any], *, wait: bool) -> bool:
        """Go on with what is under way; whether it has ended."""
        try:
            if not self._exchanged(connection, sent, wait=wait):
                return False
            sent.result = sent.trip.answer(sent.alone, rows_of(connection, sent.results))
        except psycopg.Error:
            if connection.pgconn.status != pq.ConnStatus.OK or _is_fatal(sent.results):
                connection.close()
                self._connection = None
                sent.error = self._unknown() if sent.is_out else None
            elif _is_forgotten(sent.results):
                self._prepared.discard(sent.name.decode())
        except BaseException as error:
            sent.error = error
            self._asked = True  # what is left of the answer is collected
        self._sent = None
        self.busy_since = None
        sent.end(in_loop=not wait)
        behind, self._behind = self._behind, None
        if behind is not None and not self._asked:
            self.send(behind)
        return True

    def _exchanged(self, connection: Connection, sent: Sent[Any], *, wait: bool) -> bool:
        """Send what is not out yet and take what has come; whether that is the whole answer."""
        if not sent.is_out:
            if self._asked:
                if not _received(connection, [], wait=wait):
                    return False
                self._asked = False
                if not _is_silent(connection):
                    raise psycopg.OperationalError("the connection is about to end")
            sent.is_out = True
            connection.pgconn.send_query_prepared(sent.name, sent.values)
        return _received(connection, sent.results, wait=wait)

    def _connect(self) -> Connection:
        connection = connect(self._address, patience=PATIENCE_SECONDS)
        self.use(connection)
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

    def _swallowed(self) -> StoreError:
        return StoreError(
            self._address.name,
            "wrote nothing, because a statement failed and the work went on; let the error out",
        )

    def _unknown(self) -> StoreError:
        return StoreUnavailable(
            self._address.name, "the connection was lost during a commit; it may or may not be done"
        )


def _is_silent(connection: Connection) -> bool:
    """Whether nothing has come unasked: where it has, the connection may be about to end."""
    return not readable([connection.fileno()], 0)


def _is_fatal(results: list[PGresult]) -> bool:
    """Whether the server has ended the session, and perhaps done before that what was asked."""
    field = pq.DiagnosticField.SEVERITY_NONLOCALIZED
    return any(result.error_field(field) in (b"FATAL", b"PANIC") for result in results)


def _is_forgotten(results: list[PGresult]) -> bool:
    """Whether the server has dropped a prepared query; psycopg has it drop all on a rollback."""
    field = pq.DiagnosticField.SQLSTATE
    return any(result.error_field(field) == _NO_SUCH_STATEMENT for result in results)


def _collect(connection: Connection) -> list[PGresult]:
    """Take the answer to what was sent, whatever it is."""
    results: list[PGresult] = []
    _received(connection, results, wait=True)
    return results


def _received(connection: Connection, results: list[PGresult], *, wait: bool) -> bool:
    """Take what has come of an answer; whether that was all of it."""
    server = connection.pgconn
    while True:
        unsent = server.flush()
        if not server.is_busy():
            result = server.get_result()
            if result is None:
                return True
            results.append(result)
            continue
        waiting = select.poll()
        waiting.register(connection.fileno(), select.POLLIN | (select.POLLOUT if unsent else 0))
        if not waiting.poll(None if wait or unsent else 0):
            return False
        server.consume_input()
