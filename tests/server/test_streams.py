"""Streams of events: how they are kept open, and everything that ends them."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from penstock.model.store_errors import StoreUnavailable
from penstock.server import streams as streams_module
from penstock.server.problems import Refusal
from penstock.server.streams import STILL_HERE, Streams

Events = AsyncGenerator[bytes, None]


async def always() -> bool:
    return True


class Told:
    """Events as a test sends them; it knows whether they were closed."""

    def __init__(self, *first: bytes) -> None:
        self.first = first
        self.closed = False

    async def events(self) -> Events:
        try:
            for event in self.first:
                yield event
            await asyncio.Event().wait()
        finally:
            self.closed = True


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams_module, "HEARTBEAT_SECONDS", 0.01)


@pytest.mark.usefixtures("quick")
async def test_silence_is_filled_with_comments() -> None:
    told = Told(b"one")
    stream = Streams().paced(told.events(), always)
    assert [await anext(stream) for _ in range(3)] == [b"one", STILL_HERE, STILL_HERE]
    await stream.aclose()
    assert told.closed


@pytest.mark.usefixtures("quick")
async def test_a_stream_ends_after_its_life(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams_module, "LIFE_SECONDS", 0.05)
    told = Told(b"one")
    texts = [text async for text in Streams().paced(told.events(), always)]
    assert (texts[0], set(texts[1:]), told.closed) == (b"one", {STILL_HERE}, True)


async def test_a_stream_ends_with_its_events() -> None:
    async def two() -> Events:
        yield b"one"
        yield b"two"

    assert [text async for text in Streams().paced(two(), always)] == [b"one", b"two"]


async def test_all_streams_end_when_the_server_stops() -> None:
    streams, told = Streams(), Told(b"one")
    stream = streams.paced(told.events(), always)
    assert await anext(stream) == b"one"
    streams.end()
    async with asyncio.timeout(10):
        assert [text async for text in stream if text != STILL_HERE] == []
    assert told.closed


@pytest.mark.usefixtures("quick")
async def test_a_server_that_is_opened_again_has_streams_again() -> None:
    streams = Streams()
    streams.end()
    streams.begin()
    stream = streams.paced(Told().events(), always)
    assert [await anext(stream) for _ in range(2)] == [STILL_HERE] * 2
    await stream.aclose()


async def test_a_stream_ends_with_the_right_to_it() -> None:
    answers = iter([True, False])

    async def lasts() -> bool:
        return next(answers)

    told = Told(b"one", b"two", b"three")
    assert [text async for text in Streams().paced(told.events(), lasts)] == [b"one"]
    assert told.closed


async def test_a_store_that_is_lost_ends_the_stream() -> None:
    async def lost() -> Events:
        yield b"one"
        raise StoreUnavailable("sqlite", "gone")

    assert [text async for text in Streams().paced(lost(), always)] == [b"one"]


async def test_one_caller_cannot_take_the_streams_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams_module, "MAX_PER_CALLER", 2)
    monkeypatch.setattr(streams_module, "MAX_STREAMS", 3)
    streams = Streams()
    for caller in ("user:eve", "user:eve", "user:ann"):
        streams.open(caller, Told().events(), always)
    for caller, status in (("user:eve", 429), ("user:ben", 503)):
        with pytest.raises(Refusal) as refused:
            streams.open(caller, Told().events(), always)
        assert (refused.value.status, refused.value.headers["Retry-After"]) == (status, "5")
    assert streams.total == 3
