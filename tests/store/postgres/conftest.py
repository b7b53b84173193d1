"""Accounts of their own on the test server, and stores in schemas of their own."""

from collections.abc import Callable, Iterator
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from psycopg import sql

from penstock.store.postgres.connect import Address, Connection, address_of, connect
from penstock.store.postgres.migrate import migrate
from tests.support.databases import Databases

Login = Callable[..., str]
PASSWORD = "correct-horse"


@pytest.fixture
def schema() -> str:
    """A name that no other test uses: roles, which are named after it, belong to the server."""
    return f"s{uuid4().hex[:12]}"


@pytest.fixture(scope="session")
def database_url(databases: Databases) -> Iterator[str]:
    """One database for all of these tests, each in a schema of its own."""
    url = databases.create()
    yield url
    databases.drop(url)


@pytest.fixture
def address(database_url: str, schema: str) -> Iterator[Address]:
    """Where a store of this test's own is to be."""
    address = address_of(f"{database_url}?schema={schema}")
    yield address
    with connect(address) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE".encode())
        for role in (address.worker_role, address.tenant_role):
            _drop(connection, role)


@pytest.fixture
def admin(address: Address) -> Iterator[Connection]:
    """A connection that may do everything."""
    connection = connect(address)
    yield connection
    connection.close()


@pytest.fixture
def made(address: Address) -> Address:
    """The same with its tables."""
    migrate(address)
    return address


@pytest.fixture
def login(address: Address, admin: Connection) -> Iterator[Login]:
    """Makes users: `login("LOGIN CREATEROLE", "GRANT penstock_worker TO {}")` gives a URL."""
    names: list[str] = []

    def make(attributes: str = "", *grants: str) -> str:
        name = f"u{uuid4().hex[:12]}"
        names.append(name)
        who = sql.Identifier(name).as_string(None)
        admin.execute(f"CREATE ROLE {who} LOGIN {attributes} PASSWORD '{PASSWORD}'".encode())
        for grant in grants:
            admin.execute(grant.format(who).encode())
        parts = urlsplit(address.url)
        host = parts.netloc.rpartition("@")[2]
        return parts._replace(netloc=f"{name}:{PASSWORD}@{host}").geturl()

    yield make
    for name in names:
        _drop(admin, name)


def _drop(connection: Connection, role: str) -> None:
    known = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchone()
    if known:
        name = sql.Identifier(role)
        connection.execute(sql.SQL("DROP OWNED BY {} CASCADE").format(name))
        connection.execute(sql.SQL("DROP ROLE {}").format(name))
