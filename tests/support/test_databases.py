"""Stores that tests use in turn do not see what the test before has left."""

import psycopg

from penstock.model.job import NewJob
from penstock.store.contract import JobFilter
from penstock.store.open import open_store
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
