"""The fast path: from the stream into the log, nothing lost and nothing twice."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock import Penstock
from penstock.events import fast_path as module
from penstock.events.event import InvalidEvent, NewEvent
from penstock.model.store_errors import StoreUnavailable
from proof.servers import RedisServer
from tests.events.streams import (
    AT,
    Others,
    drain,
    envelope,
    events_of,
    fast_path,
    letters_of,
    streaming,
    until,
)
from tests.support.places import Place

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.fixture
def others(valkey_url: str) -> Others:
    return Others(valkey_url)


@pytest.fixture
async def app(place: Place, valkey_url: str, tmp_path: Path) -> AsyncIterator[Penstock]:
    async with streaming(place, valkey_url, tmp_path) as made:
        yield made


@pytest.mark.every_store
async def test_what_others_add_is_written_in_its_order_then_acknowledged_and_deleted(
    app: Penstock, others: Others
) -> None:
    others.add(*(envelope(n) for n in range(250)))
    async with fast_path(app) as path:
        await drain(path)
    events = await events_of(app)
    assert [event.event_id for event in events] == [f"e{n}" for n in range(250)]
    assert (events[7].payload, events[7].hook_type) == ({"n": 7}, "PostToolUse")
    assert (events[7].timestamp, events[7].session_id) == (AT + 7, "s1")
    assert (others.length(), others.pending()) == (0, 0)


async def test_an_appended_event_waits_in_the_stream_until_ingest_writes_it(
    app: Penstock, others: Others
) -> None:
    appended = await app.events.append("tool_use", session_id="s", payload={"a": 1})
    assert (appended.sequence, others.length(), await events_of(app)) == (0, 1, [])
    async with fast_path(app) as path:
        await drain(path)
    [event] = await events_of(app)
    assert (event.event_id, event.payload) == (appended.event_id, {"a": 1})


async def test_what_is_appended_passes_the_gate_before_it_reaches_the_stream(
    app: Penstock, others: Others
) -> None:
    await app.events.append("tool_use", payload={"text": f"use {SECRET} here"})
    [entry] = others.entries("telemetry:events")
    assert SECRET not in entry["payload"]


async def test_ingest_takes_out_secrets_before_its_first_write(
    app: Penstock, others: Others, tmp_path: Path
) -> None:
    others.add(envelope(1, payload=f'{{"text": "use {SECRET} here"}}'))
    others.add(envelope(2, event_id=SECRET), envelope(3, payload=f'{{"{SECRET}'))
    async with fast_path(app) as path:
        await drain(path)
    [event] = await events_of(app)
    assert "REDACTED" in event.payload["text"]
    assert len(await letters_of(app)) == 2
    await app.store.close()
    held = await asyncio.to_thread(lambda: [file.read_bytes() for file in tmp_path.iterdir()])
    assert SECRET.encode() not in b"".join(held)


def _nested(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


def _why_refused(payload: str) -> str:
    """Return the reason a nested payload is refused, which depends on this Python's limits."""
    try:
        msgspec.json.decode(payload)
    except RecursionError:
        return "cannot be read"
    return "is nested too deeply"


BAD = {
    "no JSON": ({"payload": "{"}, "cannot be read"),
    "no object": ({"payload": "[1]"}, "cannot be read"),
    "no type": ({"event_type": ""}, "has no event_type"),
    "a far future": ({"timestamp": str(10**15)}, "expected 1970 to 9999"),
    "before 1970": ({"timestamp": "-5"}, "expected 1970 to 9999"),
    "a time of many digits": ({"timestamp": "9" * 5_000}, "cannot be read"),
    "no time": ({"timestamp": "yesterday"}, "not ISO 8601"),
    "a long session": ({"session_id": "s" * 10_240}, "has a session_id over 512 bytes"),
    "a NUL": ({"session_id": "s\0"}, "has a NUL in its session_id"),
    "no UTF-8": ({"platform": b"\xff\xfe"}, "cannot be read ('utf-8' codec"),
    "too large": ({"payload": '{"a": "' + "x" * 2**20 + '"}'}, "events.event_limit"),
    "far too large": ({"payload": "x" * (2**20 + 70_000)}, "events.event_limit"),
    "deep": ({"payload": _nested(100_000)}, "cannot be read"),
    # Python 3.11 cannot decode this one; 3.13 decodes it, but cannot search it for secrets.
    "deep, yet readable": ({"payload": _nested(9_000)}, _why_refused(_nested(9_000))),
}


