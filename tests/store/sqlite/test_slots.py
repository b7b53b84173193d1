"""Slots and starts of limits for each key do not pile up."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from penstock.model.controls import EVERY, Limit, LimitKind, LimitScope
from penstock.store.contract import Retention, Store
from penstock.store.open import open_store
from penstock.testing import FakeClock
from proof.conformance.build import OWNER, a_job, claim_all, completed


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Store]:
    made = open_store(f"sqlite:///{tmp_path}/work.db", clock)
    await made.open()
    yield made
    await made.close()


def count(store: Store, table: str) -> int:
    connection: Any = store.connection()
    [(found,)] = connection.execute(f"SELECT count(*) FROM {table}")
    connection.close()
    return int(found)


async def run_keys(store: Store, rounds: int) -> None:
    """One long job keeps the worker busy while it runs others, each under a key of its own."""
    await store.jobs.enqueue([a_job(limit_key="long")])
    await claim_all(store)
    for number in range(rounds):
        await store.jobs.enqueue([a_job(limit_key=f"key-{number}")])
        [lease] = await claim_all(store)
        await store.jobs.settle(OWNER, [completed(lease)])
    await claim_all(store)


async def test_a_busy_worker_leaves_no_slots_behind(store: Store) -> None:
    each = Limit(scope=LimitScope.KEY, name=EVERY, kind=LimitKind.CONCURRENCY, capacity=1)
    await store.controls.set_limits([each])
    await run_keys(store, 20)
    assert count(store, "slots") == 1


async def test_old_starts_are_pruned_and_recent_ones_kept(store: Store, clock: FakeClock) -> None:
    each = Limit(
        scope=LimitScope.KEY, name=EVERY, kind=LimitKind.RATE, capacity=1, interval_ms=60_000
    )
    await store.controls.set_limits([each])
    await run_keys(store, 5)
    clock.advance(seconds=59)
    await store.upkeep.prune(Retention())
    assert count(store, "rate_starts") == 6
    clock.advance(seconds=1)
    await store.upkeep.prune(Retention())
    assert count(store, "rate_starts") == 0
