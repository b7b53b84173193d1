"""Hearing of changes by Redis in place of NOTIFY, which stands in while Redis is away."""

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import redis

from penstock.store.postgres.connect import Address
from penstock.store.postgres.session import Session
from penstock.store.postgres.wake_ups import PAUSE_SECONDS, WakeUps
from penstock.store.postgres_redis.connection import Away, RedisConnection

QUIET_SECONDS = 15.0
DEAF_SECONDS = 2.0


class RedisWakeUps(WakeUps):
    """Tells by Redis; listens to Redis, and to PostgreSQL for those who do not tell Redis.

    These are processes without Redis, and transactions of the caller's own.
    """

    def __init__(
        self,
        connection: RedisConnection,
        address: Address,
        ring: Callable[[], None],
        session: Session,
    ) -> None:
        super().__init__(address, ring, session)
        self._connection = connection
        self._ended = False
        self._told = threading.Event()
        self._subscription: Any = None
        self._connection.on_away = self._told.set
        self._threads = [self._started("penstock-dispatch", self._publish)]

    def tell(self, session: Session) -> None:
        """Have the others hear that something changed; safe from any thread."""
        self._told.set()

    def listen(self) -> None:
        """Hear from now on what others change."""
        if not self.listening:
            self._threads.append(self._started("penstock-subscription", self._subscribe))
        super().listen()

    def stop(self) -> None:
        """Tell what is left to tell, and stop listening."""
        self._ended = True
        self._told.set()
        self._interrupt()
        for thread in self._threads:
            thread.join()
        self._connection.on_away = _nothing
        super().stop()

    def _started(self, name: str, work: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=work, name=name, daemon=True)
        thread.start()
        return thread

    def _publish(self) -> None:
        while not self._ended:
            self._told.wait(self._connection.retry_in)
            told = self._told.is_set()
            self._told.clear()
            if self._connection.retry_in == 0 and self._connection.try_again():
                told = True
                self._ring()
            if told:
                try:
                    self._connection.publish(self._signature)
                except Away:
                    super().tell(self._session)
            # One message stands for all that happens meanwhile.
            time.sleep(PAUSE_SECONDS)

    def _subscribe(self) -> None:
        while not self._ended:
            try:
                self._subscription = self._connection.subscribe()
                self._ring()  # what happened while nobody listened
                while not self._ended:
                    self._hear(self._subscription)
            except (Away, redis.RedisError, OSError):
                self._unsubscribe()
                if not self._ended:
                    self._rest()

    def _rest(self) -> None:
        deadline = time.monotonic() + DEAF_SECONDS
        while not self._ended and time.monotonic() < deadline:
            time.sleep(PAUSE_SECONDS)

    def _hear(self, subscription: Any) -> None:
        """Pass on one change, and make sure now and then that the connection is not dead."""
        if not subscription.can_read(QUIET_SECONDS):
            subscription.send_command("PING", check_health=False)
        message = subscription.read_response()
        if message[0] == b"message" and message[2] != self._signature.encode():
            self._ring()

    def _interrupt(self) -> None:
        """End a wait for messages; only the thread that listens may let go of the connection."""
        waiting: socket.socket | None = getattr(self._subscription, "_sock", None)
        if waiting is not None:
            with suppress(OSError):
                waiting.shutdown(socket.SHUT_RDWR)

    def _unsubscribe(self) -> None:
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            with suppress(redis.RedisError, OSError):
                subscription.disconnect()


def _nothing() -> None:
    return None
