"""A TCP proxy for faults: it holds up, delays, cuts and forgets what passes through it.

`with Proxy(server.url) as proxy: app = Penstock(proxy.url)`
"""

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit, urlunsplit

from penstock.model.errors import InvalidOption

CHUNK = 65_536
ABRUPTLY = struct.pack("ii", 1, 0)
"""SO_LINGER with no time to linger: closing sends a reset."""

T = TypeVar("T")
Matches = Callable[[bytes], bool]


class Proxy:
    """Stands between clients and one server on loopback, and has faults on request."""

    def __init__(self, target: str) -> None:
        address = urlsplit(target if "://" in target else f"//{target}")
        if address.hostname is None or address.port is None:
            raise InvalidOption("target", target, "a URL or an address with a host and a port")
        self.port = 0
        self._target = target
        self._server = (address.hostname, address.port)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._lines: set[_Line] = set()
        self._weather = _Weather()

    @property
    def url(self) -> str:
        """The URL this proxy was made for, leading through the proxy."""
        return self.url_for(self._target)

    def url_for(self, url: str) -> str:
        """A URL of the server, leading through the proxy instead."""
        parts = urlsplit(url)
        user, at, _ = parts.netloc.rpartition("@")
        return urlunsplit(parts._replace(netloc=f"{user}{at}127.0.0.1:{self.port}"))

    @property
    def connections(self) -> int:
        """How many clients are connected now."""
        return len(self._lines)

    def start(self) -> None:
        """Take connections, on a port of the system's choice."""
        self._thread.start()
        self.port = self._do(self._listen())

    def blackhole(self) -> None:
        """Forward nothing either way, and keep every connection; new ones get no answer."""
        self._do(self._weather.set(calm=False))

    def delay(self, seconds: float) -> None:
        """Let everything take so much longer, each way."""
        self._do(self._weather.set(delay=seconds))

    def heal(self) -> None:
        """Forward again at once, what was held up first."""
        self._do(self._weather.set(calm=True, delay=0.0))

    def reset(self) -> None:
        """Cut every connection on both sides with a reset; new ones are welcome."""
        self._do(self._cut_all())

    def drop_next_answer(self) -> threading.Event:
        """Forward the next request, then forget the server's answer to it and cut."""
        return self.drop_answer_after(lambda _: True)

    def drop_answer_after(self, matches: Matches) -> threading.Event:
        """The same for the next request whose bytes match; the event tells when it was done.

        `dropped = proxy.drop_answer_after(lambda sent: b"COMMIT" in sent)`
        """
        dropped = threading.Event()
        self._do(self._weather.set(lapse=_Lapse(matches, dropped)))
        return dropped

    def alter(self, rewrite: Callable[[bytes], bytes]) -> None:
        """Have every request pass as something else of the same length."""
        self._do(self._weather.set(rewrite=rewrite))

    def close(self) -> None:
        """Cut every connection and take no more."""
        if self._thread.is_alive():
            self._do(self._shut())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _do(self, call: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(call, self._loop).result()

    async def _listen(self) -> int:
        self._listener = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port: int = self._listener.sockets[0].getsockname()[1]
        return port

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = _Line(reader, writer, self._weather)
        self._lines.add(line)
        try:
            await line.run(self._server)
        finally:
            self._lines.discard(line)

    async def _cut_all(self) -> None:
        for line in [*self._lines]:
            await line.cut()

    async def _shut(self) -> None:
        self._listener.close()
        await self._cut_all()


class _Lapse:
    """One answer that is to be forgotten."""

    def __init__(self, matches: Matches, dropped: threading.Event) -> None:
        self.matches = matches
        self.dropped = dropped


class _Weather:
    """What all lines have to live with."""

    def __init__(self) -> None:
        self.calm = asyncio.Event()
        self.calm.set()
        self.delay = 0.0
        self.lapse: _Lapse | None = None
        self.rewrite: Callable[[bytes], bytes] = bytes

    async def set(
        self,
        calm: bool | None = None,
        delay: float | None = None,
        lapse: _Lapse | None = None,
        rewrite: Callable[[bytes], bytes] | None = None,
    ) -> None:
        """Change what is named."""
        if calm is not None:
            (self.calm.set if calm else self.calm.clear)()
        self.delay = self.delay if delay is None else delay
        self.lapse = lapse or self.lapse
        self.rewrite = rewrite or self.rewrite


class _Line:
    """One client's connection and its counterpart to the server."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, weather: _Weather
    ) -> None:
        self._client = (reader, writer)
        self._writers = [writer]
        self._weather = weather
        self._lapse: _Lapse | None = None
        self._running: asyncio.Task[None] | None = None

    async def run(self, server: tuple[str, int]) -> None:
        """Forward both ways until one side closes, or the line is cut."""
        self._running = asyncio.create_task(self._forward(server))
        try:
            await self._running
        except (asyncio.CancelledError, OSError):
            self._hang_up()
        for writer in self._writers:
            writer.close()

    async def cut(self) -> None:
        """Reset both sides."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])
        self._hang_up()

    async def _forward(self, server: tuple[str, int]) -> None:
        await self._weather.calm.wait()
        answers, requests = await asyncio.open_connection(*server)
        self._writers.append(requests)
        received, sent = self._client
        ways = [
            asyncio.create_task(self._carry(received, requests, self._look_at_request)),
            asyncio.create_task(self._carry(answers, sent, self._look_at_answer)),
        ]
        try:
            done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in done:
                way.result()
        finally:
            await _cancel(*ways)

    async def _carry(
        self,
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
        look: Callable[[bytes], bytes],
    ) -> None:
        clock = asyncio.get_running_loop().time
        waiting: asyncio.Queue[tuple[float, bytes | OSError]] = asyncio.Queue()

        async def read() -> None:
            data: bytes | OSError = b"."
            while isinstance(data, bytes) and data:
                try:
                    data = await source.read(CHUNK)
                except OSError as error:
                    data = error
                waiting.put_nowait((clock() + self._weather.delay, data))

        reading = asyncio.create_task(read())
        try:
            while True:
                due, data = await waiting.get()
                await asyncio.sleep(due - clock())
                await self._weather.calm.wait()
                if isinstance(data, OSError):
                    raise data
                if not data:
                    return
                sink.write(look(data))
                await sink.drain()
        finally:
            await _cancel(reading)

    def _look_at_request(self, data: bytes) -> bytes:
        lapse = self._weather.lapse
        if lapse is not None and lapse.matches(data):
            self._weather.lapse, self._lapse = None, lapse
        return self._weather.rewrite(data)

    def _look_at_answer(self, data: bytes) -> bytes:
        if self._lapse is not None:
            self._lapse.dropped.set()
            raise ConnectionAbortedError
        return data

    def _hang_up(self) -> None:
        for writer in self._writers:
            line: socket.socket = writer.get_extra_info("socket")
            if line.fileno() >= 0:
                line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABRUPTLY)
            writer.transport.abort()


async def _cancel(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
