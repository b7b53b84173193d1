"""Dead letters many at a time: groups, canaries, a spread release, other arguments."""

import pytest
from msgspec.structs import replace

from penstock.model.errors import IllegalTransition, JobNotFound, KeyTaken
from penstock.model.failure import Failure
from penstock.model.retry import ErrorClass
from penstock.model.states import Status
from penstock.store.contract import DeadLetter, Resolution, Store
from penstock.testing.clock import FakeClock
from penstock.testing.conformance.build import (
    BROKEN,
    NOBODY,
    OWNER,
    buried,
    claim_all,
    claim_one,
    completed,
    dead_job,
    enqueue,
    job_of,
    running,
    status_of,
)

LATE = Failure(ErrorClass.TIMEOUT, "TimeoutError", "too late", "", "timeout|TimeoutError|a.py:send")


async def _died_of(store: Store, failure: Failure, **fields: str) -> str:
    lease = await running(store, **fields)
    await store.jobs.settle(OWNER, [replace(buried(lease), failure=failure)])
    return lease.id


async def _letter(store: Store, job_id: str) -> DeadLetter:
    letter = await store.dead.get(job_id)
    assert letter is not None
    return letter


class TestGroups:
    """Alike dead letters are one thing to decide about."""

    async def test_alike_letters_are_one_group(self, store: Store, clock: FakeClock) -> None:
        first, began = await _died_of(store, LATE), clock.now()
        clock.advance(seconds=5)
        second = await _died_of(store, LATE)
        [group] = await store.dead.groups()
        assert (group.fingerprint, group.type) == (LATE.fingerprint, "work")
        assert (group.error, group.error_code) == ("too late", "TimeoutError")
        assert (group.count, group.unresolved) == (2, 2)
        assert (group.first_at, group.last_at) == (began, clock.now())
        assert group.newest_id == second
        assert (await _letter(store, first)).group == group.id

    async def test_another_type_or_another_error_is_another_group(self, store: Store) -> None:
        await _died_of(store, LATE)
        await _died_of(store, BROKEN)
        await _died_of(store, LATE, type="other")
        groups = await store.dead.groups()
        assert len({group.id for group in groups}) == 3
        assert [g.type for g in await store.dead.groups(type="other")] == ["other"]

    async def test_the_group_with_most_open_letters_comes_first(self, store: Store) -> None:
        settled = [await _died_of(store, LATE) for _ in range(3)]
        await _died_of(store, BROKEN)
        await store.dead.resolve(settled, Resolution.RESOLVED, notes=None, by=None)
        groups = await store.dead.groups()
        assert [(g.error_code, g.unresolved, g.count) for g in groups] == [
            ("ValueError", 1, 1),
            ("TimeoutError", 0, 3),
        ]
        assert len(await store.dead.groups(limit=1)) == 1

    async def test_groups_of_one_resolution_count_only_that(self, store: Store) -> None:
        one, _ = await _died_of(store, LATE), await _died_of(store, LATE)
        await store.dead.resolve([one], Resolution.IGNORED, notes=None, by=None)
        [group] = await store.dead.groups(resolution=Resolution.IGNORED)
        assert (group.count, group.unresolved, group.newest_id) == (1, 0, one)

    async def test_the_letters_of_a_group_are_found_in_pages(self, store: Store) -> None:
        ids = [await _died_of(store, LATE) for _ in range(3)]
        await _died_of(store, BROKEN)
        await _died_of(store, LATE, type="other")
        of = LATE.fingerprint
        page = await store.dead.find(type="work", fingerprint=of, limit=2)
        last = page[-1].job_id
        rest = await store.dead.find(type="work", fingerprint=of, limit=2, before=last)
        assert [letter.job_id for letter in (*page, *rest)] == ids[::-1]
        assert len(await store.dead.find(fingerprint=LATE.fingerprint)) == 4


