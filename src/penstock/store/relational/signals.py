"""Passing on 'something changed' from any thread to every event loop that listens."""

import asyncio
import contextlib
import threading


class Signal:
    """A bell that subscriptions hear; ringing it is cheap and safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: set[Listener] = set()

    def ring(self) -> None:
        """Wake every listener."""
        with self._lock:
            listeners = list(self._listeners)
        for listener in listeners:
            listener.hear()

    def subscribe(self) -> "Listener":
        """Listen from the running event loop."""
        listener = Listener(self)
        with self._lock:
            self._listeners.add(listener)
        return listener

    def drop(self, listener: "Listener") -> None:
        """Forget a listener."""
        with self._lock:
            self._listeners.discard(listener)


class Listener:
    """One subscription; rings between two waits are kept as one."""

    def __init__(self, signal: Signal) -> None:
        self._signal = signal
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()
        self._called = False

    def hear(self) -> None:
        """Called from any thread."""
        if not self._called:
            self._called = True
            with contextlib.suppress(RuntimeError):  # the loop was closed
                self._loop.call_soon_threadsafe(self._event.set)

    async def wait(self, timeout: float) -> bool:
        """True when something changed, false when the time ran out."""
        try:
            async with asyncio.timeout(timeout):
                await self._event.wait()
        except TimeoutError:
            return False
        self._event.clear()
        self._called = False
        return True

    def close(self) -> None:
        """Stop listening."""
        self._signal.drop(self)
