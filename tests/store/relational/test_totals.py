"""Counters since the beginning: the sum that is kept, and what covers the time after it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.store.contract.metrics import DAY_MS, HOUR_MS, MINUTE_MS
from penstock.store.relational import metrics
from penstock.store.relational.metrics import pieces
from penstock.store.sqlite.store import SqliteStore
from penstock.testing.clock import FakeClock
from proof.conformance.build import OWNER, a_job, claim_all, completed

SINCE, UNTIL = st.integers(0, 5_000), st.integers(0, 5_000)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store(clock: FakeClock, tmp_path: Path) -> AsyncIterator[SqliteStore]:
    path = tmp_path / "work.db"
    store = SqliteStore(f"sqlite:///{path}", path, clock)
    await store.open()
    yield store
    await store.close()


@given(SINCE, UNTIL)
def test_a_time_is_covered_without_a_gap_by_steps_that_lie_in_it(since: int, until: int) -> None:
    reached = since * MINUTE_MS
    for resolution, begin, end in pieces(since * MINUTE_MS, until * MINUTE_MS):
        assert begin == reached
        assert begin % resolution == end % resolution == 0
        reached = end
    assert reached == max(since, until) * MINUTE_MS


@given(SINCE, UNTIL)
def test_a_long_time_takes_few_steps(since: int, until: int) -> None:
    steps = [
        (resolution, (end - begin) // resolution)
        for resolution, begin, end in pieces(since * MINUTE_MS, until * MINUTE_MS)
    ]
    assert sum(count for resolution, count in steps if resolution == MINUTE_MS) < 120
    assert sum(count for resolution, count in steps if resolution == HOUR_MS) < 48


async def test_a_sum_that_begins_with_a_long_history_is_right_at_every_moment(
    store: SqliteStore, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "DAYS_AT_ONCE", 3)
    for _ in range(12):
        await _complete(store, 1)
        clock.advance(seconds=DAY_MS / 1_000)
        await store.metrics.roll_up()
    _forget_the_sum(store)
    reached = []
    for _ in range(6):
        assert await _completed(store) == 12
        await store.metrics.roll_up()
        reached.append(_summed_to(store))
    assert reached == sorted(reached)
    assert 0 < reached[0] < reached[-1]
    assert clock.now() - reached[-1] < 5 * MINUTE_MS


async def test_a_clock_that_is_put_back_counts_nothing_twice(
    store: SqliteStore, clock: FakeClock
) -> None:
    for seconds in (DAY_MS / 1_000, 600, 600):
        await _complete(store, 2)
        clock.advance(seconds=seconds)
        await store.metrics.roll_up()
    before = await _completed(store)
    clock.set_wall(clock.now() - 60_000)
    await _complete(store, 1)
    assert await _completed(store) == before + 1 == 7
    clock.set_wall(clock.now() - 2 * DAY_MS)
    for _ in range(3):
        await store.metrics.roll_up()
        assert await _completed(store) >= 7
        clock.advance(seconds=DAY_MS / 1_000)
    await _complete(store, 1)
    await store.metrics.roll_up()
    assert await _completed(store) == 8


async def _complete(store: SqliteStore, count: int) -> None:
    await store.jobs.enqueue([a_job() for _ in range(count)])
    leases = await claim_all(store)
    assert await store.jobs.settle(OWNER, [completed(lease) for lease in leases]) == []


async def _completed(store: SqliteStore) -> float:
    return {name: value for _, _, name, value in await store.metrics.totals()}["completed"]


def _summed_to(store: SqliteStore) -> int:
    row = store.connection().execute("SELECT value FROM penstock_meta WHERE name = 'summed_to'")
    return int(row.get)


def _forget_the_sum(store: SqliteStore) -> None:
    """As in a store of a version that kept none."""
    file = store.connection()
    file.execute("DELETE FROM metrics WHERE resolution_ms = 0")
    file.execute("DELETE FROM penstock_meta WHERE name = 'summed_to'")
