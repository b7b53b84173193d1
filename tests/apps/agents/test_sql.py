"""Every query of the agent workers is understood by both dialects, also those seldom run."""

import apsw
import psycopg
import pytest

from penstock import Penstock
from penstock.app.transact import make_tables
from penstock.apps.agents.extension import TABLES
from penstock.store.postgres.queries import number_placeholders
from penstock.store.relational.tables import load_named
from tests.support.places import Place, find_place


async def made(place: Place) -> None:
    async with Penstock(place.url, extensions=["agents"]) as app:
        await make_tables(app, TABLES)


async def test_on_sqlite(request: pytest.FixtureRequest) -> None:
    place = find_place("sqlite", request)
    await made(place)
    connection = apsw.Connection(place.url.removeprefix("sqlite:///"))
    for name, sql in load_named(TABLES.package, "sqlite").items():
        try:
            connection.execute(f"EXPLAIN {sql}", can_cache=False, explain=1)
        except apsw.BindingsError:
            continue  # it was understood, and waits for values
        except apsw.SQLError as error:
            pytest.fail(f"{name}: {error}")
    connection.close()


async def test_on_postgres(request: pytest.FixtureRequest) -> None:
    place = find_place("postgres", request)
    await made(place)
    options = "-c search_path=penstock,public"
    async with await psycopg.AsyncConnection.connect(
        place.url, autocommit=True, options=options
    ) as connection:
        for name, sql in load_named(TABLES.package, "postgres").items():
            numbered, _ = number_placeholders(sql)
            try:
                await connection.execute(f"PREPARE q_{name} AS {numbered}".encode())
            except psycopg.Error as error:
                pytest.fail(f"{name}: {error}")
