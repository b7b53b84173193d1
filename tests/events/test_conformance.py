"""The log and its consumers keep their promises wherever tables are."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from penstock import Penstock
from penstock.testing.clock import FakeClock
from proof.conformance.events import *  # noqa: F403
from proof.tally import Tally
from proof.tally import tally as tally_extension
from tests.support.places import find_place

PLACES = ("sqlite", "postgres", "valkey")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run on every kind of store."""
    if "app" in metafunc.fixturenames:
        metafunc.parametrize("kind", PLACES)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def app(
    kind: str, clock: FakeClock, tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[Penstock]:
    place = find_place(kind, request)
    tables = f"sqlite:///{tmp_path}/tables.db" if kind == "valkey" else None
    app = Penstock(place.url, tables=tables, extensions=[tally_extension], clock=clock)
    async with app:
        yield app


@pytest.fixture
def tally(app: Penstock) -> Tally:
    """A consumer of all events."""
    made = Tally()
    app.consumer.add(made.consumer())
    return made
