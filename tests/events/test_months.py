"""On PostgreSQL the log has a table for each month, made before its events come."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest

from penstock import Penstock
from penstock.events.archive import make_months, month_of
from penstock.model.clock import SystemClock
from penstock.testing.clock import FakeClock
from tests.support.events import an_event, events_app


@pytest.fixture
async def app(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Penstock]:
    clock = FakeClock(SystemClock().now())
    async with events_app("postgres", request, clock, tmp_path) as app:
        yield app


async def counts(app: Penstock) -> dict[str, int]:
    """How many events are in each table of the log."""
    sql = "SELECT tableoid::regclass::text, count(*) FROM penstock.events_log GROUP BY 1 ORDER BY 1"
    with psycopg.connect(app.settings.url) as connection:
        found = connection.execute(sql).fetchall()
    return {name.rpartition(".")[2]: count for name, count in found}


def table(moment: int) -> str:
    """The table of a month."""
    return f"events_log_{datetime.fromtimestamp(moment / 1000, UTC):%Y_%m}"


async def test_this_month_and_three_more_are_made_once(app: Penstock) -> None:
    assert await make_months(app) == 4
    assert await make_months(app) == 0


async def test_events_go_to_their_month_and_wild_times_to_another_table(app: Penstock) -> None:
    now = app.store.clock.now()
    await make_months(app)
    await app.events.append(an_event(timestamp=now, event_id="now"))
    await app.events.append(an_event(timestamp=month_of(now)[1], event_id="next"))
    await app.events.append(an_event(timestamp=5, event_id="wild"))
    expected = {table(now): 1, table(month_of(now)[1]): 1, "events_log_other": 1}
    assert await counts(app) == expected


async def test_events_that_came_before_their_table_move_into_it(app: Penstock) -> None:
    now = app.store.clock.now()
    first = await app.events.append(an_event(timestamp=now, event_id="early"))
    assert await counts(app) == {"events_log_other": 1}
    await make_months(app)
    assert await counts(app) == {table(now): 1}
    again = await app.events.append(an_event(timestamp=now, event_id="early"))
    assert (again.sequence, again.created) == (first.sequence, False)
    assert (await app.events.get("early")).sequence == first.sequence


async def test_a_month_that_is_archived_has_no_table_any_more(app: Penstock) -> None:
    now = app.store.clock.now()
    begins, ends = month_of(month_of(now)[0] - 1)
    await app.events.append(an_event(timestamp=now, event_id="last but one"))
    bounds = f"FOR VALUES FROM ({begins}) TO ({ends})"
    with psycopg.connect(app.settings.url) as connection:
        connection.execute("SET search_path = penstock")
        made = f"CREATE TABLE {table(begins)} PARTITION OF events_log {bounds}"
        connection.execute(made.encode())
    await app.events.append(an_event(timestamp=begins, event_id="old"))
    await app.events.append(an_event(timestamp=now, event_id="last"))
    assert (await counts(app))[table(begins)] == 1
    assert len(await app.events.archive(now)) == 1
    with psycopg.connect(app.settings.url) as connection:
        asked = (f"penstock.{table(begins)}",)
        assert connection.execute("SELECT to_regclass(%s)", asked).fetchone() == (None,)
