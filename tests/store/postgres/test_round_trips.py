"""One statement that is alone needs no transaction around it: all is done in one round trip."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from penstock.model.clock import ServerClock
from penstock.model.errors import InvalidOption
from penstock.model.job import Enqueued, NewJob
from penstock.model.store_errors import StoreUnavailable
from penstock.store.contract import Store
from penstock.store.postgres.connect import Address, Connection, address_of, connect, readable
from penstock.store.postgres.enqueue import EnqueueRoundTrip
from penstock.store.postgres.round_trip import Sent
from penstock.store.postgres.session import Session
from penstock.store.postgres.transaction import PostgresTransaction
from penstock.store.postgres.wake_ups import WakeUps

SECONDS = 10
LAST_WORDS = "SELECT query FROM pg_stat_activity WHERE pid = %s"


@pytest.fixture
def session(made: Address) -> Iterator[Session]:
    session = Session(made, ServerClock())
    yield session
    session.close()


def _pid(session: Session) -> int:
    return session.perform(lambda tx: int(tx.value("backend_pid")))[0]


def _jobs(*ids: str, priority: int = 5) -> list[NewJob]:
    return [NewJob(id=job_id, type="mail", priority=priority) for job_id in ids]


def _enqueue(session: Session, jobs: list[NewJob]) -> list[Enqueued]:
    answers, changed = session.perform(EnqueueRoundTrip(jobs))
    assert changed
    return answers


def _until(admin: Connection, question: str, *bindings: object) -> None:
    while not admin.execute(question.encode(), bindings).fetchone():
        pass


@pytest.mark.parametrize(
    ("function", "ids"), [("enqueue_one", ("0",)), ("enqueue_alike", tuple("0123456789"))]
)
def test_an_enqueue_of_jobs_that_are_alike_is_one_statement(
    session: Session, admin: Connection, function: str, ids: tuple[str, ...]
) -> None:
    pid = _pid(session)
    assert _enqueue(session, _jobs(*ids)) == [Enqueued(job_id, True) for job_id in ids]
    said = admin.execute(LAST_WORDS, (pid,)).fetchone()
    assert said is not None
    assert f"FROM {function}(" in said[0]


@pytest.mark.parametrize("known", ["1", "3"])
def test_a_known_job_keeps_none_of_the_others_out(session: Session, known: str) -> None:
    _enqueue(session, _jobs(known))
    assert _enqueue(session, _jobs(known)) == [Enqueued(known, False)]
    answers = _enqueue(session, _jobs(*"0123"))
    assert [answer.id for answer in answers if not answer.created] == [known]
    count = "SELECT count(*) FROM jobs"
    assert session.perform(lambda tx: tx.connection.execute(count).fetchone())[0] == (4,)


def test_jobs_of_two_kinds_come_together_or_not_at_all(session: Session) -> None:
    _enqueue(session, _jobs("9"))
    mixed = [*_jobs(*"01234567"), *_jobs("9", *"abcdefgh", priority=1)]
    answers = _enqueue(session, mixed)
    assert [answer.id for answer in answers if not answer.created] == ["9"]


def test_a_job_that_ended_gets_no_second_life(session: Session) -> None:
    _enqueue(session, _jobs("0"))
    ended = "UPDATE jobs SET live = false, status = 'completed'"
    session.perform(lambda tx: tx.connection.execute(ended))
    assert _enqueue(session, _jobs("0")) == [Enqueued("0", False)]
    answers = _enqueue(session, _jobs("0", "1"))
    assert [answer.created for answer in answers] == [False, True]


def test_a_connection_that_was_lost_while_it_was_idle_costs_nobody_anything(
    session: Session, admin: Connection
) -> None:
    pid = _pid(session)
    admin.execute("SELECT pg_terminate_backend(%s, 10000)", (pid,))
    _until(admin, "SELECT 1 WHERE NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = %s)", pid)
    assert _enqueue(session, _jobs("0")) == [Enqueued("0", True)]


def test_of_one_that_is_lost_on_the_way_nobody_knows_what_it_did(
    session: Session, made: Address, admin: Connection
) -> None:
    pid = _pid(session)
    told: list[BaseException] = []

    def enqueue() -> None:
        try:
            _enqueue(session, _jobs("0"))
        except StoreUnavailable as error:
            told.append(error)

    with connect(made) as other:
        other.execute(made.begin())
        EnqueueRoundTrip(_jobs("0"))(PostgresTransaction(other, 0, 0))
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
        session = Session(address, ServerClock())
        connection, _ = session.perform(lambda tx: tx.connection)
        assert connection.execute("SHOW statement_timeout").fetchone() == (meant,)
        session.close()


@pytest.fixture
def hearers(session: Session, made: Address) -> Iterator[list[tuple[WakeUps, threading.Event]]]:
    """Two processes, as it were, and what each of them hears; the session is the first one's."""
    events = [threading.Event() for _ in range(2)]
    each = [WakeUps(made, event.set, session) for event in events]
    for wake_ups in each:
        wake_ups.listen()
        wake_ups.wait(SECONDS)
    for event in events:
        event.clear()
    yield list(zip(each, events, strict=True))
    for wake_ups in each:
        wake_ups.stop()


