"""A server on loopback, an application behind it, and a remote one in front of it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from penstock import Penstock, connect
from penstock.remote.client import Remote
from penstock.server.access.identity import parse_scopes
from penstock.server.access.tokens import Tokens
from penstock.server.app import create_server
from tests.remote.kitchen import make_app
from tests.support.http_server import serving
from tests.support.places import Place

MakeToken = Callable[..., Awaitable[str]]


@pytest.fixture
def kind_of_store() -> str:
    """The embedded one, unless the test runs on each."""
    return "sqlite"


@pytest.fixture
def store_url(place: Place) -> str:
    return place.address


@pytest.fixture
def address(store_url: str) -> Iterator[str]:
    """Where the server listens; it trusts whoever asks until there is a token."""
    with serving(create_server(make_app(store_url), trusts_callers=True)) as found:
        yield found.replace("localhost", "127.0.0.1")


@pytest.fixture
async def behind(store_url: str, address: str) -> AsyncIterator[Penstock]:
    """The application with the store, as a worker has it."""
    async with make_app(store_url) as app:
        yield app


@pytest.fixture
def types(tmp_path: Path) -> Penstock:
    """The application as a caller has it: its store is never opened."""
    return make_app(f"sqlite:///{tmp_path}/nowhere/none.db")


@pytest.fixture
async def remote(address: str, types: Penstock) -> AsyncIterator[Remote]:
    async with connect(address, app=types, patience=20) as found:
        yield found


@pytest.fixture
def make_token(behind: Penstock) -> MakeToken:
    """`await make_token("read", tenant="acme")` is a token."""

    async def make(*scopes: str, tenant: str | None = None) -> str:
        given = parse_scopes(scopes)
        _, text = await Tokens(behind.store).create("test", given, by="test", tenant_id=tenant)
        return text

    return make
