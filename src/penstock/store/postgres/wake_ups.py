"""Hearing of changes: NOTIFY is a hint, sent after a commit and never more often than needed.

It goes right behind a commit, on the connection that made it; what follows too soon is told a bit
later, by a thread. Only a process that listens has a connection for it. Where none of this works
(PgBouncer shares a connection between transactions), polling goes on to find everything.
"""

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from uuid import uuid4

import psycopg
from psycopg import sql

from penstock.model.store_errors import StoreError
from penstock.store.postgres.connect import Address, Connection, connect, readable
from penstock.store.postgres.session import Session

PAUSE_SECONDS = 0.005
RECONNECT_SECONDS = (0.1, 5.0)


def channel_of(address: Address) -> str:
    """What all who share a schema listen to."""
    return f"{address.schema}_changed"


class WakeUps:
    """Tells other processes that something changed, and hears it from them while it listens."""

    def __init__(self, address: Address, ring: Callable[[], None], session: Session) -> None:
        self._address = address
        self._ring = ring
        self._session = session
        self._signature = uuid4().hex
        # A hint need not survive a crash: the disk is not waited for.
        words = "SELECT set_config('synchronous_commit', 'off', true), pg_notify({}, {})"
        parts = sql.Literal(channel_of(address)), sql.Literal(self._signature)
        self._statement = sql.SQL(words).format(*parts).as_bytes(None)
        self._told_at = float("-inf")
        self._untold = False
        self._heard = False
        self.listening = False
        self._stopped = False
        self._tried = threading.Event()
        self._wake_in, self._wake_out = os.pipe()
        os.set_blocking(self._wake_in, False)
        os.set_blocking(self._wake_out, False)
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def tell(self, session: Session) -> None:
        """Have the others hear that something changed, by the connection that committed it."""
        now = time.monotonic()
        soon = now - self._told_at < PAUSE_SECONDS
        if not soon:
            self._told_at = now
        if soon and self._untold:
            return
        if soon or not session.send(self._statement):
            self._untold = True
            self._start()
            self._wake()

    def listen(self) -> None:
        """Hear from now on what others change."""
        if not self.listening:
            self.listening = True
            self._start()
            self._wake()

    def wait(self, seconds: float) -> None:
        """Return once it listens, or has found that it cannot yet."""
        self._tried.wait(seconds)

    def stop(self) -> None:
        """Tell what is left to tell, and stop listening."""
        self._stopped = True
        self._wake()
        if self._thread is not None:
            self._thread.join()
        if self._untold:
            self._session.send(self._statement)
        os.close(self._wake_in)
        os.close(self._wake_out)

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._serve, name="penstock-wake-ups", daemon=True
                )
                self._thread.start()

    def _wake(self) -> None:
        with suppress(BlockingIOError):  # a wake-up is on its way already
            os.write(self._wake_out, b".")

    def _serve(self) -> None:
        while not self._stopped and not self.listening:
            readable([self._wake_in], None)
            self._drain()
            self._tell_by(self._session.send)
            time.sleep(PAUSE_SECONDS)
        pause, longest = RECONNECT_SECONDS
        while not self._stopped:
            try:
                with connect(self._address) as connection:
                    channel = sql.Identifier(channel_of(self._address))
                    connection.execute(sql.SQL("LISTEN {}").format(channel))
                    pause = RECONNECT_SECONDS[0]
                    self._ring()  # what happened while nobody listened
                    self._tried.set()
                    self._converse(connection)
            except (psycopg.Error, StoreError, OSError):
                self._tried.set()
                self._wait(pause)
                pause = min(pause * 2, longest)

    def _wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not self._stopped and (left := deadline - time.monotonic()) > 0:
            readable([self._wake_in], left)
            self._drain()

    def _converse(self, connection: Connection) -> None:
        connection.add_notify_handler(self._note)
        while not self._stopped:
            files = [connection.fileno(), self._wake_in]
            if self._wake_in in readable(files, 0 if self._untold else None):
                self._drain()
            self._tell_by(connection.execute)
            connection.pgconn.consume_input()
            while (notice := connection.pgconn.notifies()) is not None:
                self._heard = self._heard or notice.extra != self._signature.encode()
            if self._heard:
                self._heard = False
                self._ring()
            # One notice stands for all that happens meanwhile.
            time.sleep(PAUSE_SECONDS)

    def _tell_by(self, send: Callable[[bytes], object]) -> None:
        if self._untold:
            self._untold = False
            self._told_at = time.monotonic()
            send(self._statement)

    def _note(self, notice: psycopg.Notify) -> None:
        self._heard = self._heard or notice.payload != self._signature

    def _drain(self) -> None:
        with suppress(BlockingIOError):
            while os.read(self._wake_in, 4096):
                pass