def test_what_is_sent_behind_a_commit_is_heard_by_the_others_only(
    session: Session, hearers: list[tuple[WakeUps, threading.Event]]
) -> None:
    [(ours, own), (_, heard)] = hearers
    _enqueue(session, _jobs("0"))
    ours.tell(session)
    assert heard.wait(SECONDS)
    assert _enqueue(session, _jobs("1")) == [Enqueued("1", True)]
    assert not own.is_set()


def test_what_follows_too_soon_is_told_a_little_later(
    session: Session, hearers: list[tuple[WakeUps, threading.Event]]
) -> None:
    [(ours, _), (_, heard)] = hearers
    _enqueue(session, _jobs("0"))
    ours.tell(session)
    assert heard.wait(SECONDS)
    for again in "12":  # the second at the latest follows too soon
        heard.clear()
        _enqueue(session, _jobs(again))
        ours.tell(session)
        assert heard.wait(SECONDS)


def test_who_does_not_listen_tells_all_the_same_on_the_connection_it_has(
    session: Session, made: Address, hearers: list[tuple[WakeUps, threading.Event]]
) -> None:
    _, (_, heard) = hearers
    producer = WakeUps(made, lambda: None, session)
    _enqueue(session, _jobs("0"))
    producer.tell(session)
    assert heard.wait(SECONDS)
    heard.clear()
    producer.tell(session)
    producer.tell(session)
    producer.stop()  # which leaves nothing untold
    assert heard.wait(SECONDS)


def test_a_statement_that_the_server_has_forgotten_is_prepared_again(session: Session) -> None:
    _enqueue(session, _jobs("0"))
    session.perform(lambda tx: tx.connection.execute("DEALLOCATE ALL"))
    assert _enqueue(session, _jobs("1")) == [Enqueued("1", True)]


class Waiting:
    """A trip that the running loop waits for, and what came of it."""

    def __init__(self, session: Session, jobs: list[NewJob]) -> None:
        self.ended = asyncio.Event()
        self.sent: Sent[list[Enqueued]] | None = None
        self.in_loop = False
        self._loop = asyncio.get_running_loop()
        self.begun = session.begin(EnqueueRoundTrip(jobs), self._loop, self._end)

    def _end(self, sent: Sent[list[Enqueued]], in_loop: bool) -> None:
        self.sent, self.in_loop = sent, in_loop
        self._loop.call_soon_threadsafe(self.ended.set)


@pytest.fixture
def warm(session: Session) -> Session:
    """A session that has enqueued before."""
    _enqueue(session, _jobs("warm"))
    return session


async def _end(trip: Waiting) -> Sent[list[Enqueued]]:
    assert trip.begun
    async with asyncio.timeout(SECONDS):
        await trip.ended.wait()
    assert trip.sent is not None
    return trip.sent


async def test_an_event_loop_waits_for_an_answer_without_a_thread(warm: Session) -> None:
    trip = Waiting(warm, _jobs("0"))
    assert (await _end(trip)).result == [Enqueued("0", True)]
    assert trip.in_loop


async def test_a_loop_that_is_held_up_keeps_the_connection_from_nobody(
    warm: Session, made: Address
) -> None:
    answers: list[Enqueued] = []
    other_thread = threading.Thread(target=lambda: answers.extend(_enqueue(warm, _jobs("1"))))
    with connect(made) as other:
        other.execute(made.begin())
        EnqueueRoundTrip(_jobs("0"))(PostgresTransaction(other, 0, 0))
        trip = Waiting(warm, _jobs("0"))  # which waits for the other transaction
        other_thread.start()
        other.execute("ROLLBACK")
    other_thread.join(SECONDS)  # and the loop cannot look meanwhile
    assert answers == [Enqueued("1", True)]
    assert (await _end(trip)).result == [Enqueued("0", True)]
    assert not trip.in_loop


