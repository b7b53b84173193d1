"""Every store that has a server, for the rows that are not about one of them."""

from collections.abc import Iterator

import pytest

from tests.faults.support.places import PLACES, Place
from tests.support.namespaces import in_new_namespace


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """An empty store on each kind of server."""
    kind: str = request.param
    redis = None
    if kind != "postgres":
        redis = in_new_namespace(request.getfixturevalue("valkey_server_url"))
    if kind == "valkey":
        yield Place(kind, str(redis))
    else:
        yield Place(kind, request.getfixturevalue("postgres_store_url"), redis)
