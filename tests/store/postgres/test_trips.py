"""One statement that is alone needs no transaction around it: all is done in one round trip."""

import threading
from collections.abc import Iterator

import pytest

from penstock.model.clock import ServerClock
from penstock.model.errors import StoreUnavailable
from penstock.model.job import Enqueued, NewJob
from penstock.store.postgres.connect import Address, Connection, address_of, connect
from penstock.store.postgres.enqueue import EnqueueTrip
from penstock.store.postgres.link import Link
from penstock.store.postgres.transaction import PostgresTransaction
from penstock.store.postgres.wake_ups import WakeUps

SECONDS = 30
LAST_WORDS = "SELECT query FROM pg_stat_activity WHERE pid = %s"


@pytest.fixture
def link(made: Address) -> Iterator[Link]:
    link = Link(made, ServerClock())
    yield link
    link.close()


def _pid(link: Link) -> int:
    return link.perform(lambda tx: int(tx.value("backend_pid")))[0]


def _jobs(*ids: str, priority: int = 5) -> list[NewJob]:
    return [NewJob(id=job_id, type="mail", priority=priority) for job_id in ids]


def _enqueue(link: Link, jobs: list[NewJob]) -> list[Enqueued]:
    answers, changed = link.perform(EnqueueTrip(jobs))
    assert changed
    return answers


def _until(admin: Connection, question: str, *bindings: object) -> None:
    while not admin.execute(question.encode(), bindings).fetchone():
        pass


@pytest.mark.parametrize("ids", [("0",), tuple("0123456789")])
def test_an_enqueue_of_jobs_that_are_alike_is_one_statement(
    link: Link, admin: Connection, ids: tuple[str, ...]
) -> None:
    pid = _pid(link)
    assert _enqueue(link, _jobs(*ids)) == [Enqueued(job_id, True) for job_id in ids]
    said = admin.execute(LAST_WORDS, (pid,)).fetchone()
    assert said is not None
    assert "FROM enqueue_alike(" in said[0]


@pytest.mark.parametrize("known", ["1", "3"])
def test_a_known_job_keeps_none_of_the_others_out(link: Link, known: str) -> None:
    _enqueue(link, _jobs(known))
    assert _enqueue(link, _jobs(known)) == [Enqueued(known, False)]
    answers = _enqueue(link, _jobs(*"0123"))
    assert [answer.id for answer in answers if not answer.created] == [known]
    count = "SELECT count(*) FROM jobs"
    assert link.perform(lambda tx: tx.connection.execute(count).fetchone())[0] == (4,)


def test_jobs_of_two_kinds_come_together_or_not_at_all(link: Link) -> None:
    _enqueue(link, _jobs("9"))
    mixed = [*_jobs(*"01234567"), *_jobs("9", *"abcdefgh", priority=1)]
    answers = _enqueue(link, mixed)
    assert [answer.id for answer in answers if not answer.created] == ["9"]


def test_a_job_that_ended_gets_no_second_life(link: Link) -> None:
    _enqueue(link, _jobs("0"))
    ended = "UPDATE jobs SET live = false, status = 'completed'"
    link.perform(lambda tx: tx.connection.execute(ended))
    assert _enqueue(link, _jobs("0")) == [Enqueued("0", False)]
    answers = _enqueue(link, _jobs("0", "1"))
    assert [answer.created for answer in answers] == [False, True]


def test_a_connection_that_was_lost_while_it_was_idle_costs_nobody_anything(
    link: Link, admin: Connection
) -> None:
    pid = _pid(link)
    admin.execute("SELECT pg_terminate_backend(%s, 10000)", (pid,))
    _until(admin, "SELECT 1 WHERE NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = %s)", pid)
    assert _enqueue(link, _jobs("0")) == [Enqueued("0", True)]


def test_of_one_that_is_lost_on_the_way_nobody_knows_what_it_did(
    link: Link, made: Address, admin: Connection
) -> None:
    pid = _pid(link)
    told: list[BaseException] = []

    def enqueue() -> None:
        try:
            _enqueue(link, _jobs("0"))
        except StoreUnavailable as error:
            told.append(error)

    with connect(made) as other:
        other.execute(made.begin())
        EnqueueTrip(_jobs("0"))(PostgresTransaction(other, 0, 0))
        waiting = threading.Thread(target=enqueue)
        waiting.start()
        _until(
            admin,
            "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock'",
            pid,
        )
        admin.execute("SELECT pg_terminate_backend(%s, 10000)", (pid,))
        waiting.join(SECONDS)
        other.execute("ROLLBACK")
    assert "it may or may not be done" in str(told[0])


def test_only_a_session_of_our_own_keeps_its_settings(made: Address) -> None:
    tenant = address_of(f"{made.url}&tenant=acme")
    for address, meant in ((made, "30s"), (tenant, "0")):
        link = Link(address, ServerClock())
        connection, _ = link.perform(lambda tx: tx.connection)
        assert connection.execute("SHOW statement_timeout").fetchone() == (meant,)
        link.close()


@pytest.fixture
def hearers(link: Link, made: Address) -> Iterator[list[tuple[WakeUps, threading.Event]]]:
    """Two processes, as it were, and what each of them hears; the link is the first one's."""
    events = [threading.Event() for _ in range(2)]
    each = [WakeUps(made, event.set, link) for event in events]
    for wake_ups in each:
        wake_ups.listen()
        wake_ups.wait(SECONDS)
    for event in events:
        event.clear()
    yield list(zip(each, events, strict=True))
    for wake_ups in each:
        wake_ups.stop()


def test_what_is_sent_behind_a_commit_is_heard_by_the_others_only(
    link: Link, hearers: list[tuple[WakeUps, threading.Event]]
) -> None:
    [(ours, own), (_, heard)] = hearers
    _enqueue(link, _jobs("0"))
    ours.tell(link)
    assert heard.wait(SECONDS)
    assert _enqueue(link, _jobs("1")) == [Enqueued("1", True)]
    assert not own.is_set()


def test_what_follows_too_soon_is_told_a_little_later(
    link: Link, hearers: list[tuple[WakeUps, threading.Event]]
) -> None:
    [(ours, _), (_, heard)] = hearers
    _enqueue(link, _jobs("0"))
    ours.tell(link)
    assert heard.wait(SECONDS)
    for again in "12":  # the second at the latest follows too soon
        heard.clear()
        _enqueue(link, _jobs(again))
        ours.tell(link)
        assert heard.wait(SECONDS)


def test_who_does_not_listen_tells_all_the_same_on_the_connection_it_has(
    link: Link, made: Address, hearers: list[tuple[WakeUps, threading.Event]]
) -> None:
    _, (_, heard) = hearers
    producer = WakeUps(made, lambda: None, link)
    _enqueue(link, _jobs("0"))
    producer.tell(link)
    assert heard.wait(SECONDS)
    heard.clear()
    producer.tell(link)
    producer.tell(link)
    producer.stop()  # which leaves nothing untold
    assert heard.wait(SECONDS)
