"""Telling every open tab that something changed: one subscription to the store for all of them."""

import asyncio
from collections.abc import AsyncIterator

import structlog

from penstock.model.errors import PenstockError
from penstock.server.problems import Refusal
from penstock.store.contract import Store

log = structlog.get_logger("penstock.server")

MAX_TABS = 500
PAUSE_SECONDS = 1.0
HEARTBEAT_SECONDS = 15.0
LIFE_SECONDS = 600.0


class Live:
    """The tabs that listen; the store is asked only while there are any."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._bells: set[asyncio.Event] = set()
        self._listening: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def tabs(self) -> int:
        """How many tabs listen."""
        return len(self._bells)

    def open(self) -> AsyncIterator[str]:
        """A stream of server-sent events for one more tab.

        It ends by itself after some minutes, so that whoever asks again is looked at again.
        """
        if len(self._bells) >= MAX_TABS:
            raise Refusal(503, f"{MAX_TABS} tabs are open already; close some.")
        return self._stream()

    def close(self) -> None:
        """End all streams, so that a server that stops need not wait for them."""
        self._closed = True
        for bell in self._bells:
            bell.set()
        if self._listening is not None:
            self._listening.cancel()

    async def _stream(self) -> AsyncIterator[str]:
        bell = asyncio.Event()
        self._bells.add(bell)
        if self._listening is None or self._listening.done():
            self._listening = asyncio.create_task(self._listen(), name="dashboard-live")
        loop = asyncio.get_running_loop()
        until = loop.time() + LIFE_SECONDS
        try:
            yield "retry: 2000\n\n"
            while not self._closed and loop.time() < until:
                try:
                    async with asyncio.timeout(HEARTBEAT_SECONDS):
                        await bell.wait()
                except TimeoutError:
                    yield ": still here\n\n"
                    continue
                bell.clear()
                yield "event: changed\ndata: 1\n\n"
        finally:
            self._bells.discard(bell)

    async def _listen(self) -> None:
        while self._bells:
            try:
                await self._relay()
            except PenstockError as error:
                log.warning("live_lost", error=str(error))
                await asyncio.sleep(PAUSE_SECONDS)

    async def _relay(self) -> None:
        subscription = self._store.subscribe()
        try:
            while self._bells:
                if await subscription.wait(HEARTBEAT_SECONDS):
                    for bell in self._bells:
                        bell.set()
                    await asyncio.sleep(PAUSE_SECONDS)
        finally:
            subscription.close()
