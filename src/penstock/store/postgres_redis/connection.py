"""The connection to a Redis that may be away: then nobody waits for it, and it comes back."""

import threading
import time
from collections.abc import Callable
from typing import Any

import redis
import structlog

from penstock.model.store_errors import ServerTooOld, StoreError, StoreUnavailable
from penstock.store.redis.errors import translate
from penstock.store.redis.server import OLDEST, Server, product, read_info, version_of, version_text

log = structlog.get_logger("penstock.store")

ANSWER_SECONDS = 0.5
RETRY_SECONDS = (0.2, 5.0)
WARN_SECONDS = 60.0


class Away(Exception):
    """Redis does not answer."""


class RedisConnection:
    """Publishes from any thread; after a failure nobody calls until `try_again` succeeded."""

    def __init__(self, url: str) -> None:
        self._server = Server(url, ANSWER_SECONDS)
        self._channel = self._server.prefix + "dispatch:wake"
        self.away = False
        self.on_away: Callable[[], None] = lambda: None
        self._retry_at = 0.0
        self._pause = RETRY_SECONDS[0]
        self._warned_at = -WARN_SECONDS
        self._lock = threading.Lock()

    def open(self) -> None:
        """Connect; one that cannot be reached is tried again later, a wrong one is refused."""
        self._server.join()
        try:
            answer = self._server.reply_now(("INFO", "server"))
            if isinstance(answer, Exception):
                raise translate(self._server.url, answer) from answer
        except StoreUnavailable as error:
            self._failed(error)
            return
        info = read_info(answer)
        if version_of(info) < OLDEST:
            found = f"{product(info)} {version_text(info)}"
            raise ServerTooOld(self._server.url, found, ".".join(map(str, OLDEST)))

    async def close(self) -> None:
        """Let the connections go."""
        await self._server.close()

    def publish(self, message: str) -> None:
        """Have every subscription hear a message, or raise `Away`."""
        if self.away or not self._answered("PUBLISH", self._channel, message):
            raise Away

    def answers(self) -> bool:
        """Whether it answers; one that is away does so again once `try_again` succeeded."""
        return not self.away and self._answered("PING")

    def subscribe(self) -> Any:
        """A connection that hears every change; the caller disconnects it."""
        try:
            connection: Any = self._server.connection_now()  # most of its methods have no types
            connection.send_command("SUBSCRIBE", self._channel)
            connection.read_response()
        except (redis.RedisError, OSError, StoreError) as error:
            raise Away from error
        return connection

    @property
    def retry_in(self) -> float | None:
        """Seconds until it should be tried again; None while it answers."""
        return max(0.0, self._retry_at - time.monotonic()) if self.away else None

    def try_again(self) -> bool:
        """Whether it answers again."""
        self._server.backoff.succeeded()  # or it would wait before it tries
        if not self._answered("PING"):
            return False
        self.away, self._pause = False, RETRY_SECONDS[0]
        log.info("dispatch_back", url=self._server.address.host)
        return True

    def _answered(self, *command: str) -> bool:
        try:
            answer = self._server.reply_now(command)
        except StoreError as error:
            answer = error
        if isinstance(answer, Exception):
            self._failed(answer)
            return False
        return True

    def _failed(self, error: Exception) -> None:
        with self._lock:
            self.away = True
            self._retry_at = time.monotonic() + self._pause
            self._pause = min(2 * self._pause, RETRY_SECONDS[1])
            warn = time.monotonic() - self._warned_at >= WARN_SECONDS
            if warn:
                self._warned_at = time.monotonic()
        if warn:
            log.warning("dispatch_lost", error=str(error)[:200], instead="PostgreSQL alone")
        self.on_away()
