"""How many connections a process holds, and what it does while the server has none left."""

import asyncio
import threading
from typing import Any

import psycopg
import pytest

from penstock import Penstock
from penstock.model.clock import ServerClock
from penstock.model.store_errors import StoreUnavailable
from penstock.store.open import open_store
from penstock.store.postgres import connect as connecting
from penstock.store.postgres.connect import Address, Connection, address_of, connect
from penstock.store.postgres.session import Session
from penstock.worker.worker import Worker
from proof.conformance.build import a_job
from tests.store.postgres.conftest import Logins

SECONDS = 30
# What docs/guide/postgres.md says.
PRODUCER = 1
WAITS_FOR_RESULTS = 4
WORKER = 6


class Counted:
    """An application whose connections can be told from others'."""

    def __init__(self, url: str, name: str) -> None:
        self.app = Penstock(f"{url}{'&' if '?' in url else '?'}application_name={name}")
        self._name = name
        self._url = url

    def connections(self) -> int:
        asked = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"
        with psycopg.connect(self._url.partition("?")[0]) as connection:
            row = connection.execute(asked, (self._name,)).fetchone()
        assert row is not None
        return int(row[0])


async def test_a_producer_that_only_enqueues_holds_one_connection(postgres_store_url: str) -> None:
    producer = Counted(postgres_store_url, "a-producer")

    job = producer.app.job(add)
    async with producer.app:
        await asyncio.gather(*(job.enqueue(n, n) for n in range(20)))
        await producer.app.enqueue_many([job.new(n, n) for n in range(3)])
        assert await producer.app.store.controls.limits() == []
        assert producer.connections() == PRODUCER


async def test_to_open_a_store_and_use_it_takes_one_login(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = open_store(postgres_url)
    await made.open()
    await made.close()
    logins: list[str] = []
    login = psycopg.connect

    def counted(**options: Any) -> Connection:
        logins.append(options["dbname"])
        return login(**options)

    with monkeypatch.context() as counting:
        counting.setattr(psycopg, "connect", counted)
        store = open_store(postgres_url)
        await store.open()
        await store.jobs.enqueue([a_job()])
        await store.close()
    assert len(logins) == 1


async def test_one_that_waits_for_results_and_a_worker_hold_no_more_than_is_said(
    postgres_store_url: str,
) -> None:
    waiting, working = (Counted(postgres_store_url, name) for name in ("waiting", "working"))
    job, _ = waiting.app.job(add), working.app.job(add)
    async with waiting.app, working.app:
        worker = Worker(working.app, concurrency=4)
        running = asyncio.create_task(worker.run())
        handles = [await job.enqueue(n, n) for n in range(200)]
        assert [await handle.result(timeout=SECONDS) for handle in handles[-3:]] == [394, 396, 398]
        assert PRODUCER < waiting.connections() <= WAITS_FOR_RESULTS
        assert WAITS_FOR_RESULTS <= working.connections() <= WORKER
        worker.stop()
        await running


async def add(a: int, b: int) -> int:
    return a + b


@pytest.fixture
def crowded(made: Address, logins: Logins) -> Address:
    """A server that has one connection for us."""
    owner = f"GRANT {made.worker_role} TO {{}}"
    return address_of(logins.make("CONNECTION LIMIT 1", owner))


def test_a_call_waits_for_its_turn_while_the_server_is_full(
    crowded: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused, answers = threading.Event(), []
    monkeypatch.setattr(connecting.time, "sleep", lambda _: refused.set())
    session = Session(crowded, ServerClock())
    first = connect(crowded)
    second = threading.Thread(target=lambda: answers.append(session.perform(lambda tx: tx.now)))
    second.start()
    assert refused.wait(SECONDS)
    assert answers == []
    first.close()
    second.join(SECONDS)
    session.close()
    assert len(answers) == 1


def test_after_a_while_it_says_in_one_sentence_what_to_do(
    crowded: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.store.postgres.session.PATIENCE_SECONDS", 0.01)
    with connect(crowded), pytest.raises(StoreUnavailable, match="raise its max_connections"):
        Session(crowded, ServerClock()).perform(lambda tx: tx.now)
