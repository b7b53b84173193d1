"""SQL over all events, live and archived, which can change nothing and see nothing else."""

import fcntl
import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from penstock import Penstock
from penstock.events import query
from penstock.events.event import Session
from penstock.events.query import InvalidQuery
from penstock.testing.clock import FakeClock
from tests.support.events import DAY, NOON, an_event, events_app


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(NOON + 100 * DAY)


async def fill(app: Penstock) -> None:
    """An event in each of three months, of two tenants; the first month is archived."""
    for month in range(3):
        await app.events.append(
            an_event(
                f"s{month}",
                10**month,
                event_id=f"e{month}",
                timestamp=NOON + month * 31 * DAY,
                tenant_id="acme" if month < 2 else "beta",
                metadata={"cwd": "/it's"},
                hook_type="Stop",
            )
        )
    assert len(await app.events.archive(NOON + 40 * DAY)) == 1


async def test_live_and_archived_events_are_one_table(app: Penstock) -> None:
    await fill(app)
    answer = await app.events.query(
        "SELECT event_id, CAST(payload->>'amount' AS int) AS amount, hook_type, cwd, event_hour,"
        " metadata->>'cwd' AS told, event_date::text AS day FROM events ORDER BY sequence"
    )
    assert answer.columns == ["event_id", "amount", "hook_type", "cwd", "event_hour", "told", "day"]
    rest = ("Stop", "/it's", 12, "/it's")
    days = ["2026-01-01", "2026-02-01", "2026-03-04"]
    assert answer.rows == [(f"e{n}", 10**n, *rest, day) for n, day in enumerate(days)]


async def test_a_table_may_be_named_twice(app: Penstock) -> None:
    await fill(app)
    sql = "SELECT count(*) FROM events a JOIN raw_traces b USING (event_id)"
    assert (await app.events.query(sql)).rows == [(3,)]


async def test_a_question_is_narrowed_by_time_and_tenant(app: Penstock) -> None:
    await fill(app)
    sql = "SELECT event_id FROM events ORDER BY 1"
    assert (await app.events.query(sql, tenant="acme")).rows == [("e0",), ("e1",)]
    assert (await app.events.query(sql, tenant="it's")).rows == []
    assert (await app.events.query(sql, since=NOON + DAY)).rows == [("e1",), ("e2",)]
    assert (await app.events.query(sql, until=NOON + DAY)).rows == [("e0",)]


async def test_long_answers_are_cut_and_say_so(app: Penstock) -> None:
    await fill(app)
    answer = await app.events.query("SELECT event_id FROM events ORDER BY 1", limit=2)
    assert (answer.rows, answer.more) == ([("e0",), ("e1",)], True)


async def test_erased_events_are_not_seen(app: Penstock) -> None:
    await fill(app)
    await app.events.erase(Session("acme", "shop", "s0"))
    await app.events.erase(Session("acme", "shop", "s1"))
    sql = "SELECT event_id FROM events WHERE platform = 'shop'"
    assert (await app.events.query(sql)).rows == [("e2",)]


async def test_a_question_of_one_tenant_finds_no_way_to_another(
    app: Penstock, tmp_path: Path
) -> None:
    await fill(app)
    [path] = (tmp_path / "archive").rglob("*.parquet")
    for sql in (
        f"SELECT * FROM read_parquet('{path}')",
        f"SELECT * FROM read_blob('{path}')",
        f"SELECT * FROM '{path}'",
    ):
        with pytest.raises(InvalidQuery):
            await app.events.query(sql, tenant="beta")
    told = "SELECT sql FROM duckdb_views() UNION ALL SELECT sql FROM duckdb_tables()"
    assert str(path) not in str((await app.events.query(told, tenant="beta")).rows)
    names = await app.events.query("SELECT table_name FROM duckdb_tables()", tenant="beta")
    for (name,) in names.rows:
        found = await app.events.query(f"SELECT DISTINCT tenant_id FROM {name}", tenant="beta")
        assert found.rows == [("beta",)]


async def test_what_a_killed_question_left_behind_goes_with_the_next_one(
    lone: Penstock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left, used = tmp_path / "penstock-query-left", tmp_path / "penstock-query-used"
    for folder in (left, used):
        folder.mkdir()
        (folder / "lock").touch()
        (folder / "events.duckdb").write_text("rows")
    await fill(lone)
    with (used / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        await lone.events.query("SELECT 1")
    assert {left.name, used.name}.intersection(os.listdir(tmp_path)) == {used.name}


async def test_a_question_that_begins_is_not_swept_away_by_another(
    lone: Penstock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    lock = fcntl.flock

    def slow(file: Any, how: int) -> None:
        if how == fcntl.LOCK_EX:
            monkeypatch.setattr(fcntl, "flock", lock)
            query._sweep()  # another process asks something just now
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", slow)
    assert (await lone.events.query("SELECT 1")).rows == [(1,)]


@pytest.fixture
async def lone(
    request: pytest.FixtureRequest, clock: FakeClock, tmp_path: Path
) -> AsyncIterator[Penstock]:
    async with events_app("sqlite", request, clock, tmp_path) as app:
        yield app


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM found",
        "CREATE TABLE x (a int)",
        "SELECT 1; SELECT 2",
        "ATTACH 'x.db'",
        "COPY (SELECT 1) TO 'x.csv'",
        "SET memory_limit = '1GB'",
        "",
        "SELEC 1",
        "SELECT nothing FROM events",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM glob('/*')",
    ],
)
async def test_what_is_no_question_about_events_is_refused(lone: Penstock, sql: str) -> None:
    await fill(lone)
    with pytest.raises(InvalidQuery):
        await lone.events.query(sql)
