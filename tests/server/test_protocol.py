"""Connections that say nothing are closed."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from penstock import Penstock
from penstock.server import serve
from penstock.server.serve import Bind, Serving, listen

HEAD = b"POST /api/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.fixture
async def port(app: Penstock) -> AsyncIterator[int]:
    taken = listen(Bind(host="127.0.0.1", port=0))
    serving = Serving(app, Bind(host="127.0.0.1", port=0), taken)
    running = asyncio.create_task(serving.run())
    async with asyncio.timeout(20):
        await serving.ready.wait()
    yield taken.getsockname()[1]
    serving.stop()
    await running


@pytest.mark.parametrize(
    ("limit", "sent"),
    [
        ("HEADER_SECONDS", b""),
        ("HEADER_SECONDS", b"GET /api/jobs HTTP/1.1\r\nHost: loc"),
        ("HEADER_SECONDS", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /api"),
        ("BODY_SECONDS", HEAD + b"Content-Length: 50\r\n\r\n{"),
        ("BODY_SECONDS", HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{"),
    ],
)
async def test_a_request_that_does_not_arrive_is_not_waited_for(
    port: int, monkeypatch: pytest.MonkeyPatch, limit: str, sent: bytes
) -> None:
    monkeypatch.setattr(serve, limit, 0.05)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    async with asyncio.timeout(4):
        assert b"201" not in await reader.read()
    writer.close()


async def test_headers_have_a_largest_size(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /api/jobs HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 1_000_000)
    async with asyncio.timeout(10):
        assert (await reader.readline()).startswith(b"HTTP/1.1 400")
    writer.close()


async def test_one_who_takes_their_time_between_requests_is_answered(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(3):
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        async with asyncio.timeout(10):
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200")
            await reader.readuntil(b"}")
    writer.close()


async def test_a_request_with_two_ends_is_refused_and_nothing_after_it_is_read(port: int) -> None:
    smuggled = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for head in (HEAD, HEAD.replace(b"/api/jobs", b"/jobs/new")):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        body = b"0\r\n\r\n" + smuggled
        length = b"Content-Length: %d\r\n" % len(body)
        writer.write(head + length + b"Transfer-Encoding: chunked\r\n\r\n" + body)
        async with asyncio.timeout(10):
            answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 400")
        assert b"connection: close" in answer.lower()
        assert answer.count(b"HTTP/1.1 ") == 1
        writer.close()
