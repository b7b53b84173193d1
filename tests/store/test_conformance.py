"""Every store keeps the contract.

`make test` runs the suite on one flavour of each; `make long` on all of them. What differs between
the flavours is in their own folders.
"""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from penstock.store.contract import Store
from penstock.store.open import open_store
from penstock.testing.clock import FakeClock
from proof.conformance import *  # noqa: F403
from tests.support.places import FLAVOURS, LONG, Place, find_place

Reopen = Callable[[], Awaitable[Store]]
SHORT = ("sqlite", "postgres", "valkey")
# What Redis changes beside PostgreSQL: how it is opened, and how it is told of changes.
BESIDE = (TestDurability, TestLife, TestSubscription, TestWatch)  # noqa: F405


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run on each flavour that a test has something to say about."""
    flavours = FLAVOURS if LONG else SHORT
    if metafunc.cls is TestReboot:  # noqa: F405
        # Elsewhere the server's clock times the leases, whichever host restarts.
        flavours = ("sqlite",)
    elif metafunc.cls in BESIDE and not LONG:
        flavours = (*SHORT, "postgres+redis")
    if "reopen" in metafunc.fixturenames:
        flavours = tuple(flavour for flavour in flavours if flavour != "sqlite in memory")
    if "store" in metafunc.fixturenames:
        metafunc.parametrize("flavour", flavours)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def place(flavour: str, request: pytest.FixtureRequest) -> Place:
    return find_place(flavour, request)


@pytest.fixture
async def store(place: Place, clock: FakeClock) -> AsyncIterator[Store]:
    store = open_store(place.url, clock, dispatch=place.dispatch)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def reopen(place: Place, store: Store, clock: FakeClock) -> AsyncIterator[Reopen]:
    opened: list[Store] = []

    async def again() -> Store:
        await store.close()
        opened.append(open_store(place.url, clock, dispatch=place.dispatch))
        await opened[-1].open()
        return opened[-1]

    yield again
    for other in opened:
        await other.close()
