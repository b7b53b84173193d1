"""What all tests of events take for granted."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from penstock import Penstock
from penstock.events import fast_path, spool
from penstock.events.extension import TABLES
from penstock.testing.clock import FakeClock
from proof.tally import Tally
from tests.support.databases import Databases
from tests.support.events import events_app


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spool nothing because a busy machine is slow; tests of patience choose their own."""
    monkeypatch.setattr(spool, "PATIENCE_SECONDS", 30.0)


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have who reads an empty stream end soon, as it does so only between two reads."""
    monkeypatch.setattr(fast_path, "BLOCK_MS", 10)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def postgres_store_url(databases: Databases) -> Iterator[str]:
    """An empty store with the tables of events: to make them costs more than most tests do."""
    url = databases.take_store(TABLES)
    yield url
    databases.give_back(url)


@pytest.fixture(params=["sqlite", "postgres"])
def kind(request: pytest.FixtureRequest) -> str:
    """Where the log is; tests of what is elsewhere, too, name more kinds."""
    return str(request.param)


@pytest.fixture
async def app(
    kind: str, request: pytest.FixtureRequest, clock: FakeClock, tmp_path: Path
) -> AsyncIterator[Penstock]:
    """An application with events and an archive, at a time that the test chooses."""
    async with events_app(kind, request, clock, tmp_path) as made:
        yield made


@pytest.fixture
def tally(app: Penstock) -> Tally:
    """A consumer of it that counts."""
    made = Tally()
    app.consumer.add(made.consumer())
    return made