@pytest.mark.parametrize(("changed", "reason"), BAD.values(), ids=BAD.keys())
async def test_an_entry_that_cannot_be_kept_becomes_a_stub_at_once(
    changed: dict[str, Any], reason: str, app: Penstock, others: Others
) -> None:
    entry = envelope(1, **changed)
    others.add(envelope(0), entry, envelope(2))
    async with fast_path(app) as path:
        await drain(path)
    assert [event.event_id for event in await events_of(app)] == ["e0", "e2"]
    [letter] = await letters_of(app)
    parts = [
        part if isinstance(part, bytes) else part.encode()
        for pair in entry.items()
        for part in pair
    ]
    framed = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
    assert reason in letter["reason"]
    assert (letter["tries"], letter["document"], letter["event_id"]) == (1, None, "e1")
    assert letter["size"] == sum(map(len, parts))
    assert letter["sha256"] == hashlib.sha256(framed).hexdigest()
    assert others.length() == 0


async def test_an_unknown_platform_a_time_in_iso_and_fields_of_others_are_kept(
    app: Penstock, others: Others
) -> None:
    others.add(envelope(1, platform="abacus", timestamp="2023-11-14T22:13:20Z", shoe="left"))
    async with fast_path(app) as path:
        await drain(path)
    [event] = await events_of(app)
    assert (event.platform, event.timestamp) == ("abacus", AT)
    assert event.metadata == {"shoe": "left"}


async def test_an_entry_without_id_and_time_is_the_same_event_when_it_is_read_again(
    app: Penstock, others: Others
) -> None:
    [entry_id] = others.add({"event_type": "trace"})
    async with fast_path(app) as first:
        await first.write(first.prepare(await first.read()))  # and never acknowledged
    async with fast_path(app) as second:
        await drain(second)
    [event] = await events_of(app)
    assert event.timestamp == int(entry_id.partition("-")[0])
    assert (others.length(), others.pending()) == (0, 0)


@pytest.mark.every_store
async def test_a_batch_that_was_written_and_not_acknowledged_is_there_once(
    app: Penstock, others: Others
) -> None:
    others.add(*(envelope(n) for n in range(5)))
    async with fast_path(app) as first:
        await first.write(first.prepare(await first.read()))
    assert len(await events_of(app)) == 5
    others.add(envelope(5))
    async with fast_path(app) as second:
        await drain(second)
    assert [event.event_id for event in await events_of(app)] == [f"e{n}" for n in range(6)]
    assert (others.length(), others.pending()) == (0, 0)


async def test_another_content_under_a_known_id_is_a_letter_that_can_be_replayed(
    app: Penstock, others: Others
) -> None:
    others.add(envelope(1), envelope(1, payload='{"n": "another"}'), envelope(2))
    async with fast_path(app) as path:
        await drain(path)
    assert [event.event_id for event in await events_of(app)] == ["e1", "e2"]
    [letter] = await letters_of(app)
    assert "with another content" in letter["reason"]
    assert '"n":"another"' in letter["document"]
    assert letter["tries"] == 1


async def test_an_event_that_fails_three_times_becomes_a_letter_and_the_others_are_written(
    app: Penstock, others: Others, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.0)
    write, tries = app.events.write, []

    async def failing(rows: Any, **how: Any) -> Any:
        if any(row.event_id == "e1" for row in rows):
            tries.append(len(rows))
            raise RuntimeError("the index is broken")
        return await write(rows, **how)

    monkeypatch.setattr(app.events, "write", failing)
    others.add(*(envelope(n) for n in range(3)))
    async with fast_path(app) as path:
        await drain(path)
    assert tries == [3, 1, 1, 1]
    assert [event.event_id for event in await events_of(app)] == ["e0", "e2"]
    [letter] = await letters_of(app)
    assert (letter["tries"], letter["event_id"]) == (3, "e1")
    assert "the index is broken" in letter["reason"]


