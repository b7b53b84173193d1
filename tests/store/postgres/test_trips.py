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
from penstock.store.postgres.notices import Notices
from penstock.store.postgres.transaction import PostgresTransaction

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
    (answers, _), changed = link.perform(EnqueueTrip(jobs))
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


def test_what_is_sent_behind_a_commit_is_heard_by_the_others_only(
    link: Link, made: Address
) -> None:
    heard, own = threading.Event(), threading.Event()
    ours = Notices(made, own.set)
    theirs = Notices(made, heard.set)
    try:
        for notices in (ours, theirs):
            notices.wait(SECONDS)
        own.clear()
        heard.clear()
        _enqueue(link, _jobs("0"))
        statement = ours.turn()
        assert statement is not None
        assert ours.turn() is None
        assert link.send(statement)
        assert heard.wait(SECONDS)
        assert _enqueue(link, _jobs("1")) == [Enqueued("1", True)]
        assert not own.is_set()
    finally:
        ours.stop()
        theirs.stop()
