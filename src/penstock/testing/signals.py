"""Waiting until something happened, in any thread, without sleeping."""

import asyncio
import threading
from typing import Any

DEFAULT_SECONDS = 30.0


class Signals:
    """Named events: a handler calls `signals.send("started")`, a test awaits `signals.wait(...)`.

    What was sent before the wait began counts too, so the two need not race.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._sent: dict[str, list[Any]] = {}
        self._waiting: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()

    def send(self, name: str, value: Any = None) -> None:
        """Say that it happened; safe from any thread."""
        with self._changed:
            self._sent.setdefault(name, []).append(value)
            self._changed.notify_all()
            waiting = list(self._waiting)
        for loop, event in waiting:
            loop.call_soon_threadsafe(event.set)

    def values(self, name: str) -> list[Any]:
        """What was sent under a name so far, oldest first."""
        with self._changed:
            return list(self._sent.get(name, ()))

    async def wait(self, name: str, times: int = 1, timeout: float = DEFAULT_SECONDS) -> Any:
        """Return the latest value once it happened that often; TimeoutError names what did not."""
        event = asyncio.Event()
        entry = (asyncio.get_running_loop(), event)
        with self._changed:
            self._waiting.add(entry)
        try:
            async with asyncio.timeout(timeout):
                while len(self.values(name)) < times:
                    await event.wait()
                    event.clear()
        except TimeoutError:
            raise TimeoutError(self._missing(name, times, timeout)) from None
        finally:
            with self._changed:
                self._waiting.discard(entry)
        return self.values(name)[-1]

    def wait_in_thread(self, name: str, times: int = 1, timeout: float = DEFAULT_SECONDS) -> Any:
        """The same for handlers and tests that have no event loop."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._sent.get(name, ())) >= times, timeout):
                raise TimeoutError(self._missing(name, times, timeout))
            return self._sent[name][-1]

    def _missing(self, name: str, times: int, timeout: float) -> str:
        return (
            f"Signal {name!r} came {len(self._sent.get(name, ()))} times within {timeout:g} s, "
            f"not {times}."
        )
