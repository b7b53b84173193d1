import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from proof.bench.wire import Wire

CREATED = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}"
REFUSED = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"


class Server:
    """Gives every request the same answer."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self.talks: list[asyncio.Task[None] | None] = []
        self.requests: list[bytes] = []

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.talks.append(asyncio.current_task())
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.requests.append(head + await reader.readexactly(len(b"body")))
                writer.write(self._answer)
        except asyncio.IncompleteReadError:
            writer.close()
            await writer.wait_closed()


@asynccontextmanager
async def wired(server: Server) -> AsyncGenerator[Wire, None]:
    async with await asyncio.start_server(server.talk, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        wire = Wire(f"http://127.0.0.1:{port}", "/api/jobs", {"Authorization": "me"}, b"body")
        try:
            yield wire
        finally:
            await wire.close()
            await asyncio.gather(*(talk for talk in server.talks if talk is not None))


async def test_one_connection_is_enough_for_requests_that_follow_each_other() -> None:
    server = Server(CREATED)

    async with wired(server) as wire:
        await wire.send()
        await wire.send()

    assert len(server.talks) == 1
    assert len(server.requests) == 2
    assert server.requests[0].startswith(b"POST /api/jobs HTTP/1.1\r\nHost: 127.0.0.1:")
    assert server.requests[0].endswith(b"Content-Length: 4\r\nAuthorization: me\r\n\r\nbody")


async def test_requests_at_once_do_not_wait_for_each_other() -> None:
    server = Server(CREATED)

    async with wired(server) as wire:
        await asyncio.gather(wire.send(), wire.send())

    assert len(server.talks) == 2


async def test_an_answer_that_is_no_success_ends_the_measurement() -> None:
    async with wired(Server(REFUSED)) as wire:
        with pytest.raises(RuntimeError, match="401 Unauthorized"):
            await wire.send()
