from collections.abc import AsyncIterator

import pytest

from penstock.store.contract import Store
from penstock.store.open import open_store
from penstock.testing.clock import FakeClock
from penstock.testing.conformance.furnish import furnish
from tests.client.moving import Opened


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
