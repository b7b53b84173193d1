"""The public interface, on every store: a test that asks for `app` runs on each of them."""

from collections.abc import AsyncIterator

import pytest

from penstock import Penstock
from penstock.config import Settings
from penstock.testing import FakeClock
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
