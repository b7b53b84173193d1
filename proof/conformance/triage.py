"""Dead letters many at a time: groups, canaries, a spread release, other arguments."""

from typing import Any

import pytest
from msgspec.structs import replace

from penstock.model.errors import IllegalTransition, KeyTaken
from penstock.model.failure import Failure
from penstock.model.not_found import JobNotFound
from penstock.model.retry import ErrorClass
from penstock.model.states import Status
from penstock.store.contract import DeadLetter, Resolution, Store
from penstock.testing.clock import FakeClock
from proof.conformance.build import (
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
        assert (group.count, group.open) == (2, 2)
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

    async def test_the_group_with_the_newest_letter_comes_first(self, store: Store) -> None:
        closed = [await _died_of(store, LATE) for _ in range(3)]
        await _died_of(store, BROKEN)
        await store.dead.resolve(closed, Resolution.RESOLVED, notes=None, by=None)
        counts = [(g.error_code, g.open, g.count) for g in await store.dead.groups()]
        assert counts == [("ValueError", 1, 1), ("TimeoutError", 0, 3)]
        assert [g.open for g in await store.dead.groups(only_open=True)] == [1]
        newest = await _died_of(store, LATE)
        groups = await store.dead.groups(only_open=True)
        assert [(g.open, g.count) for g in groups] == [(1, 4), (1, 1)]
        assert groups[0].newest_id == newest

    async def test_groups_are_found_in_pages(self, store: Store) -> None:
        ids = [await _died_of(store, LATE, type=f"t{n}", tenant_id=f"c{n % 2}") for n in range(5)]
        await _died_of(store, LATE, type="t1", tenant_id="c1")
        await store.dead.resolve(ids[2:3], Resolution.IGNORED, notes=None, by=None)

        async def pages(**where: Any) -> list[list[str]]:
            found: list[list[str]] = []
            before: str | None = None
            while groups := await store.dead.groups(before=before, limit=2, **where):
                found.append([group.type for group in groups])
                before = groups[-1].newest_id
            return found

        assert await pages() == [["t1", "t4"], ["t3", "t2"], ["t0"]]
        assert await pages(only_open=True) == [["t1", "t4"], ["t3", "t0"]]
        assert await pages(tenant_id="c0") == [["t4", "t2"], ["t0"]]
        assert await pages(tenant_id="c0", only_open=True) == [["t4", "t0"]]
        assert await pages(type="t3") == [["t3"]]

    async def test_one_group_is_found_by_its_name(self, store: Store) -> None:
        await _died_of(store, LATE, tenant_id="acme")
        await _died_of(store, LATE, tenant_id="globex")
        await _died_of(store, BROKEN, type="other")
        name = ("work", LATE.fingerprint)
        assert await store.dead.group(*name) == (await store.dead.groups())[1]
        [ours] = await store.dead.groups(tenant_id="acme")
        assert await store.dead.group(*name, tenant_id="acme") == ours
        assert await store.dead.group(*name, tenant_id="initech") is None
        assert await store.dead.group("work", BROKEN.fingerprint) is None
        assert set(await store.dead.group_names()) == {name, ("other", BROKEN.fingerprint)}
        assert await store.dead.group_names(tenant_id="acme") == [name]
        assert await store.dead.group_names(type="other") == [("other", BROKEN.fingerprint)]

    async def test_a_letter_that_dies_of_something_else_changes_its_group(
        self, store: Store
    ) -> None:
        job_id = await _died_of(store, LATE)
        other = await _died_of(store, LATE)
        await store.jobs.requeue([job_id])
        assert [(g.open, g.count) for g in await store.dead.groups()] == [(1, 2)]
        lease = await claim_one(store)
        await store.jobs.settle(OWNER, [replace(buried(lease), failure=BROKEN)])
        groups = await store.dead.groups()
        assert [(g.error_code, g.open, g.count, g.newest_id) for g in groups] == [
            ("ValueError", 1, 1, job_id),
            ("TimeoutError", 1, 1, other),
        ]
        found = await store.dead.find(type="work", fingerprint=LATE.fingerprint)
        assert [letter.job_id for letter in found] == [other]

    async def test_a_group_without_letters_is_gone(self, store: Store) -> None:
        first, last = [await _died_of(store, LATE) for _ in range(2)]
        await store.dead.purge([last])
        [group] = await store.dead.groups()
        assert (group.count, group.newest_id) == (1, first)
        await store.dead.purge([first])
        assert await store.dead.groups() == []
        assert await store.dead.group_names() == []

    async def test_a_letter_somebody_investigates_is_open_still(self, store: Store) -> None:
        one, two, three = [await _died_of(store, LATE) for _ in range(3)]
        await store.dead.resolve([one], Resolution.INVESTIGATING, notes=None, by=None)
        await store.dead.resolve([two], Resolution.IGNORED, notes=None, by=None)
        [group] = await store.dead.groups()
        assert (group.count, group.open, group.newest_id) == (3, 2, three)

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
