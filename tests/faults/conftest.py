"""Every store that has a server, for the rows that are not about one of them."""

import pytest

from tests.faults.support.places import PLACES
from tests.support.places import Place, find_place


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> Place:
    """An empty store on each kind of server."""
    return find_place(request.param, request)
