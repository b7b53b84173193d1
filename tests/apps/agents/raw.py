"""Tables as the database has them, read past everything of ours."""

from contextlib import closing
from typing import Any

import apsw
import psycopg

from penstock import Penstock


def rows(app: Penstock, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    """Ask the database of an application: `rows(app, "SELECT id FROM agents_memories")`.

    Values stand as `?` in the statement, whichever database it is.
    """
    return rows_of(app.settings.url, statement, *values)


def rows_of(url: str, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    """Ask the database at a URL."""
    if url.startswith("sqlite:///"):
        # By the library that the application has opened the file with: a second one in the same
        # process takes away the first one's locks when it closes the file.
        with closing(apsw.Connection(url.removeprefix("sqlite:///"))) as connection:
            return list(connection.execute(statement, values))
    with psycopg.connect(url, options="-c search_path=penstock,public") as connection:
        found = connection.execute(statement.replace("?", "%s").encode(), values or None)
        return list(found.fetchall())


def change(app: Penstock, statement: str) -> None:
    """Change something behind the back of an application."""
    url = app.settings.url
    if url.startswith("sqlite:///"):
        with closing(apsw.Connection(url.removeprefix("sqlite:///"))) as connection:
            connection.execute(statement)
        return
    with psycopg.connect(url, options="-c search_path=penstock,public") as server:
        server.execute(statement.encode())