async def test_a_store_that_is_away_holds_ingest_back_and_the_batch_is_kept(
    app: Penstock, others: Others, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.001)
    pauses: list[float] = []
    sleep, write = asyncio.sleep, app.events.write

    async def resting(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    async def away(rows: Any, **how: Any) -> Any:
        if len(pauses) < 6:
            raise StoreUnavailable("sqlite:///x", "it is locked")
        return await write(rows, **how)

    monkeypatch.setattr(module.asyncio, "sleep", resting)
    monkeypatch.setattr(app.events, "write", away)
    others.add(*(envelope(n) for n in range(3)))
    async with fast_path(app) as path:
        await path.run_once()
        assert path.errors == 6
        assert path.failing_since is None
    assert pauses[:6] == [0.001 * 2**n for n in range(6)]
    assert len(await events_of(app)) == 3
    assert await letters_of(app) == []


async def test_entries_of_a_consumer_that_died_are_taken_over(
    app: Penstock, others: Others, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LEASE_MS", 1)
    others.add(*(envelope(n) for n in range(3)))
    async with fast_path(app, "elsewhere") as dead:
        await dead.read()
    async with fast_path(app) as path:
        assert await path.run_once() == 0
        batch = path.prepare(await path.take_over())
        await path.write(batch)
        await path.acknowledge(batch)
    assert len(await events_of(app)) == 3
    assert (others.length(), others.pending()) == (0, 0)


async def test_entries_of_a_consumer_that_lives_are_left_to_it(
    app: Penstock, others: Others, monkeypatch: pytest.MonkeyPatch
) -> None:
    others.add(envelope(1))
    async with fast_path(app) as one, fast_path(app) as two:
        assert (one.name, two.name) == ("fast-path-1", "fast-path-2")
        assert len(await one.read()) == 1
        monkeypatch.setattr(module, "LEASE_MS", 0)
        assert await two.take_over() == []


async def test_the_name_of_a_process_that_died_on_this_machine_is_free_at_once(
    app: Penstock, others: Others
) -> None:
    host = module.socket.gethostname()
    key = others.key("telemetry:events:fast-path-1")
    others.client.set(key, f"{host}:999999999:01M", px=60_000)
    others.client.set(others.key("telemetry:events:fast-path-2"), "another-host:1:01M", px=60_000)
    async with fast_path(app) as one, fast_path(app) as two:
        assert (one.name, two.name) == ("fast-path-1", "fast-path-3")
    assert others.client.get(key) is None


async def test_entries_whose_delivery_was_lost_are_read_again(
    app: Penstock, others: Others
) -> None:
    others.add(*(envelope(n) for n in range(3)))
    async with fast_path(app) as path:
        assert len(await path.read()) == 3
        [lost] = others.add(envelope(3))
        key = others.key("telemetry:events")
        others.client.xreadgroup("processors", path.name, {key: ">"})  # the answer never came
        path._after = "0-0"
        assert [entry.id for entry in await path.read()] == [lost]


async def test_an_entry_that_was_deleted_while_we_had_it_is_acknowledged(
    app: Penstock, others: Others
) -> None:
    [entry_id] = others.add(envelope(1))
    async with fast_path(app) as first:
        await first.read()
    others.client.xdel(others.key("telemetry:events"), entry_id)
    async with fast_path(app) as second:
        await drain(second)
    assert others.pending() == 0
    assert await letters_of(app) == []


@pytest.mark.thorough
async def test_all_stages_run_at_once_and_their_times_are_told(
    app: Penstock, others: Others
) -> None:
    async with fast_path(app) as path:
        running = asyncio.create_task(path.run())
        for first in (0, 250):  # the whole is the time between two acknowledgements
            others.add(*(envelope(n) for n in range(first, first + 250)))
            await until(lambda: not others.length())
        await path.tell()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    rows = await app.read(lambda tx: tx.events.queries.rows("ingests"))
    assert [(name, events) for name, _, _, _, events, *_ in rows] == [("fast-path-1", 500)]
    stages = {"read", "parse", "compress", "write", "acknowledge", "whole"}
    percentiles = path.stages.percentiles()
    assert set(percentiles) == {*stages, "parse_cpu", "compress_cpu"}
    assert percentiles["compress_cpu"][2] <= percentiles["compress"][2]
    assert [event.event_id for event in await events_of(app)] == [f"e{n}" for n in range(500)]


async def test_a_server_that_comes_back_empty_is_used_without_ado(
    place: Place, tmp_path: Path
) -> None:
    with RedisServer() as server:
        others = Others(f"{server.url}?namespace=n")
        async with (
            streaming(place, f"{server.url}?namespace=n", tmp_path) as app,
            fast_path(app) as path,
        ):
            others.add(envelope(1))
            await drain(path)
            server.ask("FLUSHALL")
            assert await path.run_once() == 0  # it makes the group anew
            others.add(envelope(2))
            await drain(path)
            assert len(await events_of(app)) == 2


async def test_a_gate_that_breaks_leaves_a_stub_and_nothing_else(
    place: Place, valkey_url: str, tmp_path: Path
) -> None:
    def broken(event: NewEvent) -> NewEvent:
        if event.payload:
            raise ZeroDivisionError("the gate is broken")
        if event.event_id == "e2":
            raise InvalidEvent("", "is known by something private")
        return event

    async with streaming(place, valkey_url, tmp_path) as app:
        app.events.preparer.gate = broken
        Others(valkey_url).add(envelope(1), envelope(2))
        async with fast_path(app) as path:
            await drain(path)
        letters = await letters_of(app)
        assert {letter["event_id"] for letter in letters} == {"e1", ""}
        assert {letter["document"] for letter in letters} == {None}
        # What somebody's gate says of an event may hold what it should have taken out.
        assert {letter["reason"] for letter in letters} == {"ZeroDivisionError"}
