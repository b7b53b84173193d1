"""Every store that has a server, for the rows that are not about one of them."""

from collections.abc import Iterator

import pytest

from tests.faults.support.places import PLACES, Place
from tests.support.namespaces import in_new_namespace


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """An empty store on each kind of server."""
    if request.param == "postgres":
        yield Place(request.param, request.getfixturevalue("postgres_store_url"))
    else:
        server = request.getfixturevalue("valkey_server_url")
        yield Place(request.param, in_new_namespace(server))
