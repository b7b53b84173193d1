"""The mirror: the log as a stream for others, without gaps, and as long as it may be."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from penstock import Penstock
from penstock.events.event import NewEvent
from penstock.events.mirror import Mirror
from tests.events.streams import AT, Others, drain, envelope, fast_path, stream_of, streaming
from tests.support.places import Place

FEED = "cdc:events"


@pytest.fixture
def others(valkey_url: str) -> Others:
    return Others(valkey_url)


@pytest.fixture
async def app(place: Place, valkey_url: str, tmp_path: Path) -> AsyncIterator[Penstock]:
    async with streaming(place, valkey_url, tmp_path) as made:
        yield made


async def grow(app: Penstock, first: int, count: int) -> None:
    """Have the log hold more events."""
    numbers = range(first, first + count)
    events = [
        NewEvent(event_id=f"e{n}", timestamp=AT + n, event_type="trace", session_id="s")
        for n in numbers
    ]
    preparer = app.events.preparer
    await app.events.write(preparer.rows(events, AT))


async def mirror_all(mirror: Mirror) -> None:
    while await mirror.run_once():
        continue
    await mirror.trim()


def ids(others: Others) -> list[str]:
    return [entry["event_id"] for entry in others.entries(FEED)]


@pytest.mark.every_store
async def test_the_log_is_mirrored_by_its_sequences(app: Penstock, others: Others) -> None:
    await grow(app, 1, 5)
    await mirror_all(Mirror(app, stream_of(app)))
    found: Any = others.client.xrange(others.key(FEED))
    assert [key.decode() for key, _ in found] == [f"{n}-0" for n in range(1, 6)]
    entry = others.entries(FEED)[0]
    assert (entry["event_id"], entry["sequence"], entry["session_id"]) == ("e1", "1", "s")
    assert (entry["event_type"], entry["priority"]) == ("trace", "5")
    assert entry["timestamp"] == str(AT + 1)
    assert "payload" not in entry


async def test_another_that_mirrors_goes_on_where_the_stream_ends(
    app: Penstock, others: Others
) -> None:
    await grow(app, 1, 5)
    one, two = Mirror(app, stream_of(app)), Mirror(app, stream_of(app))
    assert await one.run_once() == 5
    assert await two.run_once() == 0
    await grow(app, 6, 5)
    assert (await one.run_once(), await two.run_once()) == (5, 5)  # both, and there once
    assert ids(others) == [f"e{n}" for n in range(1, 11)]


async def test_what_a_group_has_not_acknowledged_is_kept(app: Penstock, others: Others) -> None:
    key = others.key(FEED)
    others.client.xgroup_create(key, "quick", "0", mkstream=True)
    others.client.xgroup_create(key, "slow", "0")
    await grow(app, 1, 10)
    mirror = Mirror(app, stream_of(app))
    await mirror_all(mirror)
    for group, count in (("quick", 9), ("slow", 4)):
        others.client.xreadgroup(group, "c", {key: ">"}, count=count)
    others.client.xack(key, "quick", *(f"{n}-0" for n in range(1, 10)))
    others.client.xack(key, "slow", "1-0", "3-0", "4-0")
    await mirror.trim()
    assert ids(others) == [f"e{n}" for n in range(2, 11)]
    others.client.xack(key, "slow", "2-0")
    await mirror.trim()
    assert ids(others) == [f"e{n}" for n in range(5, 11)]


async def test_a_group_that_is_too_slow_is_told_where_in_the_log_to_go_on(
    app: Penstock, others: Others
) -> None:
    key = others.key(FEED)
    others.client.xgroup_create(key, "quick", "0", mkstream=True)
    others.client.xgroup_create(key, "slow", "0")
    await grow(app, 1, 10)
    mirror = Mirror(app, stream_of(app), most=10)
    await mirror_all(mirror)
    others.client.xreadgroup("quick", "c", {key: ">"}, count=9, noack=True)
    others.client.xreadgroup("slow", "c", {key: ">"}, count=3)
    others.client.xack(key, "slow", "1-0")
    await grow(app, 11, 5)
    await mirror_all(mirror)
    assert ids(others) == [f"e{n}" for n in range(10, 16)]
    told: Any = others.client.hgetall(others.key("cdc:events:resume"))
    assert told == {b"slow": b"1"}
    groups: Any = others.client.xinfo_groups(key)
    assert [group["name"] for group in groups] == [b"quick"]
    [(name, resume_after, _)] = await app.read(lambda tx: tx.events.queries.rows("fallen_groups"))
    assert (name, resume_after) == ("slow", 1)

    others.client.xgroup_create(key, "slow", "9-0")  # it has read the log up to there
    await mirror.trim()
    assert others.client.hgetall(others.key("cdc:events:resume")) == {}
    assert await app.read(lambda tx: tx.events.queries.rows("fallen_groups")) == []


async def test_it_never_holds_more_than_it_may(app: Penstock, others: Others) -> None:
    await grow(app, 1, 25)
    mirror = Mirror(app, stream_of(app), most=10)
    assert await mirror.run_once() == 10  # and not what would be trimmed at once
    await mirror_all(mirror)
    assert ids(others) == [f"e{n}" for n in range(16, 26)]
    await grow(app, 26, 3)
    await mirror_all(mirror)
    assert ids(others) == [f"e{n}" for n in range(19, 29)]


async def test_dead_letters_are_mirrored_once(app: Penstock, others: Others) -> None:
    others.add(envelope(1, payload="{"))
    async with fast_path(app) as path:
        await drain(path)
    mirror = Mirror(app, stream_of(app))
    assert (await mirror.mirror_letters(), await mirror.mirror_letters()) == (1, 0)
    [letter] = others.entries("telemetry:dlq")
    assert (letter["source"], letter["event_id"]) == ("ingest", "e1")
    assert "cannot be read" in letter["reason"]
