"""An enqueue can join the caller's own transaction, whatever library its connection is of."""

import asyncio

import pytest

from penstock import Penstock
from penstock.model.errors import ParentNotFound
from penstock.model.job import NewJob
from penstock.model.states import Status
from penstock.model.store_errors import StoreError, StoreUnavailable
from penstock.store.contract import JobFilter, Store
from penstock.store.open import open_store
from proof.conformance.build import (
    OWNER,
    a_job,
    an_edge,
    claim_all,
    completed,
    enqueue,
    job_of,
    status_of,
)
from tests.support.guests import GUESTS, Guest, Psycopg

MAIL = NewJob(id="0", type="mail", key="welcome")
WRONG = NewJob(id="1", type="mail", priority=99)
SETTINGS = """
SELECT concat_ws(' | ', current_setting('search_path'), current_setting('role'), current_user,
    current_setting('lock_timeout'), current_setting('statement_timeout'),
    current_setting('client_encoding'), current_setting('penstock.tenant', true),
    current_setting('synchronous_commit'), current_setting('idle_in_transaction_session_timeout'))
"""


async def _ids(store: Store) -> list[str]:
    return sorted(job.id for job in await store.reader.find(JobFilter()))


async def test_a_commit_makes_the_job_visible_together_with_the_callers_rows(
    store: Store, guest: Guest
) -> None:
    await guest.execute("CREATE TEMP TABLE orders ON COMMIT PRESERVE ROWS AS SELECT 1 AS id")
    [answer] = await store.jobs.enqueue([MAIL], connection=guest.connection)
    assert answer.created
    assert await _ids(store) == []
    await guest.commit()
    assert await _ids(store) == ["0"]
    assert await guest.execute("SELECT count(*) FROM orders") == 1


async def test_a_rollback_leaves_neither_the_job_nor_its_key(store: Store, guest: Guest) -> None:
    await store.jobs.enqueue([MAIL], connection=guest.connection)
    await guest.rollback()
    assert await _ids(store) == []
    [answer] = await store.jobs.enqueue([NewJob(id="1", type="mail", key="welcome")])
    assert answer.created


async def test_a_change_that_commits_late_under_a_low_number_is_told_late_and_not_lost(
    store: Store, guest: Guest
) -> None:
    await store.changes.follow("a.new", [Status.QUEUED])
    await store.jobs.enqueue([NewJob(id="slow", type="mail")], connection=guest.connection)
    await store.jobs.enqueue([NewJob(id="quick", type="mail")])
    [first] = await store.changes.waiting("a.new")
    await guest.commit()
    await store.changes.confirm("a.new", [first.position])
    [second] = await store.changes.waiting("a.new")
    assert (first.job_id, second.job_id) == ("quick", "slow")
    assert int(second.position) < int(first.position)
    await store.jobs.enqueue([NewJob(id="never", type="mail")], connection=guest.connection)
    await guest.rollback()
    assert await store.changes.waiting("a.new") == [second]


async def test_a_batch_is_inserted_as_it_would_be_without_a_connection(
    store: Store, guest: Guest
) -> None:
    def batch(name: str) -> list[NewJob]:
        return [
            NewJob(
                id=f"{name}-{place}",
                type="mail",
                priority=place % 10 + 1,
                payload=f'{{"to": "{place}", "text": "\u00e9 \u2603 \U0001f600 % $1 ? :name"}}',
                tags=("a", "b") if place % 2 else (),
                metadata='{"b": 1, "a": 2}' if place % 3 else None,
                backoff_multiplier=2 if place % 2 else None,
                expires_in_ms=60_000 if place % 4 else None,
            )
            for place in range(30)
        ]

    await store.jobs.enqueue(batch("own"))
    answers = await store.jobs.enqueue(batch("theirs"), connection=guest.connection)
    await guest.commit()
    assert all(answer.created for answer in answers)
    for place in range(30):
        own, theirs = await job_of(store, f"own-{place}"), await job_of(store, f"theirs-{place}")
        assert (theirs.payload, theirs.tags, theirs.metadata) == (
            own.payload,
            own.tags,
            own.metadata,
        )
        assert (theirs.priority, theirs.status, theirs.backoff_multiplier) == (
            own.priority,
            own.status,
            own.backoff_multiplier,
        )
    again = await store.jobs.enqueue(batch("theirs"), connection=guest.connection)
    assert not any(answer.created for answer in again)


