"""Hearing of changes: NOTIFY is a hint, sent after a commit and never more often than needed.

One thread and one connection both send and listen; a single enqueue sends it right behind its
commit, on the same connection. Where neither works (PgBouncer shares a
connection between transactions), polling goes on to find everything.
"""

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from uuid import uuid4

import psycopg
from psycopg import sql

from penstock.model.errors import StoreError
from penstock.store.postgres.connect import Address, Connection, connect, readable

PAUSE_SECONDS = 0.005
RECONNECT_SECONDS = (0.1, 5.0)


def channel_of(address: Address) -> str:
    """What all who share a schema listen to."""
    return f"{address.schema}_changed"


class Notices:
    """Tells other processes that something changed, and hears it from them."""

    def __init__(self, address: Address, ring: Callable[[], None]) -> None:
        self._address = address
        self._ring = ring
        self._channel = sql.Identifier(channel_of(address))
        self._signature = uuid4().hex
        words = sql.SQL("NOTIFY {}, {}").format(self._channel, sql.Literal(self._signature))
        self._statement = words.as_bytes(None)
        self._told_at = float("-inf")
        self._heard = False
        self._wake_in, self._wake_out = os.pipe()
        os.set_blocking(self._wake_in, False)
        os.set_blocking(self._wake_out, False)
        self._untold = False
        self._stopped = False
        self._tried = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="penstock-notices", daemon=True)
        self._thread.start()

    def tell(self) -> None:
        """Have the others hear that something changed; safe from any thread."""
        self._untold = True
        self._wake()

    def turn(self) -> bytes | None:
        """What tells the others, for one who does so itself; none so soon after the last."""
        now = time.monotonic()
        if now - self._told_at < PAUSE_SECONDS:
            return None
        self._told_at = now
        return self._statement

    def wait(self, seconds: float) -> None:
        """Return once it listens, or has found that it cannot yet."""
        self._tried.wait(seconds)

    def stop(self) -> None:
        """Stop listening."""
        self._stopped = True
        self._wake()
        self._thread.join()
        os.close(self._wake_in)
        os.close(self._wake_out)

    def _wake(self) -> None:
        with suppress(BlockingIOError):  # a wake-up is on its way already
            os.write(self._wake_out, b".")

    def _serve(self) -> None:
        pause, longest = RECONNECT_SECONDS
        while not self._stopped:
            try:
                with connect(self._address) as connection:
                    connection.execute(sql.SQL("LISTEN {}").format(self._channel))
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
            if self._wake_in in readable([connection.fileno(), self._wake_in], None):
                self._drain()
            if self._untold:
                self._untold = False
                self._told_at = time.monotonic()
                connection.execute(self._statement)
            connection.pgconn.consume_input()
            while (notice := connection.pgconn.notifies()) is not None:
                self._heard = self._heard or notice.extra != self._signature.encode()
            if self._heard:
                self._heard = False
                self._ring()
            # One notice stands for all that happens meanwhile.
            time.sleep(PAUSE_SECONDS)

    def _note(self, notice: psycopg.Notify) -> None:
        self._heard = self._heard or notice.payload != self._signature

    def _drain(self) -> None:
        with suppress(BlockingIOError):
            while os.read(self._wake_in, 4096):
                pass
