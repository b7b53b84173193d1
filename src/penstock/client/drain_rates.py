"""How fast queues have been worked off lately, read in the background and kept for a while."""

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from penstock.model.errors import PenstockError

if TYPE_CHECKING:
    from penstock.client.app import Penstock

WINDOW_MS = 60_000
TRUST_SECONDS = 5.0


class DrainRates:
    """Jobs per second that left each queue in the last minute."""

    def __init__(self, app: "Penstock") -> None:
        self._app = app
        self._per_second: dict[str, float] = {}
        self._read_at = float("-inf")
        self._reading: asyncio.Task[None] | None = None

    def of(self, queue: str) -> float | None:
        """The rate as it was last read; none where nothing has left the queue."""
        return self._per_second.get(queue)

    def forget(self) -> None:
        """Begin afresh."""
        self._per_second = {}
        self._read_at = float("-inf")

    def look(self) -> None:
        """Read them again in the background, if they are old."""
        reading = self._reading is not None and not self._reading.done()
        if not reading and self._old:
            self._reading = asyncio.get_running_loop().create_task(self.read())

    async def read(self) -> None:
        """Read them, if they are old; a store that does not answer leaves them as they were."""
        if not self._old:
            return
        self._read_at = time.monotonic()
        with suppress(PenstockError):
            windows = await self._app.store.metrics.window(WINDOW_MS)
            left: dict[str, float] = {}
            for window in windows[1:]:
                ended = window.completed + window.cancelled + window.dead
                left[window.queue] = left.get(window.queue, 0.0) + ended * 1000 / WINDOW_MS
            self._per_second = {queue: rate for queue, rate in left.items() if rate}

    @property
    def _old(self) -> bool:
        return time.monotonic() - self._read_at >= TRUST_SECONDS

    async def close(self) -> None:
        """Wait for a reading that is under way."""
        reading, self._reading = self._reading, None
        if reading is not None and reading.get_loop() is asyncio.get_running_loop():
            await reading
