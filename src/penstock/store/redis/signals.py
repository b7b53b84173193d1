"""Wake-ups: one subscription per event loop, passed on to everyone in it who listens."""

import asyncio
from contextlib import suppress
from typing import Any

import redis
import structlog

from penstock.model.store_errors import StoreClosed, StoreError
from penstock.store.redis.errors import translate
from penstock.store.redis.pipeline import Backoff, Pipeline
from penstock.store.redis.server import Server

log = structlog.get_logger("penstock.store")

QUIET_SECONDS = 15.0
WARN_SECONDS = 60.0


class Signals:
    """Hears of every change of the installation, whichever process made it.

    Each event loop that listens has a subscription of its own.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._open = False
        self._ears: dict[asyncio.AbstractEventLoop, _Ear] = {}

    @property
    def connected(self) -> bool:
        """Whether changes are heard now."""
        return any(ear.connected for ear in list(self._ears.values()))

    def open(self) -> None:
        """Take listeners; a process in which nobody listens has nothing told to it."""
        self._open = True

    async def close(self) -> None:
        """Stop listening."""
        self._open = False
        own = self._ears.pop(asyncio.get_running_loop(), None)
        if own is not None:
            await own.close()
        while self._ears:
            self._ears.popitem()[1].drop()

    def subscribe(self) -> "Listener":
        """Listen from the running event loop."""
        if not self._open:
            raise StoreClosed(self._server.url)
        return self._own_ear().subscribe()

    def _own_ear(self) -> "_Ear":
        loop = asyncio.get_running_loop()
        ear = self._ears.get(loop)
        if ear is None:
            for each in [each for each in self._ears if each.is_closed()]:
                self._ears.pop(each).drop()
            ear = self._ears[loop] = _Ear(self._server)
        return ear


class _Ear:
    """One event loop's subscription, passed on to everyone there who listens.

    Without a connection nobody is woken, and all that listens goes on by polling; when it is back,
    everyone is woken once, for what was missed.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._listeners: set[Listener] = set()
        self._task: asyncio.Task[None] | None = None
        self._pipeline: Pipeline | None = None
        self._backoff = Backoff()
        self._warned_at = -WARN_SECONDS

    @property
    def connected(self) -> bool:
        """Whether changes are heard now."""
        return self._pipeline is not None and self._pipeline.open

    async def close(self) -> None:
        """Stop listening."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await self._disconnect()
        self._listeners.clear()

    def drop(self) -> None:
        """Stop listening, asked by another event loop or after the end of this one."""
        pipeline, task = self._pipeline, self._task
        if not self._loop.is_closed():
            with suppress(RuntimeError):  # it has ended in this moment
                if task is not None:
                    self._loop.call_soon_threadsafe(task.cancel)
        elif pipeline is not None:
            pipeline.abandon()

    def subscribe(self) -> "Listener":
        """Listen, from the first time on that somebody does."""
        self._start()
        listener = Listener(self)
        self._listeners.add(listener)
        return listener

    def forget(self, listener: "Listener") -> None:
        """Forget a listener."""
        self._listeners.discard(listener)

    def ring(self) -> None:
        """Wake everyone who listens."""
        for listener in self._listeners:
            listener.hear()

    def _start(self) -> None:
        if self._task is None or self._task.done():
            self._task = self._loop.create_task(self._listen(), name="penstock-signals")

    async def _listen(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        try:
            while True:
                try:
                    if self._pipeline is None:
                        self._pipeline = await self._subscribed()
                        if task.cancelling():  # redis-py goes on connecting when it is cancelled
                            return
                        self._backoff.succeeded()
                        self.ring()
                    await self._hear(self._pipeline)
                except (redis.RedisError, OSError, StoreError) as error:
                    await self._disconnect()
                    self._backoff.failed()
                    self._warn(error)
                    await asyncio.sleep(self._backoff.seconds())
        finally:
            await self._disconnect()

    async def _hear(self, pipeline: Pipeline) -> None:
        """Stay until the pipeline is lost, and make sure now and then that it is not dead."""
        while True:
            quiet = asyncio.get_running_loop().time() - pipeline.heard_at
            if quiet >= QUIET_SECONDS:
                await pipeline.send([("PING",)])
            try:
                async with asyncio.timeout(max(0.0, QUIET_SECONDS - quiet)):
                    await pipeline.lost()
            except TimeoutError:
                continue
            raise redis.ConnectionError("Connection closed by server.")

    async def _subscribed(self) -> Pipeline:
        pipeline = await self._server.pipeline(self._on_message)
        try:
            [answer] = await pipeline.send([("SUBSCRIBE", self._server.prefix + "wake")])
            if isinstance(answer, Exception):
                raise answer
        except BaseException:
            await pipeline.close()
            raise
        return pipeline

    def _on_message(self, message: Any) -> None:
        self.ring()

    async def _disconnect(self) -> None:
        pipeline, self._pipeline = self._pipeline, None
        if pipeline is not None:
            await pipeline.close()

    def _warn(self, error: Exception) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._warned_at >= WARN_SECONDS:
            self._warned_at = now
            known = isinstance(error, StoreError)
            told = error if known else translate(self._server.url, error)
            log.warning("wake_ups_lost", error=str(told))


class Listener:
    """One subscription; rings between two waits are kept as one."""

    def __init__(self, ear: _Ear) -> None:
        self._ear = ear
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
        self._ear.forget(self)
