"""Stores that tests use in turn do not see what the test before has left."""

import psycopg

from penstock.apps.agents.extension import TABLES as AGENTS
from penstock.model.job import NewJob
from penstock.store.contract import JobFilter
from penstock.store.open import open_store
from penstock.store.postgres.connect import address_of, connect
from tests.support.databases import Databases


async def test_a_store_that_is_taken_again_is_empty_whoever_is_still_connected(
    databases: Databases,
) -> None:
    url = databases.take_store()
    left_open = psycopg.connect(url)
    left_open.execute("LOCK TABLE penstock.jobs")
    databases.give_back(url)
    assert databases.take_store() == url
    left_open.close()

    store = open_store(url)
    await store.open()
    await store.jobs.enqueue([NewJob(id=f"{7:026d}", type="mail")])
    await store.close()
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE penstock.penstock_meta SET value = '99'")
    databases.give_back(url)

    assert databases.take_store() == url
    store = open_store(url)
    await store.open()
    assert await store.reader.find(JobFilter()) == []
    await store.close()
    with psycopg.connect(url) as connection:
        versions = connection.execute("SELECT value FROM penstock.penstock_meta").fetchall()
    assert ("99",) not in versions
    databases.give_back(url)


async def test_tables_of_extensions_stay_and_are_emptied_unless_a_test_took_some_away(
    databases: Databases,
) -> None:
    url = databases.take_store(AGENTS)
    plain = databases.take_store()
    assert plain != url
    databases.give_back(plain)
    with psycopg.connect(url) as connection:
        connection.execute("INSERT INTO penstock.agents_halved VALUES ('a', 'b', 'c')")
        connection.execute("CREATE INDEX made_later ON penstock.agents_halved (memory_id)")
        connection.execute("CREATE TABLE penstock.other_table (id TEXT)")
    databases.give_back(url)

    assert databases.take_store(AGENTS) == url
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT * FROM penstock.agents_halved").fetchall() == []
        left = "SELECT to_regclass('penstock.made_later'), to_regclass('penstock.other_table')"
        assert connection.execute(left).fetchone() == (None, None)
        connection.execute("ALTER TABLE penstock.agents_halved DROP COLUMN user_id")
    databases.give_back(url)

    other = databases.take_store(AGENTS)
    assert other != url
    databases.give_back(other)


async def test_a_session_is_used_again_and_keeps_nothing_that_a_test_has_set(
    databases: Databases,
) -> None:
    url = databases.take_store()
    first = connect(address_of(url))
    pid = first.info.backend_pid
    first.execute("SET search_path = nowhere; LISTEN news; CREATE TEMP TABLE notes (id TEXT)")
    first.execute("SELECT pg_advisory_lock(7)")
    first.execute("PREPARE question AS SELECT 1")
    first.close()
    assert first.closed

    second = connect(address_of(url))
    assert second.info.backend_pid == pid
    left = """
    SELECT current_setting('search_path'), to_regclass('pg_temp.notes'),
        (SELECT count(*) FROM pg_prepared_statements WHERE name = 'question'),
        (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()),
        (SELECT count(*) FROM pg_listening_channels())
    """
    assert second.execute(left).fetchone() == ('"$user", public', None, 0, 0, 0)
    second.execute("BEGIN")
    second.close()

    third = connect(address_of(url))
    assert third.info.backend_pid != pid
    third.close()
    databases.give_back(url)
