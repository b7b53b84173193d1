"""What tests of the applications share: stores on PostgreSQL that have their tables already."""

from collections.abc import Iterator

import pytest

from penstock.apps.agents.extension import TABLES as AGENTS
from penstock.apps.recorder.extension import TABLES as RECORDER
from penstock.events.extension import TABLES as EVENTS
from tests.support.databases import Databases

TABLES = (EVENTS, RECORDER, AGENTS)


@pytest.fixture
def postgres_store_url(databases: Databases) -> Iterator[str]:
    """A database with an empty store, in which the tables of all applications are empty, too."""
    url = databases.take_store(*TABLES)
    yield url
    databases.give_back(url)
