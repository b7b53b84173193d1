"""A log goes along with its installation: moved, copied, restored, and read wherever it is."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from threading import local

import pytest

from penstock import Penstock, Settings
from penstock.events import codec
from penstock.events.event import Event, Session
from penstock.events.log import EventFilter
from penstock.events.pool import catch_up
from penstock.events.rebuild import rebuild
from penstock.operate.backup import backup, restore
from penstock.operate.move import move
from penstock.operate.tables import Places
from penstock.testing.clock import FakeClock
from proof.tally import Tally, Totals, tally, totals
from tests.support.events import DAY, NOON, an_event

S1 = Session("", "shop", "s1")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(NOON + 100 * DAY)


@pytest.fixture
def urls(tmp_path: Path, postgres_store_url: str) -> dict[str, str]:
    return {
        "sqlite": f"sqlite:///{tmp_path}/work.db",
        "another sqlite": f"sqlite:///{tmp_path}/other.db",
        "postgres": postgres_store_url,
    }


@asynccontextmanager
async def opened(url: str, clock: FakeClock, tmp_path: Path) -> AsyncGenerator[Penstock, None]:
    """An application with a consumer, on a store that the test names."""
    told = {"archive": str(tmp_path / "archive")}
    settings = Settings(url=url, extension={"events": told})
    async with Penstock(settings=settings, extensions=[tally], clock=clock) as app:
        app.consumer.add(Tally().consumer())
        yield app


async def fill(app: Penstock) -> None:
    """A log with archived, erased and live events, all applied but the last."""
    for month in range(3):
        for n in range(20):
            told = {"amount": n, "text": f"{month} {n}" * 50}
            at = NOON + month * 31 * DAY + n
            event = an_event(f"s{n % 3}", event_id=f"{month}-{n}", timestamp=at, payload=told)
            await app.events.append(event)
    await catch_up(app)
    await app.events.archive(NOON + 40 * DAY)
    await app.events.erase(S1)
    await catch_up(app)
    await app.events.append(an_event("s2"))


async def state(app: Penstock) -> tuple[list[Event], Totals]:
    """The events and what was derived from them."""
    return await app.events.find(EventFilter(limit=1_000)), await totals(app)


async def check(app: Penstock, expected: tuple[list[Event], Totals]) -> None:
    """The log is as it was, goes on where it was, and stays what it is after a rebuild."""
    assert await state(app) == expected
    again = await app.events.append(an_event("s1", event_id="1-1", timestamp=NOON + 31 * DAY + 1))
    assert not again.created
    last = expected[0][-1].sequence
    assert (await app.events.append(an_event("s2", 5))).sequence > last
    before = (await totals(app))["/shop/s2"]
    await catch_up(app)
    after = await totals(app)
    assert after["/shop/s2"][:2] == (before[0] + 2, before[1] + 6)
    assert await rebuild(app, app.consumer.get("tally")) >= 3
    assert await totals(app) == after


@pytest.mark.parametrize(
    ("source", "target"),
    [("sqlite", "postgres"), ("postgres", "sqlite"), ("sqlite", "another sqlite")],
)
async def test_a_log_is_moved_with_all_that_belongs_to_it(
    urls: dict[str, str],
    source: str,
    target: str,
    clock: FakeClock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with opened(urls[source], clock, tmp_path) as app:
        await fill(app)
        expected = await state(app)
        known = app.extensions.known()
    await move(urls[source], urls[target], tables=Places(known=known), clock=clock)
    # The target's program may be of a version that brings other dictionaries.
    monkeypatch.setattr(codec, "_shipped", dict)
    monkeypatch.setattr(codec, "_per_thread", local())
    monkeypatch.setattr(codec, "_learnt", {})
    async with opened(urls[target], clock, tmp_path) as app:
        await check(app, expected)
        assert codec._learnt


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_copy_of_a_log_is_restored(
    urls: dict[str, str], kind: str, clock: FakeClock, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.db"
    async with opened(urls[kind], clock, tmp_path) as app:
        await fill(app)
        expected = await state(app)
        known = app.extensions.known()
        await backup(app.store, copy, extensions=known, clock=clock)
    target = "another sqlite" if kind == "postgres" else "postgres"
    await restore(copy, urls[target], extensions=known, clock=clock)
    async with opened(urls[target], clock, tmp_path) as app:
        await check(app, expected)
