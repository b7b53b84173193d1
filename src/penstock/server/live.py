"""Telling every open tab that something changed: one subscription to the store for all of them."""

import asyncio
from collections.abc import AsyncGenerator

import structlog

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
