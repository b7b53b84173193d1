"""One lifecycle for everything that runs beside the jobs: start, stop, run_once, wake."""

import asyncio
import time
from abc import ABC, abstractmethod

import structlog

log = structlog.get_logger("penstock.service")

SELDOM_SECONDS = 60.0


class Seldom:
    """Lets a warning through once a minute: a store that is away would fill a log otherwise."""

    def __init__(self) -> None:
        self._next_at = 0.0

    def __call__(self) -> bool:
        """Whether it is time to say it again."""
        now = time.monotonic()
        if now < self._next_at:
            return False
        self._next_at = now + SELDOM_SECONDS
        return True


class Service(ABC):
    """A pass and the loop that times it. Tests call `run_once`; starting twice is one start."""

    name = "service"

    def __init__(self, interval: float) -> None:
        self.interval = interval
        self._task: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._may_warn = Seldom()

    @abstractmethod
    async def run_once(self) -> None:
        """Do one bounded pass."""

    async def start(self) -> None:
        """Run passes until stopped."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"penstock-{self.name}")

    async def stop(self) -> None:
        """Stop and wait until the running pass has ended; stopping twice is one stop."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def wake(self) -> None:
        """Run the next pass now."""
        self._wake.set()

    async def _run(self) -> None:
        while True:
            try:
                await self.run_once()
            except Exception as error:
                self._warn(error)
            try:
                async with asyncio.timeout(self.interval):
                    await self._wake.wait()
            except TimeoutError:
                continue
            self._wake.clear()

    def _warn(self, error: Exception) -> None:
        if self._may_warn():
            log.warning("pass_failed", service=self.name, error=str(error))
