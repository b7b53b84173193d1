"""Databases on a PostgreSQL server, made and dropped through a URL that may do so."""

from typing import LiteralString
from urllib.parse import urlsplit, urlunsplit

from penstock.model.errors import MissingExtra


def create_database(server_url: str, name: str, template: str | None = None) -> str:
    """Make a database, empty or as a copy of another, and return its URL."""
    _execute(server_url, "CREATE DATABASE {} TEMPLATE {}", name, template or "template1")
    return url_of_database(server_url, name)


def drop_database(server_url: str, name: str) -> None:
    """Remove a database, whoever is still connected to it; one that is gone already is fine."""
    _execute(server_url, "DROP DATABASE IF EXISTS {} WITH (FORCE)", name)


def url_of_database(server_url: str, name: str) -> str:
    """The same server's URL with another database in it."""
    return urlunsplit(urlsplit(server_url)._replace(path=f"/{name}"))


def _execute(url: str, statement: LiteralString, *names: str) -> None:
    try:
        import psycopg
        from psycopg import sql
    except ImportError as error:
        raise MissingExtra("postgres", "psycopg") from error
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))