async def test_of_a_trip_that_is_lost_on_the_way_a_loop_hears_that_nobody_knows(
    warm: Session, made: Address, admin: Connection
) -> None:
    pid = _pid(warm)
    with connect(made) as other:
        other.execute(made.begin())
        EnqueueRoundTrip(_jobs("0"))(PostgresTransaction(other, 0, 0))
        trip = Waiting(warm, _jobs("0"))
        _until(
            admin,
            "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock'",
            pid,
        )
        admin.execute("SELECT pg_terminate_backend(%s, 10000)", (pid,))
        sent = await _end(trip)
        other.execute("ROLLBACK")
    assert "it may or may not be done" in str(sent.error)
    assert _enqueue(warm, _jobs("1")) == [Enqueued("1", True)]


async def test_what_the_server_refuses_is_left_to_a_transaction(warm: Session) -> None:
    refused = await _end(Waiting(warm, [NewJob(id="0", type="mail", payload="{")]))
    assert (refused.result, refused.error) == (None, None)
    warm.perform(lambda tx: tx.connection.execute("DEALLOCATE ALL"))
    forgotten = await _end(Waiting(warm, _jobs("1")))
    assert (forgotten.result, forgotten.error) == (None, None)
    assert not Waiting(warm, _jobs("1")).begun
    assert _enqueue(warm, _jobs("1")) == [Enqueued("1", True)]


async def test_a_text_that_postgresql_cannot_hold_is_not_cut_short(warm: Session) -> None:
    assert not Waiting(warm, [NewJob(id="0\0", type="mail")]).begun
    with pytest.raises(InvalidOption, match="NUL"):
        _enqueue(warm, [NewJob(id="0\0", type="mail")])


async def test_tags_and_everything_else_come_back_as_they_were_sent(store: Store) -> None:
    job = NewJob(
        id="0",
        type="mail",
        payload='{"a": "\\\\ \\" é"}',
        queue="post",
        category="c",
        priority=2,
        max_retries=7,
        retry_delay_ms=70,
        backoff_multiplier=1.5,
        timeout_ms=900,
        scheduled_at=1,
        expires_at=4_000_000_000_000,
        tenant_id="acme",
        workspace_id="w",
        created_by="ada",
        parent_job_id="p",
        schedule_id="s",
        limit_key="openai",
        tags=('a "b"', "back\\slash", "{x,y}", "NULL", ""),
        metadata='{"m": 1}',
        trace_context="00-1",
    )
    await store.jobs.enqueue([NewJob(id="warm", type="mail")])
    assert await store.jobs.enqueue([job]) == [Enqueued("0", True)]
    [found] = await store.reader.get(["0"])
    for field in job.__struct_fields__:
        if hasattr(found, field):
            assert getattr(found, field) == getattr(job, field), field


async def test_who_holds_the_connection_for_a_moment_keeps_no_answer_from_the_loop(
    warm: Session, made: Address
) -> None:
    connection, _ = warm.perform(lambda tx: tx.connection)
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with warm._lock:
            held.set()
            release.wait(SECONDS)

    with connect(made) as other:
        other.execute(made.begin())
        EnqueueRoundTrip(_jobs("0"))(PostgresTransaction(other, 0, 0))
        # It waits for the other transaction: else the answer may be taken as soon as it is sent.
        trip = Waiting(warm, _jobs("0"))
        other.execute("ROLLBACK")
    assert readable([connection.fileno()], SECONDS)
    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(SECONDS)
    for _ in range(3):  # in which the loop looks, and cannot
        await asyncio.sleep(0)
    assert trip.sent is None
    release.set()
    holder.join(SECONDS)
    assert not holder.is_alive()
    assert (await _end(trip)).result == [Enqueued("0", True)]


async def test_a_hint_goes_behind_a_trip_that_is_under_way(
    warm: Session, made: Address, hearers: list[tuple[WakeUps, threading.Event]]
) -> None:
    _, (_, heard) = hearers
    producer = WakeUps(made, lambda: None, warm)
    trip = Waiting(warm, _jobs("0"))
    producer.tell(warm)
    await _end(trip)
    assert await asyncio.to_thread(heard.wait, SECONDS)
    producer.stop()


async def test_of_two_forgotten_statements_the_one_that_is_known_again_stays_known(
    warm: Session,
) -> None:
    _enqueue(warm, _jobs(*"0123456789"))
    warm.perform(lambda tx: tx.connection.execute("DEALLOCATE ALL"))
    _enqueue(warm, _jobs("a"))
    forgotten = await _end(Waiting(warm, _jobs(*"bcdefghijk")))
    assert (forgotten.result, forgotten.error) == (None, None)
    assert _enqueue(warm, _jobs("l")) == [Enqueued("l", True)]
