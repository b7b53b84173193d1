"""What is asked of one tenant, person or session reads its index, however large the log is."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from penstock import Penstock
from penstock.events.extension import TABLES
from penstock.events.pipeline import Pipeline
from penstock.testing.clock import FakeClock
from tests.support.events import NOON, an_event, events_app

MANY = 3_000
ASKED: dict[str, Any] = {
    "tenant": "small",
    "person": None,
    "platform": None,
    "session_id": None,
    "event_type": None,
    "after": 0,
    "since": 0,
    "until": 2 * NOON,
    "most": 100,
    "limit": 500,
}
PLANS: dict[str, tuple[dict[str, Any], str]] = {
    "tenant_to_erase": ({}, "tenant"),
    "person_to_erase": ({"tenant": None, "person": "ada"}, "person"),
    "session_to_erase": ({"session_id": "s7", "tenant": ""}, "session"),
    "of_tenant": ({}, "tenant"),
    "last_of_tenant": ({}, "tenant"),
    "live_rows_of_tenant": ({}, "tenant"),
    "count_sessions": ({}, "session"),
}


@pytest.fixture(params=["sqlite", "postgres"])
async def app(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Penstock]:
    """A log of which a thousandth is a small tenant's."""
    async with events_app(request.param, request, FakeClock(NOON), tmp_path, codec="raw") as app:
        told = [
            an_event(
                f"s{n % 100}",
                tenant_id="" if n % 1_000 else "small",
                person="ada" if n % 1_000 == 1 else None,
            )
            for n in range(MANY)
        ]
        await app.events.append_many(told)
        if request.param == "postgres":
            with psycopg.connect(app.settings.url, autocommit=True) as connection:
                connection.execute("ANALYZE penstock.events_log")
        yield app


async def test_each_query_reads_its_index_and_nothing_else(app: Penstock) -> None:
    for name, (changed, index) in PLANS.items():
        plan = await plan_of(app, name, ASKED | changed)
        reading = [line for line in plan if "events_log" in line]
        assert any(index in line for line in reading), (name, plan)
        assert not [line for line in reading if line.startswith("SCAN events_log")], (name, plan)
        assert not [line for line in plan if "Seq Scan" in line], (name, plan)


async def plan_of(app: Penstock, name: str, asked: dict[str, Any]) -> list[str]:
    """How the store goes about a query."""
    store: Any = app.table_store("events")
    queries = store.queries(TABLES)
    sql = queries[name]
    explain = "EXPLAIN QUERY PLAN " if isinstance(sql, str) else b"EXPLAIN "
    queries["explained"] = explain + sql
    rows = await app.read(lambda tx: tx.events.queries.rows("explained", asked))
    return [str(row[-1]).strip() for row in rows]


async def test_sessions_are_counted_up_to_a_limit(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Pipeline(app)._count_sessions
    assert await counted() == 100
    monkeypatch.setattr("penstock.events.pipeline.COUNTED_TO", 50)
    assert await counted() is None
