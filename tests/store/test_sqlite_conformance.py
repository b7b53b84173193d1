"""The SQLite store, on a file and in memory, keeps the contract."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from penstock.store.contract import Store
from penstock.store.open import open_store
from penstock.testing.clock import FakeClock
from penstock.testing.conformance import *  # noqa: F403

Reopen = Callable[[], Awaitable[Store]]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["file", "memory"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "sqlite:///:memory:" if request.param == "memory" else f"sqlite:///{tmp_path}/work.db"


@pytest.fixture
async def store(url: str, clock: FakeClock) -> AsyncIterator[Store]:
    store = open_store(url, clock)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def reopen(url: str, store: Store, clock: FakeClock) -> AsyncIterator[Reopen]:
    if url.endswith(":memory:"):
        pytest.skip("what is in memory is gone when it is closed")
    opened: list[Store] = []

    async def again() -> Store:
        await store.close()
        opened.append(open_store(url, clock))
        await opened[-1].open()
        return opened[-1]

    yield again
    for other in opened:
        await other.close()
