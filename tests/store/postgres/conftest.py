"""Schemas and accounts of their own on the test server, stores, and guests who use both."""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from psycopg import sql

from penstock.store.contract import Store
from penstock.store.open import open_store
from penstock.store.postgres.connect import Address, Connection, address_of, connect
from penstock.store.postgres.migrate import migrate
from tests.support.databases import Databases
from tests.support.guests import GUESTS, Guest

PASSWORD = "correct-horse"


class Logins:
    """Makes users: `logins.make("CREATEROLE", "GRANT penstock_worker TO {}")` gives a URL."""

    def __init__(self, address: Address, admin: Connection) -> None:
        self._address = address
        self._admin = admin
        self._made: list[str] = []

    def make(self, attributes: str = "", *grants: str) -> str:
        name = f"u{uuid4().hex[:12]}"
        self._made.append(name)
        self._admin.execute(f"CREATE ROLE {name} LOGIN {attributes} PASSWORD '{PASSWORD}'".encode())
        for grant in grants:
            self._admin.execute(grant.format(name).encode())
        parts = urlsplit(self._address.url)
        host = parts.netloc.rpartition("@")[2]
        return parts._replace(netloc=f"{name}:{PASSWORD}@{host}").geturl()

    def owner(self, attributes: str = "") -> str:
        return self.make(
            attributes, f"GRANT CREATE ON DATABASE {self._address.options['dbname']} TO {{}}"
        )

    def close(self) -> None:
        for name in self._made:
            drop_role(self._admin, name)


@contextmanager
def schema_of_its_own(database_url: str) -> Iterator[Address]:
    """A name that no other test uses: roles, which are named after it, belong to the server."""
    schema = f"s{uuid4().hex[:12]}"
    address = address_of(f"{database_url}?schema={schema}")
    yield address
    with connect(address) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE".encode())
        for role in (address.worker_role, address.tenant_role):
            drop_role(connection, role)


def drop_role(connection: Connection, role: str) -> None:
    known = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchone()
    if known:
        name = sql.Identifier(role)
        connection.execute(sql.SQL("DROP OWNED BY {} CASCADE").format(name))
        connection.execute(sql.SQL("DROP ROLE {}").format(name))


@pytest.fixture(scope="session")
def database_url(databases: Databases) -> Iterator[str]:
    """One database for all of these tests."""
    url = databases.create()
    yield url
    databases.drop(url)


@pytest.fixture
def address(database_url: str) -> Iterator[Address]:
    """Where a store of this test's own is to be."""
    with schema_of_its_own(database_url) as address:
        yield address


@pytest.fixture
def schema(address: Address) -> str:
    return address.schema


@pytest.fixture
def admin(address: Address) -> Iterator[Connection]:
    """A connection that may do everything."""
    with connect(address) as connection:
        yield connection


@pytest.fixture
def logins(address: Address, admin: Connection) -> Iterator[Logins]:
    made = Logins(address, admin)
    yield made
    made.close()


@pytest.fixture
def made(address: Address) -> Address:
    """A store of this test's own."""
    migrate(address)
    return address


@pytest.fixture(scope="module")
def shared(database_url: str) -> Iterator[Address]:
    """A store for all tests of a module, which take back what they do to it."""
    with schema_of_its_own(database_url) as address:
        migrate(address)
        yield address


@pytest.fixture(scope="module")
def shared_admin(shared: Address) -> Iterator[Connection]:
    with connect(shared) as connection:
        yield connection


@pytest.fixture(scope="module")
def shared_logins(shared: Address, shared_admin: Connection) -> Iterator[Logins]:
    made = Logins(shared, shared_admin)
    yield made
    made.close()


@pytest.fixture
def tx(shared: Address, shared_admin: Connection) -> Iterator[Connection]:
    """A transaction in the shared store that leaves nothing behind."""
    shared_admin.execute(shared.begin())
    yield shared_admin
    shared_admin.execute("ROLLBACK")


@pytest.fixture
async def store(postgres_store_url: str) -> AsyncIterator[Store]:
    store = open_store(postgres_store_url)
    await store.open()
    yield store
    await store.close()


@pytest.fixture(params=GUESTS)
async def guest(request: pytest.FixtureRequest, store: Store) -> AsyncIterator[Guest]:
    async with GUESTS[request.param](store.url) as guest:
        yield guest