async def test_keys_edges_and_lines_work_inside_the_callers_transaction(
    store: Store, guest: Guest
) -> None:
    done = await enqueue(store, type="first")
    [lease] = await claim_all(store, types=("first",))
    await store.jobs.settle(OWNER, [completed(lease, '{"sum": 3}')])
    waiting = await enqueue(store, type="second")
    connection = guest.connection
    parent = a_job(type="third", key="once")
    edges = (
        an_edge(done, kind="data", argument="total"),
        an_edge(waiting),
        an_edge(parent.id),
    )
    freed = a_job(after=(an_edge(done, kind="data", argument="total"),))
    child = a_job(after=edges)
    answers = await store.jobs.enqueue([parent, freed, child], connection=connection)
    assert all(answer.created for answer in answers)
    [again] = await store.jobs.enqueue([a_job(type="third", key="once")], connection=connection)
    assert (again.id, again.created) == (parent.id, False)
    line = [a_job(order_key="line") for _ in range(3)]
    for job in line:
        await store.jobs.enqueue([job], connection=connection)
    await guest.commit()
    assert (await job_of(store, child.id)).waiting_on == 2
    assert '"total":{"sum": 3}' in (await job_of(store, freed.id)).payload.replace(": {", ":{")
    assert [(await job_of(store, job.id)).waiting_on for job in line] == [0, 1, 1]
    assert await store.upkeep.release() == 0


async def test_a_parent_that_failed_ends_its_new_child_at_once(store: Store, guest: Guest) -> None:
    parent = await enqueue(store)
    await store.jobs.cancel([parent], "no")
    child = a_job(key="mine", order_key="line", after=(an_edge(parent, on_failure="cancel"),))
    await store.jobs.enqueue([child], connection=guest.connection)
    await guest.commit()
    assert await status_of(store, child.id) is Status.CANCELLED


async def test_a_failed_enqueue_leaves_the_callers_transaction_usable(
    store: Store, guest: Guest
) -> None:
    await guest.execute("CREATE TEMP TABLE orders ON COMMIT PRESERVE ROWS AS SELECT 1 AS id")
    before = await guest.execute(SETTINGS)
    with pytest.raises(StoreError, match="23514"):
        await store.jobs.enqueue([MAIL, WRONG], connection=guest.connection)
    lost = a_job(after=(an_edge("nobody"),))
    with pytest.raises(ParentNotFound):
        await store.jobs.enqueue([lost], connection=guest.connection)
    assert await guest.execute(SETTINGS) == before
    await store.jobs.enqueue([a_job(id="2")], connection=guest.connection)
    await guest.commit()
    assert await guest.execute("SELECT count(*) FROM orders") == 1
    assert await _ids(store) == ["2"]


async def test_the_caller_finds_its_settings_as_they_were(store: Store, guest: Guest) -> None:
    await guest.execute("SET search_path = pg_catalog, public")
    await guest.execute("SET LOCAL lock_timeout = '3s'")
    await guest.execute("SET LOCAL statement_timeout = '7s'")
    await guest.execute("SET ROLE penstock_worker")
    await guest.execute("SET synchronous_commit = local")
    inside = await guest.execute(SETTINGS)
    await store.jobs.enqueue([MAIL], connection=guest.connection)
    assert await guest.execute(SETTINGS) == inside
    await guest.commit()
    after = await guest.execute(SETTINGS)
    assert after.startswith("pg_catalog, public | penstock_worker | penstock_worker | 0 | 0 |")
    assert await _ids(store) == ["0"]


async def test_the_callers_commit_wakes_another_process(store: Store, guest: Guest) -> None:
    other = open_store(store.url)
    await other.open()
    subscription = other.subscribe()
    try:
        await store.jobs.enqueue([MAIL], connection=guest.connection)
        while await subscription.wait(0.05):  # what it heard of while it opened
            assert await _ids(other) == []
        await guest.commit()
        assert await subscription.wait(10)
        assert await _ids(other) == ["0"]
    finally:
        subscription.close()
        await other.close()


async def test_enqueues_on_one_connection_at_the_same_time_take_turns(
    store: Store, guest: Guest
) -> None:
    before = await guest.execute(SETTINGS)
    jobs = [a_job(priority=5 + place % 2 * 90, order_key="line") for place in range(10)]
    answers = await asyncio.gather(
        *(store.jobs.enqueue([job], connection=guest.connection) for job in jobs),
        return_exceptions=True,
    )
    assert [isinstance(answer, StoreError) for answer in answers] == [False, True] * 5
    assert await guest.execute(SETTINGS) == before
    await guest.commit()
    assert await _ids(store) == sorted(job.id for job in jobs[::2])


