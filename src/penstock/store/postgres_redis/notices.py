"""Hearing of changes by Redis in place of NOTIFY, which stands in while Redis is away."""

import asyncio
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar
from uuid import uuid4

import redis

from penstock.store.postgres.connect import Address
from penstock.store.postgres.notices import Notices
from penstock.store.postgres_redis.window import Window
from penstock.store.postgres_redis.wire import Away, Wire

T = TypeVar("T")
PAUSE_SECONDS = 0.005
QUIET_SECONDS = 15.0
DEAF_SECONDS = 2.0


class Dispatch:
    """What Redis does for one open store."""

    def __init__(self, wire: Wire, window: Window) -> None:
        self.wire = wire
        self.window = window
        self._notices: DispatchNotices | None = None
        self._asking: ThreadPoolExecutor | None = None

    def make_notices(self, address: Address, ring: Callable[[], None]) -> Notices:
        """Notices that go by Redis."""
        self._notices = DispatchNotices(address, ring, self)
        return self._notices

    def tell(self) -> None:
        """Have everybody hear what became ready."""
        if self._notices is not None:
            self._notices.tell()

    async def aside(self, question: Callable[[], T]) -> T:
        """Ask something of Redis without holding up the event loop."""
        if self._asking is None:
            self._asking = ThreadPoolExecutor(1, thread_name_prefix="penstock-window")
        return await asyncio.get_running_loop().run_in_executor(self._asking, question)

    def close(self) -> None:
        """Let the thread go."""
        asking, self._asking = self._asking, None
        if asking is not None:
            asking.shutdown()

    def doubt(self) -> None:
        """Have the windows filled before anything else is taken from them."""
        self.window.doubt()
        self.tell()


class DispatchNotices(Notices):
    """Tells by Redis; listens to Redis, and to PostgreSQL for those who have no Redis."""

    def __init__(self, address: Address, ring: Callable[[], None], dispatch: Dispatch) -> None:
        self._wire = dispatch.wire
        self._window = dispatch.window
        self._pass_on = ring
        self._name = uuid4().hex
        self._ended = False
        self._told = threading.Event()
        self._line: Any = None
        self._wire.on_away = self._told.set
        super().__init__(address, self._heard_from_postgres)
        self._threads = [
            threading.Thread(target=work, name=f"penstock-{name}", daemon=True)
            for name, work in (("dispatch", self._send), ("wake-ups", self._listen))
        ]
        for thread in self._threads:
            thread.start()

    def tell(self) -> None:
        """Have the others hear that something changed; safe from any thread."""
        self._told.set()

    def turn(self) -> bytes | None:
        """Nothing: it goes by Redis."""
        return None

    def stop(self) -> None:
        """Pass on what is left to tell, and stop listening."""
        self._ended = True
        self._told.set()
        self._interrupt()
        for thread in self._threads:
            thread.join()
        self._wire.on_away = _nothing
        super().stop()

    def _heard_from_postgres(self) -> None:
        """Somebody without Redis changed something, and could not say what became ready."""
        self._window.doubt()
        self._pass_on()

    def _send(self) -> None:
        while not self._ended:
            self._told.wait(self._wire.retry_in)
            told = self._told.is_set()
            self._told.clear()
            if self._wire.away:
                if told:
                    super().tell()
                if self._wire.retry_in == 0 and self._wire.try_again():
                    self._window.doubt()
                    self._told.set()
                    self._pass_on()
            else:
                try:
                    self._window.tell(self._name)
                except Away:
                    super().tell()
            # One message stands for all that happens meanwhile.
            time.sleep(PAUSE_SECONDS)

    def _listen(self) -> None:
        while not self._ended:
            try:
                self._line = self._wire.subscribe()
                self._pass_on()  # what happened while nobody listened
                while not self._ended:
                    self._hear(self._line)
            except (Away, redis.RedisError, OSError):
                self._hang_up()
                if not self._ended:
                    self._rest()

    def _rest(self) -> None:
        deadline = time.monotonic() + DEAF_SECONDS
        while not self._ended and time.monotonic() < deadline:
            time.sleep(PAUSE_SECONDS)

    def _hear(self, line: Any) -> None:
        """Pass on one change, and make sure now and then that the line is not dead."""
        if not line.can_read(QUIET_SECONDS):
            line.send_command("PING", check_health=False)
        answer = line.read_response()
        if answer[0] == b"message" and answer[2] != self._name.encode():
            self._pass_on()

    def _interrupt(self) -> None:
        """End a wait on the line; only the thread that listens may let go of it."""
        waiting: socket.socket | None = getattr(self._line, "_sock", None)
        if waiting is not None:
            with suppress(OSError):
                waiting.shutdown(socket.SHUT_RDWR)

    def _hang_up(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            with suppress(redis.RedisError, OSError):
                line.disconnect()


def _nothing() -> None:
    return None
