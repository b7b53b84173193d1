"""What was recorded goes along with its installation, and is searched wherever it is."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from penstock import Penstock
from penstock.apps.recorder import conversations, insights, metrics
from penstock.apps.recorder.extension import recorder
from penstock.apps.recorder.reading import Sessions
from penstock.apps.recorder.writing import write
from penstock.events import catch_up
from penstock.operate.move import move
from penstock.operate.tables import Places
from penstock.testing import FakeClock
from tests.apps.recorder import goldens

CLOCK = FakeClock(goldens.NOON + 100_000)


def opened(url: str) -> Penstock:
    return Penstock(url, extensions=["events", recorder], clock=CLOCK)


async def seen(app: Penstock) -> list[Any]:
    """A session, its messages, and what a search finds."""
    sessions = Sessions(app)
    view = await sessions.get("tr-1")
    return [view, await sessions.messages(view.row.id), await sessions.search("cart")]


@pytest.mark.parametrize("route", [("sqlite", "postgres", "other"), ("sqlite", "other")])
async def test_a_session_is_the_same_after_a_move(
    tmp_path: Path, route: tuple[str, ...], request: pytest.FixtureRequest
) -> None:
    urls = {name: f"sqlite:///{tmp_path}/{name}.db" for name in ("sqlite", "other")}
    if "postgres" in route:
        urls["postgres"] = request.getfixturevalue("postgres_store_url")
    async with opened(urls[route[0]]) as app:
        golden = goldens.load(goldens.FOLDER / "claude_transcript.json")
        await write(app, list(goldens.captured(golden)))
        for consumer in (conversations, metrics, insights):
            await catch_up(app, consumer.NAME)
        before = await seen(app)
        assert len(before[2]) > 2
        known = app.extensions.known()
    for source, target in pairwise(route):
        await move(urls[source], urls[target], tables=Places(known=known), clock=CLOCK)
    async with opened(urls[route[-1]]) as app:
        assert await seen(app) == before