async def test_an_enqueue_that_is_given_up_leaves_no_job_and_a_usable_transaction(
    store: Store, guest: Guest
) -> None:
    async with GUESTS["asyncpg"](store.url) as holder:
        await store.jobs.enqueue([MAIL], connection=holder.connection)
        if isinstance(guest, Psycopg):  # a statement that blocks its thread is waited for
            await guest.execute("SET LOCAL lock_timeout = '300ms'")
        before = await guest.execute(SETTINGS)
        waits = asyncio.create_task(
            store.jobs.enqueue([a_job(type="mail", key="welcome")], connection=guest.connection)
        )
        await _until_somebody_waits(holder)
        waits.cancel()
        with pytest.raises(asyncio.CancelledError):
            async with asyncio.timeout(5):
                await waits
        assert await guest.execute(SETTINGS) == before
        await store.jobs.enqueue([a_job(id="2")], connection=guest.connection)
        await guest.commit()
    assert await _ids(store) == ["2"]


async def test_a_key_that_another_transaction_keeps_for_too_long_is_a_sentence(
    store: Store, guest: Guest
) -> None:
    async with GUESTS["psycopg"](store.url) as holder:
        await store.jobs.enqueue([MAIL], connection=holder.connection)
        await guest.execute("SET LOCAL lock_timeout = '50ms'")
        with pytest.raises(StoreUnavailable, match="held a lock for too long"):
            await store.jobs.enqueue(
                [a_job(type="mail", key="welcome")], connection=guest.connection
            )
        await store.jobs.enqueue([a_job(id="2")], connection=guest.connection)
        await guest.commit()
    assert await _ids(store) == ["2"]


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
@pytest.mark.parametrize("guest", ["psycopg-async", "asyncpg", "Session"], indirect=True)
async def test_a_job_that_ended_since_the_transaction_began_gets_no_second_life(
    store: Store, guest: Guest, level: str
) -> None:
    await guest.rollback()
    await guest.execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
    await guest.execute("SELECT 1")
    job = a_job()
    await store.jobs.enqueue([job])
    [lease] = await claim_all(store)
    await store.jobs.settle(OWNER, [completed(lease)])
    with pytest.raises(StoreUnavailable, match="repeat the transaction"):
        await store.jobs.enqueue([job], connection=guest.connection)
    await store.jobs.enqueue([a_job(id="2")], connection=guest.connection)
    await guest.commit()
    assert await claim_all(store) != []
    assert await claim_all(store) == []


@pytest.mark.thorough
async def test_a_hundred_transactions_with_one_key_make_one_job(store: Store) -> None:
    kinds = ["psycopg", "psycopg-async", "asyncpg", "AsyncSession-asyncpg"]

    async def one(kind: str) -> tuple[str, bool]:
        async with GUESTS[kind](store.url) as guest:
            job = a_job(type="mail", key="welcome")
            [answer] = await store.jobs.enqueue([job], connection=guest.connection)
            await guest.commit()
        return answer.id, answer.created

    room = asyncio.Semaphore(40)

    async def in_turn(place: int) -> tuple[str, bool]:
        async with room:
            return await one(kinds[place % len(kinds)])

    async with asyncio.timeout(60):
        answers = await asyncio.gather(*map(in_turn, range(100)))
    assert len({job_id for job_id, _ in answers}) == 1
    assert sum(created for _, created in answers) == 1
    assert len(await _ids(store)) == 1


async def test_when_the_first_of_two_rolls_back_the_second_makes_the_job(store: Store) -> None:
    async with GUESTS["asyncpg"](store.url) as one, GUESTS["psycopg-async"](store.url) as two:
        await store.jobs.enqueue([MAIL], connection=one.connection)
        job = a_job(type="mail", key="welcome")
        second = asyncio.create_task(store.jobs.enqueue([job], connection=two.connection))
        await _until_somebody_waits(one)
        await one.rollback()
        [answer] = await second
        await two.commit()
    assert answer.created
    assert await _ids(store) == [job.id]


async def _until_somebody_waits(guest: Guest) -> None:
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    async with asyncio.timeout(10):
        while not await guest.execute(waiting):
            await guest.execute("SELECT pg_stat_clear_snapshot()")


@pytest.mark.parametrize("guest", ["psycopg", "psycopg-async", "Session"], indirect=True)
async def test_code_without_an_event_loop_joins_its_transactions_too(
    store: Store, guest: Guest
) -> None:
    app = Penstock(store.url)

    @app.job
    async def mail() -> None: ...

    handle = await asyncio.to_thread(app.sync.enqueue, mail.new(), connection=guest.connection)
    assert await _ids(store) == []
    await guest.commit()
    assert await _ids(store) == [handle.id]
    await asyncio.to_thread(app.sync.close)
