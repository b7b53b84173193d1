"""A receiver of webhooks on this machine that does as it is told, badly if need be."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

Behaviour = Callable[[asyncio.StreamWriter], Awaitable[None]]


class Request(NamedTuple):
    """What came in."""

    line: str
    headers: dict[str, str]
    body: bytes

    @property
    def delivery(self) -> str:
        """Which delivery it says it is."""
        return self.headers["X-Delivery-Id"]


class Receiver:
    """Answers 204, or behaves as `behaviours` say, one request after the other."""

    def __init__(self) -> None:
        self.got: list[Request] = []
        self.behaviours: list[Behaviour] = []
        self.port = 0
        self.tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hooks?from=penstock"

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            line, *rest = head.rstrip("\r\n").split("\r\n")
            headers = dict(each.split(": ", 1) for each in rest)
            body = await reader.readexactly(int(headers["Content-Length"]))
            self.got.append(Request(line, headers, body))
            behave = self.behaviours.pop(0) if self.behaviours else answering(204)
            await behave(writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort() if writer.is_closing() else writer.close()
            self.tasks.discard(task)


def answering(status: int, body: str = "", **headers: str) -> Behaviour:
    """An answer as it should be; `Retry_After="5"` is a header."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        told = {name.replace("_", "-"): value for name, value in headers.items()}
        told["Content-Length"] = str(len(body.encode()))
        head = "".join(f"{name}: {value}\r\n" for name, value in told.items())
        writer.write(f"HTTP/1.1 {status} So\r\n{head}\r\n{body}".encode())
        await writer.drain()

    return answer


def writing(*parts: bytes, then_hang: bool = False) -> Behaviour:
    """Whatever bytes these are, and perhaps nothing more for ever."""

    async def write(writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()
        if then_hang:
            await asyncio.Event().wait()

    return write


hanging = writing(then_hang=True)
hanging_up = writing()


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    """A receiver that listens on the loopback address."""
    receiver = Receiver()
    server = await asyncio.start_server(receiver.handle, "127.0.0.1", 0)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
        for task in [*receiver.tasks]:
            task.cancel()
        await asyncio.gather(*receiver.tasks, return_exceptions=True)
