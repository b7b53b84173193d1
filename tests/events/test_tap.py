"""`penstock events tap`: what a consumer gets, applies and gives up, as it happens."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from penstock import Penstock
from penstock.events import commands, feed
from penstock.events.consumer import UnknownConsumer
from penstock.events.pool import catch_up
from penstock.extension import Shown
from tests.events.counting import Counting, counting, numbered
from tests.support.places import Place

pytestmark = pytest.mark.parametrize("kind_of_store", ["sqlite", "postgres"])


@pytest.fixture
async def app(place: Place, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Penstock]:
    monkeypatch.setattr(commands, "LOOK_SECONDS", 0.01)
    async with Penstock(**place.settings) as made:
        yield made


async def test_it_shows_what_a_consumer_gets_then_what_became_of_it(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    looking = asyncio.Event()

    async def fetch(*asked: Any) -> feed.Fetched:
        looking.set()
        return await feed.fetch(*asked)

    monkeypatch.setattr(commands, "fetch", fetch)
    counts = counting(app, Counting(), types=["tool_use"], tries=1)
    await app.events.append_many(numbered(0))  # what was there before is not shown
    await catch_up(app)
    tapped = commands.tap(app, "count")
    first = asyncio.ensure_future(anext(tapped))
    await looking.wait()
    seen: list[Shown] = []
    await app.events.append("debug", session_id="s", payload={"n": 9})
    await app.events.append_many([*numbered(1), *numbered(2, bad=2, session="t")])
    seen += [await first, await anext(tapped)]
    assert [(each.document["what"], each.document["payload"]["n"]) for each in seen] == [
        ("gets", 1),
        ("gets", 2),
    ]
    await catch_up(app)
    after = {each.document["what"]: each for each in [await anext(tapped), await anext(tapped)]}
    assert after["applied"].document["payload"]["n"] == 1
    assert after["given up"].document["reason"] == "ValueError: event 2 is bad"
    assert "given up after 1 tries" in str(after["given up"].people)
    assert counts.seen == {"s": [0, 1]}, "it took nothing from the consumer"
    await tapped.aclose()  # type: ignore[attr-defined]


async def test_a_consumer_that_never_ran_is_unknown(app: Penstock) -> None:
    with pytest.raises(UnknownConsumer, match="'nobody'"):
        await anext(commands.tap(app, "nobody"))
