"""A connection for the caller's own use, as psycopg makes it."""

from typing import Any, cast

import psycopg
from psycopg import sql

from penstock.model.errors import InvalidOption
from penstock.store.postgres.connect import Address, is_direct
from penstock.store.postgres.errors import translated

Connection = psycopg.Connection[tuple[Any, ...]]


def lend(address: Address) -> Connection:
    """A connection to the store's database; the URL's tenant sees no rows of others on it."""
    with translated(address.name):
        connection = psycopg.connect(**cast("dict[str, Any]", address.options))
        try:
            _prepare(connection, address)
        except BaseException:
            connection.close()
            raise
    return connection


def _prepare(connection: Connection, address: Address) -> None:
    direct = is_direct(connection)
    if not direct:
        connection.prepare_threshold = None
    if address.tenant is not None:
        if not direct:
            # What a session sets for itself, a pooler would hand on to whoever comes next.
            expected = "one that leads to the server and not to a pooler, if it names a tenant"
            raise InvalidOption("url", address.name, expected)
        role = sql.Identifier(address.tenant_role)
        connection.execute(sql.SQL("SET ROLE {}").format(role))
        tenant = sql.Literal(address.tenant)
        connection.execute(sql.SQL("SET penstock.tenant = {}").format(tenant))
    connection.commit()