class TestCanaries:
    """Jobs that were replayed ahead of their group are remembered."""

    async def test_canaries_are_found_by_their_group(self, store: Store) -> None:
        one, two, _ = [await _died_of(store, LATE) for _ in range(3)]
        await store.dead.mark_canaries([one, two, NOBODY], "3fa9c2d1")
        found = await store.dead.find(canary_of="3fa9c2d1")
        assert {letter.job_id for letter in found} == {one, two}
        assert (await _letter(store, one)).canary_of == "3fa9c2d1"
        assert await store.dead.find(canary_of="00000000") == []

    async def test_a_canary_stays_one_through_its_next_death(self, store: Store) -> None:
        job_id = await _died_of(store, LATE)
        await store.dead.mark_canaries([job_id], "3fa9c2d1")
        await store.jobs.requeue([job_id])
        await store.jobs.settle(OWNER, [buried(await claim_one(store))])
        [letter] = await store.dead.find(canary_of="3fa9c2d1")
        assert (letter.job_id, letter.fingerprint) == (job_id, BROKEN.fingerprint)

    async def test_a_mark_is_taken_off(self, store: Store) -> None:
        job_id = await _died_of(store, LATE)
        await store.dead.mark_canaries([job_id], "3fa9c2d1")
        await store.dead.mark_canaries([job_id], None)
        assert await store.dead.find(canary_of="3fa9c2d1") == []


class TestSpreadRequeue:
    """A requeue of many falls due little by little."""

    async def test_each_falls_due_a_while_after_the_one_before(
        self, store: Store, clock: FakeClock
    ) -> None:
        ids = [await dead_job(store) for _ in range(4)]
        await store.jobs.requeue(ids, spread_ms=100, delay_ms=1_000)
        due = [(await job_of(store, job_id)).scheduled_at - clock.now() for job_id in ids]
        assert due == [1_000, 1_100, 1_200, 1_300]
        assert await claim_all(store) == []
        clock.advance(seconds=1.15)
        assert [lease.id for lease in await claim_all(store)] == ids[:2]

    async def test_a_spread_below_a_millisecond_adds_up(
        self, store: Store, clock: FakeClock
    ) -> None:
        ids = [await dead_job(store) for _ in range(5)]
        await store.jobs.requeue(ids, spread_ms=0.5)
        due = [(await job_of(store, job_id)).scheduled_at - clock.now() for job_id in ids]
        assert due[-1] == 2

    async def test_one_that_is_refused_leaves_all_as_they_were(self, store: Store) -> None:
        ids = [await dead_job(store), await dead_job(store, key="k")]
        holder = await enqueue(store, key="k")
        with pytest.raises(KeyTaken, match=holder):
            await store.jobs.requeue(ids, spread_ms=100)
        assert await status_of(store, ids[0]) is Status.DEAD_LETTER
        assert (await _letter(store, ids[0])).resolution is Resolution.PENDING


class TestAmend:
    """Other arguments for a job that has ended."""

    async def test_a_dead_job_runs_with_its_new_arguments(self, store: Store) -> None:
        job_id = await dead_job(store, payload='{"to":"an"}')
        await store.jobs.amend(job_id, '{"to":"ann"}')
        assert await status_of(store, job_id) is Status.DEAD_LETTER
        await store.jobs.requeue([job_id])
        assert (await claim_one(store)).payload == '{"to":"ann"}'

    async def test_a_cancelled_job_may_be_amended(self, store: Store) -> None:
        job_id = await enqueue(store)
        await store.jobs.cancel([job_id], "wrong")
        await store.jobs.amend(job_id, '{"a":1}')
        assert (await job_of(store, job_id)).payload == '{"a":1}'

    async def test_a_job_that_waits_runs_or_is_done_keeps_its_arguments(self, store: Store) -> None:
        waiting = await enqueue(store, delay_ms=60_000)
        lease = await running(store)
        for job_id in (waiting, lease.id):
            with pytest.raises(IllegalTransition, match="amend"):
                await store.jobs.amend(job_id, '{"a":1}')
        await store.jobs.settle(OWNER, [completed(lease)])
        with pytest.raises(IllegalTransition, match="amend"):
            await store.jobs.amend(lease.id, '{"a":1}')
        assert (await job_of(store, lease.id)).payload == "{}"

    async def test_an_unknown_job_is_refused(self, store: Store) -> None:
        with pytest.raises(JobNotFound):
            await store.jobs.amend(NOBODY, "{}")
