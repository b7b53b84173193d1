"""Wake-ups: one subscription per process, passed on to everyone in it who listens."""

import asyncio
import contextlib

import redis
import redis.asyncio
import structlog

from penstock.model.errors import StoreClosed, StoreError
from penstock.store.redis.backoff import Backoff
from penstock.store.redis.errors import translate
from penstock.store.redis.server import Server

log = structlog.get_logger("penstock.store")

QUIET_SECONDS = 15.0
WARN_SECONDS = 60.0


class Signals:
    """Hears of every change of the installation, whichever process made it.

    Without a connection nobody is woken, and all that listens goes on by polling; when it is back,
    everyone is woken once, for what was missed.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._listeners: set[Listener] = set()
        self._task: asyncio.Task[None] | None = None
        self._connection: redis.asyncio.Connection | None = None
        self._backoff = Backoff()
        self._warned_at = -WARN_SECONDS

    @property
    def connected(self) -> bool:
        """Whether changes are heard now."""
        return self._connection is not None

    async def open(self) -> None:
        """Subscribe, so that nothing is missed from here on."""
        if self._task is not None:
            return
        try:
            self._connection = await self._subscribed()
        except (redis.RedisError, OSError) as error:
            raise translate(self._server.url, error) from error
        self._task = asyncio.create_task(self._listen(), name="penstock-signals")

    async def close(self) -> None:
        """Stop listening."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await self._disconnect()
        self._listeners.clear()

    def subscribe(self) -> "Listener":
        """Listen from the running event loop."""
        if self._task is None:
            raise StoreClosed(self._server.url)
        listener = Listener(self)
        self._listeners.add(listener)
        return listener

    def drop(self, listener: "Listener") -> None:
        """Forget a listener."""
        self._listeners.discard(listener)

    def ring(self) -> None:
        """Wake everyone who listens."""
        for listener in self._listeners:
            listener.hear()

    async def _listen(self) -> None:
        while True:
            try:
                if self._connection is None:
                    self._connection = await self._subscribed()
                    self._backoff.succeeded()
                    self.ring()
                await self._hear(self._connection)
            except (redis.RedisError, OSError, StoreError) as error:
                await self._disconnect()
                self._backoff.failed()
                self._warn(error)
                await asyncio.sleep(self._backoff.seconds())

    async def _hear(self, connection: "redis.asyncio.Connection") -> None:
        """Pass on one change, and make sure now and then that the line is not dead."""
        answer = await connection.read_response(timeout=QUIET_SECONDS)
        if answer is None:
            await connection.send_command("PING", check_health=False)
            answer = await connection.read_response(timeout=self._server.address.timeout)
        if answer is None:
            raise redis.TimeoutError("the line is dead")
        if answer[0] == b"message":
            self.ring()

    async def _subscribed(self) -> "redis.asyncio.Connection":
        connection = await self._server.connection()
        try:
            channel = self._server.prefix + "wake"
            await connection.send_command("SUBSCRIBE", channel, check_health=False)
            await connection.read_response(timeout=self._server.address.timeout)
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        return connection

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(redis.RedisError, OSError):
                await connection.disconnect(nowait=True)

    def _warn(self, error: Exception) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._warned_at >= WARN_SECONDS:
            self._warned_at = now
            log.warning("wake_ups_lost", error=f"{type(error).__name__}: {error}"[:200])


class Listener:
    """One subscription; rings between two waits are kept as one."""

    def __init__(self, signals: Signals) -> None:
        self._signals = signals
        self._event = asyncio.Event()

    def hear(self) -> None:
        """Something changed."""
        self._event.set()

    async def wait(self, timeout: float) -> bool:
        """True when something changed, false when the time ran out."""
        try:
            async with asyncio.timeout(timeout):
                await self._event.wait()
        except TimeoutError:
            return False
        self._event.clear()
        return True

    def close(self) -> None:
        """Stop listening."""
        self._signals.drop(self)
