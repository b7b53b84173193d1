"""What people do, on every store like the public interface; and stores to move between."""

from collections.abc import AsyncIterator

import pytest

from penstock.store.contract import Store
from penstock.store.open import open_store
from penstock.testing import FakeClock
from proof.conformance.furnish import furnish
from tests.app.conftest import app, kind_of_store
from tests.operate.moving import Opened

__all__ = ["app", "kind_of_store"]


@pytest.fixture
async def opened(clock: FakeClock) -> AsyncIterator[Opened]:
    """Open a store by its URL, or `memory`."""
    stores: list[Store] = []

    async def open_it(url: str) -> Store:
        store = open_store("sqlite:///:memory:" if url == "memory" else url, clock)
        await store.open(moving=True)
        stores.append(store)
        return store

    yield open_it
    for store in stores:
        await store.close()


@pytest.fixture
async def full(opened: Opened, clock: FakeClock) -> Store:
    store = await opened("memory")
    await furnish(store, clock)
    return store


@pytest.fixture
async def empty(opened: Opened) -> Store:
    return await opened("memory")
