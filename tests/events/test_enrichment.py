"""Enrichment behind a breaker: left out rather than waited for, and made up for later."""

from collections.abc import Sequence
from typing import Any

import pytest

from penstock import Penstock
from penstock.events.anew import MakingAnew
from penstock.events.consumer import Consumer, consumer_of
from penstock.events.enrichment import FAILURES, NotEnriched, enrich
from penstock.events.event import Event, Session
from penstock.events.lag import lags
from penstock.events.pool import catch_up
from penstock.events.rebuild import rebuild
from penstock.testing.clock import FakeClock


class Enriched:
    """Is enriched by a directory that answers or does not."""

    def __init__(self) -> None:
        self.answers = True
        self.critical = False
        self.asked = 0
        self.found: list[Any] = []

    async def look_up(self, name: str) -> str:
        self.asked += 1
        if not self.answers:
            raise ConnectionError
        return name.upper()

    async def prepare(self, events: Sequence[Event]) -> Sequence[Event]:
        found = await enrich("directory", self.look_up, "ada", critical=self.critical)
        self.found.append(found)
        return events

    def apply(self, tx: Any, events: Any) -> None: ...

    def reset(self, tx: Any, session: Session) -> None: ...


@pytest.fixture
def enriched() -> Enriched:
    return Enriched()


@pytest.fixture
def consumer(app: Penstock, enriched: Enriched) -> Consumer:
    made = consumer_of(enriched, name="people", tries=1)
    app.consumer.add(made)
    return made


async def happen(app: Penstock, session: str = "s") -> None:
    await app.events.append("tool_use", session_id=session)
    await catch_up(app)


async def unenriched(app: Penstock) -> int:
    [found] = await lags(app)
    return found.unenriched


async def test_what_answers_enriches(app: Penstock, consumer: Consumer, enriched: Enriched) -> None:
    await happen(app)
    assert (enriched.found, await unenriched(app)) == (["ADA"], 0)


async def test_a_failure_is_left_out_and_its_session_made_anew_once_it_answers(
    app: Penstock, consumer: Consumer, enriched: Enriched
) -> None:
    enriched.answers = False
    await happen(app)
    assert (enriched.found, await unenriched(app)) == ([None], 1)
    assert await MakingAnew(app, consumer).run_once() == 0, "it still does not answer"
    assert await unenriched(app) == 1
    enriched.answers = True
    assert await MakingAnew(app, consumer).run_once() == 1
    assert (enriched.found[-1], await unenriched(app)) == ("ADA", 0)


async def test_after_some_failures_nobody_asks_until_a_while_has_passed(
    app: Penstock, clock: FakeClock, consumer: Consumer, enriched: Enriched
) -> None:
    enriched.answers = False
    for n in range(FAILURES + 3):
        await happen(app, f"s{n}")
    assert enriched.asked == FAILURES
    clock.advance(30)
    await happen(app)
    await happen(app)
    assert enriched.asked == FAILURES + 1, "one is let through to see"
    enriched.answers = True
    clock.advance(30)
    await happen(app)
    await happen(app)
    assert enriched.asked == FAILURES + 3


async def test_what_is_critical_is_never_left_out(
    app: Penstock, consumer: Consumer, enriched: Enriched
) -> None:
    enriched.critical, enriched.answers = True, False
    await happen(app)
    assert (enriched.found, await unenriched(app)) == ([], 0)
    assert await app.read(lambda tx: tx.events.queries.rows("count_dead")) == [("people", 1)]


async def test_a_rebuild_is_not_done_by_halves(
    app: Penstock, consumer: Consumer, enriched: Enriched
) -> None:
    await happen(app)
    enriched.answers = False
    with pytest.raises(NotEnriched, match="directory does not answer"):
        await rebuild(app, consumer, Session("", "", "s"))


async def test_it_works_outside_a_consumer(enriched: Enriched) -> None:
    assert await enrich("directory", enriched.look_up, "ada") == "ADA"
    assert await enrich("directory", str.upper, "ada") == "ADA"
