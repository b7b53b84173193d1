"""The stream: the envelope of its entries, what it says of itself, and what is erased from it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from penstock import Penstock, Settings
from penstock.events.event import InvalidEvent, NewEvent
from penstock.events.ingest import ingest
from penstock.events.stream import Entry, Stream, check_stream, event_of, fields_of
from penstock.model.store_errors import UnsafeServer
from proof.servers import RedisServer
from tests.events.streams import (
    AT,
    Others,
    drain,
    envelope,
    events_of,
    fast_path,
    intake_of,
    stream_of,
    streaming,
    until,
)
from tests.support.places import Place

EVENT = NewEvent(
    event_id="e1",
    timestamp=AT,
    event_type="tool_use",
    session_id="s1",
    platform="cursor",
    payload={"a": [1, {"b": "ü"}]},
    metadata={"cwd": "/"},
    hook_type="PostToolUse",
    tenant_id="t",
    person="p",
    enqueued_at=AT + 1,
)


def entry_of(fields: list[str | bytes], entry_id: str = f"{AT}-0") -> Entry:
    return Entry(entry_id, [each if isinstance(each, bytes) else each.encode() for each in fields])


def test_an_event_comes_out_of_an_entry_as_it_went_in() -> None:
    assert event_of(entry_of(fields_of(EVENT, AT + 1))) == EVENT


def test_an_entry_that_names_an_id_and_no_time_takes_the_one_it_was_sent_at() -> None:
    entry = entry_of(["event_id", "e1", "event_type", "trace", "enqueued_at", str(AT + 5)])
    assert event_of(entry).timestamp == AT + 5


def test_an_entry_whose_id_is_beyond_all_times_is_an_event_all_the_same() -> None:
    event = event_of(entry_of(["event_type", "trace"], f"{2**63}-1"))
    assert event.event_id == event_of(entry_of(["event_type", "trace"], f"{2**63}-1")).event_id


@pytest.mark.parametrize("name", ["event_id", "timestamp", "payload", "metadata", "shoe"])
def test_what_is_no_utf8_is_refused_in_every_field(name: str) -> None:
    with pytest.raises(InvalidEvent):
        event_of(entry_of([name, b"\xff", "event_type", "trace"]))


async def test_a_batch_with_one_event_that_is_refused_is_refused_as_a_whole(
    place: Place, valkey_url: str, tmp_path: Path
) -> None:
    async with streaming(place, valkey_url, tmp_path) as app:
        with pytest.raises(InvalidEvent):
            await app.events.append_many([EVENT, NewEvent(event_type="")])
        assert Others(valkey_url).length() == 0
        assert [each.event_id for each in await app.events.append_many([EVENT])] == ["e1"]
        assert Others(valkey_url).length() == 1


async def test_a_server_that_keeps_nothing_is_refused_unless_it_is_allowed(
    place: Place, tmp_path: Path
) -> None:
    with RedisServer(options={"appendonly": "no"}) as server:
        async with streaming(place, server.url, tmp_path) as app:
            with pytest.raises(UnsafeServer, match="appendonly"):
                await app.events.append("trace")
        url = f"{server.url}?allow_volatile=true"
        async with streaming(place, url, tmp_path) as app:
            await app.events.append("trace")


async def test_the_doctor_says_that_the_append_only_file_held_what_was_not_sanitised(
    place: Place, valkey_url: str, tmp_path: Path
) -> None:
    async with streaming(place, valkey_url, tmp_path) as app:
        Others(valkey_url).add(envelope(1))
        check = await check_stream(app)
        assert check.detail.startswith("1 entry waits in {test-")
        assert "held what other programs added before it was sanitised" in check.detail
        assert "BGREWRITEAOF" in check.detail
    async with streaming(place, None, tmp_path) as app:
        assert "appended to the log itself" in (await check_stream(app)).detail


async def test_what_is_erased_is_in_no_stream_and_after_a_rewrite_in_no_file(
    place: Place, tmp_path: Path
) -> None:
    with RedisServer(options={"appendfsync": "always", "rdbcompression": "no"}) as server:
        url = f"{server.url}?namespace=n"
        async with streaming(place, url, tmp_path) as app:
            others = Others(url)
            others.add(*(envelope(n, event_id=f"trace-of-{n}") for n in range(5)))
            for name in ("telemetry:dlq", "cdc:events"):
                others.client.xadd(others.key(name), {"event_id": "trace-of-3"})
            stream: Stream = stream_of(app)
            async with fast_path(app) as path:
                await path.read()  # the entries are ours, and not yet acknowledged
                erased = await stream.erase(lambda fields: fields["event_id"] == "trace-of-3")
                assert erased == 3
                await stream.rewrite()
                files = [file for file in server.data.rglob("*") if file.is_file()]
                held = b"".join(file.read_bytes() for file in files)
                assert b"trace-of-2" in held
                assert b"trace-of-3" not in held
                assert others.pending() == 4
            async with fast_path(app) as path:
                await drain(path)
            assert [each.event_id[-1] for each in await events_of(app)] == ["0", "1", "2", "4"]
            assert (others.length(), others.pending()) == (0, 0)


async def test_a_stream_is_written_anew_once_however_much_is_erased_from_it(
    place: Place, valkey_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with streaming(place, valkey_url, tmp_path) as app:
        stream, others = stream_of(app), Others(valkey_url)
        with others.client.pipeline(transaction=False) as pipe:
            for n in range(9_000):
                pipe.xadd(others.key("telemetry:events"), {"event_id": f"e{n % 900}"})
            pipe.execute()
        calls: list[str] = []
        call = stream.call

        async def counted(script: str, *given: Any) -> Any:
            calls.append(script)
            return await call(script, *given)

        monkeypatch.setattr(stream, "call", counted)
        assert await stream.erase(lambda fields: fields["event_id"] != "e7") == 8_990
        assert calls == ["erase"]
        assert others.length() == 10


async def test_its_state_tells_what_waits_and_since_when(
    place: Place, valkey_url: str, tmp_path: Path
) -> None:
    async with streaming(place, valkey_url, tmp_path) as app:
        stream, others = stream_of(app), Others(valkey_url)
        assert (await stream.state()).length == 0
        first, *_ = others.add(*(envelope(n) for n in range(3)))
        async with fast_path(app) as path:
            await path.run_once(block_ms=1)
            others.add(envelope(4))
            await path.read()
            state = await stream.state()
        assert (state.length, state.unacknowledged) == (1, 1)
        assert state.oldest_at is not None
        assert state.oldest_at >= int(first.partition("-")[0])


async def test_ingest_does_all_of_it_until_it_is_cancelled(
    place: Place, valkey_url: str, tmp_path: Path
) -> None:
    async with streaming(place, valkey_url, tmp_path) as app:
        others = Others(valkey_url)
        others.add(*(envelope(n) for n in range(120)), envelope(120, payload="{"))
        intake_of(app).spool.append([EVENT])
        running = asyncio.create_task(ingest(app))
        await until(lambda: others.length("cdc:events") == 121 and others.length("telemetry:dlq"))
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert len(await events_of(app)) == 121
        assert others.client.keys(others.key("telemetry:events:fast-path-*")) == []


async def test_without_a_stream_ingest_recompresses_and_says_so(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    told = Settings(**place.settings, extension={"events": {"codec": "raw"}})
    async with Penstock(settings=told) as app:
        await app.events.append("trace", payload={"a": "b" * 500})
        running = asyncio.create_task(ingest(app))
        rows: list[tuple[str]] = [("raw",)]
        async with asyncio.timeout(20):
            while rows == [("raw",)]:
                await asyncio.sleep(0.005)
                rows = await app.read(
                    lambda tx: [(row[11],) for row in tx.events.queries.rows("every", EVERYTHING)]
                )
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert rows == [("zstd",)]
    assert "ingest_only_recompresses" in capsys.readouterr().out


EVERYTHING = {"after": 0, "tenant": None, "event_type": None, "platform": None, "limit": 100}
