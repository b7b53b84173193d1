"""The public interface, on every store: a test that asks for `app` runs on each of them."""

from collections.abc import AsyncIterator

import pytest

from penstock import Penstock
from penstock.config import Settings
from penstock.store.contract import Store
from penstock.store.open import open_store
from penstock.testing import FakeClock
from proof.conformance.furnish import furnish
from tests.client.moving import Opened
from tests.support.places import Place


@pytest.fixture(params=["sqlite", "postgres", "valkey"])
def kind_of_store(request: pytest.FixtureRequest) -> str:
    """Run on each: PostgreSQL with Redis beside it differs in how it wakes workers only."""
    kind: str = request.param
    return kind


@pytest.fixture
async def app(place: Place, clock: FakeClock) -> AsyncIterator[Penstock]:
    """An application on an empty store, open."""
    async with Penstock(settings=Settings(**place.settings), clock=clock) as opened:
        yield opened
    if "sync" in opened.__dict__:
        opened.sync.close()


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
