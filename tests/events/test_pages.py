"""The pages of events: the pipeline drawn, the log, and dead letters with their replay."""

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from penstock import Penstock
from penstock.events import feed
from penstock.events.picture import narrow, wide
from penstock.events.pool import catch_up
from penstock.events.stream import StreamState
from penstock.server.access.identity import Scope
from tests.events.counting import Counting, Resetting, counting, numbered
from tests.server.dashboard.conftest import Browser, browser, http, log_in, server  # noqa: F401
from tests.support.places import Place


@pytest.fixture
async def app(place: Place) -> AsyncIterator[Penstock]:
    async with Penstock(**place.settings, extensions=["events"]) as made:
        yield made


@pytest.fixture
async def broken(app: Penstock) -> Counting:
    """A consumer that has given up one event of three, and one that nobody runs."""
    counts = counting(app, Resetting())
    counting(app, Counting(), "later", role="optional")
    await app.events.append_many(numbered(1, 2, 3, bad=2, session="<s>"))
    await feed.declare(app, app.consumer.get("later"))
    await catch_up(app, "count")
    counts.broken = False
    return counts


async def test_the_pipeline_is_drawn_with_depth_lag_and_level(
    broken: Counting,
    browser: Browser,  # noqa: F811
) -> None:
    text = await browser.text("events")
    assert "<title>Pipeline · Penstock</title>" in text
    drawn = re.findall(r"<svg width.*?</svg>", text, re.DOTALL)
    assert len(drawn) == 2, "one for a desk and one for a phone"
    for each in drawn:
        assert "up to sequence 3" in each
        assert re.search(r"3 behind, [\d.]+ ", each)
        assert "1 given up" in each
        assert "pressure is green" in each
    assert 'hx-trigger="every 2s"' in text


async def test_stages_sizes_and_how_busy_consumers_are_stand_below(
    app: Penstock,
    broken: Counting,
    browser: Browser,  # noqa: F811
) -> None:
    await app.series.flush()
    text = await browser.text("events")
    stages = re.findall(r'<th scope="row">count</th><td data-label="Stage">(\w+)</td>', text)
    assert set(stages) == {"fetch", "prepare", "apply"}
    assert len(re.findall(r'data-label="p99">[\d,.]+ ms<', text)) == len(stages)
    assert "files of the archive" in text
    assert re.search(r'the log <span class="quiet right">[\d,]+ MB<', text)
    assert 'data-label="Busy"' in text


async def test_a_consumer_is_paused_and_goes_on(
    app: Penstock,
    broken: Counting,
    browser: Browser,  # noqa: F811
) -> None:
    answer = await browser.send("events", {"name": "count", "action": "pause"})
    text = await browser.follow(answer)
    assert "count is paused." in text
    assert 'value="resume" aria-label="Resume count"' in text
    await browser.send("events", {"name": "count", "action": "resume"})
    assert not (await app.events.pipeline.consumer("count")).paused
    wrong = await browser.follow(await browser.send("events", {"name": "count", "action": "x"}))
    assert "one of: pause, resume" in wrong


async def test_a_dead_letter_is_replayed_from_its_page(
    app: Penstock,
    broken: Counting,
    browser: Browser,  # noqa: F811
) -> None:
    [letter] = await app.events.dead.list()
    text = await browser.text("events/dead?source=count")
    assert "ValueError: event 2 is bad" in text
    form = {"letter": letter.id, "action": "replay"}
    told = await browser.follow(await browser.send("events/dead/settle", form))
    assert "3 events of" in told
    assert broken.seen == {"<s>": [1, 2, 3]}
    assert "No event was given up." in await browser.text("events/dead")


async def test_what_fails_again_is_said_and_what_is_dropped_is_gone(
    app: Penstock,
    broken: Counting,
    browser: Browser,  # noqa: F811
) -> None:
    broken.broken = True
    [letter] = await app.events.dead.list()
    form = {"letter": letter.id, "action": "replay"}
    told = await browser.follow(await browser.send("events/dead/settle", form))
    assert "event 2 is bad" in told
    form["action"] = "drop"
    told = await browser.follow(await browser.send("events/dead/settle", form))
    assert "is dropped." in told
    assert await app.events.dead.list() == []


async def test_the_log_is_listed_and_narrowed(
    app: Penstock,
    broken: Counting,
    browser: Browser,  # noqa: F811
) -> None:
    await app.events.append("debug", session_id="other")
    text = await browser.text("events/log")
    sequences = [int(n) for n in re.findall(r'<tr id="event-(\d+)">', text)]
    assert sequences == sorted(sequences, reverse=True)
    assert len(sequences) == 4
    assert "&lt;s&gt;" in text
    one = await browser.text("events/log?session_id=other")
    assert len(re.findall(r'<tr id="event-', one)) == 1
    ordered = await browser.text("events/log?session_id=%3Cs%3E&after=0")
    assert re.findall(r'<tr id="event-(\d+)">', ordered) == ["1", "2", "3"]


async def test_a_tenant_sees_its_own_and_not_the_pipeline(
    app: Penstock,
    log_in: Any,  # noqa: F811
) -> None:
    await app.events.append("debug", session_id="ours", tenant_id="north")
    await app.events.append("debug", session_id="theirs", tenant_id="south")
    bound: Browser = await log_in(Scope.READ, tenant_id="north")
    text = await bound.text("events/log")
    assert "ours" in text
    assert "theirs" not in text
    assert (await bound.open("events")).status_code == 403
    assert "Dead events" in await bound.text("events/dead")


async def test_the_overview_says_what_is_wrong(
    broken: Counting,
    browser: Browser,  # noqa: F811
) -> None:
    text = await browser.text("")
    assert "Nobody runs later, for which events wait" in text


async def test_a_stream_stands_in_front_of_the_log_in_the_picture(
    app: Penstock, broken: Counting
) -> None:
    state = await app.events.pipeline.state()
    stream = StreamState(length=1_200, unacknowledged=0, oldest_at=None, letters=0)
    for drawn in (wide(state, stream), narrow(state, stream)):
        assert drawn.boxes[0].second == "1,200 wait for ingest"
        right = max(box.x + box.width for box in drawn.boxes)
        below = max(box.y + drawn.high for box in drawn.boxes)
        assert (right < drawn.width, below < drawn.height) == (True, True)
