"""Every store that has a server, for the rows that are not about one of them."""

import pytest

from tests.faults.support.facts import TORTURE
from tests.faults.support.places import PLACES, SERVERS
from tests.support.places import Place, find_place


@pytest.fixture(params=PLACES if TORTURE else SERVERS)
def place(request: pytest.FixtureRequest) -> Place:
    """An empty store on each kind of server; with Redis beside it, PostgreSQL decides the same."""
    return find_place(request.param, request)
