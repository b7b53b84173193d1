"""Tables as the database has them, read past everything of ours."""

import sqlite3
from contextlib import closing
from typing import Any

import psycopg

from penstock import Penstock


def rows(app: Penstock, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    """Ask the database of an application: `rows(app, "SELECT id FROM agents_memories")`.

    Values stand as `?` in the statement, whichever database it is.
    """
    url = app.settings.url
    if url.startswith("sqlite:///"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            return connection.execute(statement, values).fetchall()
    with psycopg.connect(url, options="-c search_path=penstock,public") as connection:
        found = connection.execute(statement.replace("?", "%s").encode(), values or None)
        return list(found.fetchall())
