"""Server-sent events: one subscription to the store for all open tabs, and bounds on streams."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

import structlog
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from penstock.model.store_errors import StoreError
from penstock.server.problems import Refusal
from penstock.store.contract import Store

log = structlog.get_logger("penstock.server")

PAUSE_SECONDS = 1.0
WAIT_SECONDS = 5.0
RETRY = b"retry: 2000\n\n"
CHANGED = b"event: changed\ndata: 1\n\n"


class Live:
    """The tabs that listen; the store is asked only while there are any."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._bells: set[asyncio.Event] = set()
        self._listening: asyncio.Task[None] | None = None

    @property
    def tabs(self) -> int:
        """How many tabs listen."""
        return len(self._bells)

    async def events(self) -> AsyncGenerator[bytes, None]:
        """What one tab is told: how to come back, then of changes, at most once a second."""
        bell = asyncio.Event()
        self._bells.add(bell)
        if self._listening is None:
            self._listening = asyncio.create_task(self._listen(), name="dashboard-live")
        try:
            yield RETRY
            while True:
                await bell.wait()
                bell.clear()
                yield CHANGED
        finally:
            self._leave(bell)

    def _leave(self, bell: asyncio.Event) -> None:
        self._bells.discard(bell)
        if not self._bells and self._listening is not None:
            self._listening.cancel()
            self._listening = None

    async def _listen(self) -> None:
        while True:
            try:
                await self._relay()
            except Exception as error:
                # Were it to end here, every tab would look as if nothing happened any more.
                log.warning("live_lost", error=str(error))
                await asyncio.sleep(PAUSE_SECONDS)

    async def _relay(self) -> None:
        subscription = self._store.subscribe()
        try:
            while True:
                if await subscription.wait(WAIT_SECONDS):
                    for bell in self._bells:
                        bell.set()
                    await asyncio.sleep(PAUSE_SECONDS)
        finally:
            subscription.close()


MAX_STREAMS = 1_000
MAX_PER_CALLER = 100
BUSY_SECONDS = 5
HEARTBEAT_SECONDS = 5.0
LIFE_SECONDS = 600.0
MEDIA_TYPE = "text/event-stream"
STILL_HERE = b": still here\n\n"

Events = AsyncGenerator[bytes, None]
Lasts = Callable[[], Awaitable[bool]]
"""Whether a caller may still listen."""


class Streams:
    """The streams of one server: counted per caller, and ended when it stops."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()
        self._over = asyncio.Event()

    @property
    def total(self) -> int:
        """How many are open."""
        return self._open.total()

    def open(self, caller: str, events: Events, lasts: Lasts) -> "EventStream":
        """Answer a caller with events; not with more than so many streams of them at once."""
        if self._open[caller] >= MAX_PER_CALLER:
            told = f"{MAX_PER_CALLER} streams of yours are open already; close some."
            raise Refusal(429, told, retry_after=BUSY_SECONDS)
        if self.total >= MAX_STREAMS:
            told = f"{MAX_STREAMS:,} streams are open already; come back later."
            raise Refusal(503, told, retry_after=BUSY_SECONDS)
        self._open[caller] += 1
        return EventStream(self.paced(events, lasts), partial(self._close, caller))

    def begin(self) -> None:
        """Let streams last; an application may be opened again after it was closed."""
        self._over = asyncio.Event()

    def end(self) -> None:
        """End all of them, so that a server that stops need not wait."""
        self._over.set()

    async def paced(self, events: Events, lasts: Lasts) -> Events:
        """Events, and a comment in every silence that keeps the connection open.

        It ends with them, with the right to them, with the server, and after ten minutes.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + LIFE_SECONDS
        over = asyncio.ensure_future(self._over.wait())
        coming: asyncio.Future[bytes | None] | None = None
        # A store that is lost ends the stream: who asks again is told what is wrong with it.
        with suppress(StoreError):
            try:
                while loop.time() < until and not over.done():
                    coming = coming or asyncio.ensure_future(anext(events, None))
                    await _either(coming, over)
                    event: bytes | None = STILL_HERE
                    if coming.done():
                        event, coming = coming.result(), None
                    if event is None or not await lasts():
                        return
                    yield event
            finally:
                over.cancel()
                if coming is not None:
                    coming.cancel()
                    await asyncio.gather(coming, return_exceptions=True)
                await events.aclose()

    def _close(self, caller: str) -> None:
        self._open[caller] -= 1
        if not self._open[caller]:
            del self._open[caller]


class EventStream(StreamingResponse):
    """A stream that counts until it has ended, however it ends."""

    def __init__(self, events: Events, ended: Callable[[], None]) -> None:
        super().__init__(events, media_type=MEDIA_TYPE, headers={"X-Accel-Buffering": "no"})
        self._events = events
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it until it is over or the client goes."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._ended()
            await self._events.aclose()


async def _either(*waited: "asyncio.Future[Any]") -> None:
    """Wait for the first of them, but not for long."""
    await asyncio.wait(waited, timeout=HEARTBEAT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
