"""One connection for all calls of an event loop: who gets which answer, and what ends it."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import redis

from penstock.store.redis.pipeline import Pipeline
from penstock.store.redis.server import Server
from proof.proxy import Proxy


@pytest.fixture
async def server(valkey_url: str) -> AsyncIterator[Server]:
    server = Server(valkey_url)
    await server.open()
    yield server
    await server.close()


@pytest.fixture
async def pipeline(server: Server) -> AsyncIterator[Pipeline]:
    pipeline = await server.pipeline()
    yield pipeline
    await pipeline.close()


async def test_each_call_gets_its_own_answers_whatever_was_sent_before(pipeline: Pipeline) -> None:
    trips = [pipeline.send([("ECHO", n), ("ECHO", -n)]) for n in range(100)]
    expected = [[b"%d" % n, b"%d" % -n] for n in range(100)]
    assert await asyncio.gather(*trips) == expected


async def test_the_answer_to_one_who_gave_up_is_nobody_elses(pipeline: Pipeline) -> None:
    given_up, waited_for = pipeline.send([("ECHO", "first")]), pipeline.send([("ECHO", "second")])
    given_up.cancel()
    assert await waited_for == [b"second"]


async def test_an_error_stands_in_the_place_of_its_answer(pipeline: Pipeline) -> None:
    unsendable, refused, answered = await pipeline.send(
        [("ECHO", "\ud800"), ("GET",), ("ECHO", "x")]
    )
    assert isinstance(unsendable, UnicodeEncodeError)
    assert isinstance(refused, redis.ResponseError)
    assert answered == b"x"
    [alone] = await pipeline.send([("ECHO", "\ud800")])
    assert isinstance(alone, UnicodeEncodeError)


async def test_an_answer_of_many_pieces_is_put_together(pipeline: Pipeline) -> None:
    long = b"x" * 5_000_000
    assert await pipeline.send([("ECHO", long), ("PING",)]) == [long, b"PONG"]


async def test_what_is_told_unasked_is_no_answer(server: Server) -> None:
    told: list[object] = []
    listening = await server.pipeline(told.append)
    await listening.send([("SUBSCRIBE", "news")])
    await server.ask("PUBLISH", "news", "a")
    assert await listening.send([("PING",)]) == [[b"pong", b""]]
    assert told == [[b"message", b"news", b"a"]]
    await listening.close()


async def test_silence_ends_a_line_and_all_its_calls(valkey_url: str) -> None:
    with Proxy(valkey_url) as proxy:
        server = Server(f"{proxy.url}&timeout=1")
        await server.open()
        pipeline = await server.pipeline()
        proxy.blackhole()
        trips = [pipeline.send([("PING",)]) for _ in range(3)]
        for trip in trips:
            with pytest.raises(redis.TimeoutError):
                await trip
        await pipeline.lost()
        with pytest.raises(redis.ConnectionError):
            await pipeline.send([("PING",)])
        await server.close()


async def test_a_line_that_is_left_still_answers(pipeline: Pipeline) -> None:
    trip = pipeline.send([("ECHO", "last")])
    pipeline.leave()
    assert await trip == [b"last"]
    await pipeline.lost()
    assert not pipeline.open


async def test_calls_at_once_share_the_first_connection(valkey_url: str) -> None:
    with Proxy(valkey_url) as proxy:
        server = Server(proxy.url)
        server.join()
        echoed = await asyncio.gather(*(server.ask("ECHO", n) for n in range(20)))
        assert echoed == [b"%d" % n for n in range(20)]
        assert proxy.connections == 1
        await server.close()
