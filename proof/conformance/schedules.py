"""Schedules: kept by name, found when due, and fired by exactly one of many."""

import asyncio
from typing import Any

from msgspec.structs import replace

from penstock.model.ids import derived_id, new_id
from penstock.model.job import NewJob
from penstock.model.schedule import Misfire, Schedule, ScheduleKind
from penstock.store.contract import JobFilter, Store
from penstock.testing.clock import FakeClock

MINUTE_MS = 60_000


def a_schedule(**fields: Any) -> Schedule:
    """A schedule of type `work` that ticks every minute."""
    chosen: dict[str, Any] = {"id": new_id(), "name": "nightly", "type": "work"}
    chosen |= {"kind": ScheduleKind.INTERVAL, "interval_ms": MINUTE_MS}
    return Schedule(**chosen | fields)


def tick_job(schedule: Schedule, tick: int) -> NewJob:
    """The job of one tick."""
    job_id = derived_id(tick, schedule.id)
    return NewJob(id=job_id, type="work", schedule_id=schedule.id, scheduled_at=tick)


async def due_names(store: Store, limit: int = 100) -> list[str]:
    """The schedules that are due."""
    return [schedule.name for schedule in (await store.schedules.due(limit))[0]]


class TestSchedules:
    """Put, read, removed."""

    async def test_a_schedule_is_read_back(self, store: Store, clock: FakeClock) -> None:
        put = a_schedule(
            kind=ScheduleKind.CRON,
            tenant_id="acme",
            payload='{"a":"{{ tick }}"}',
            options='{"queue":"slow"}',
            expression="0 3 * * *",
            interval_ms=None,
            zone="Europe/Berlin",
            misfire=Misfire.ALL,
            starts_at=1,
            ends_at=2_000_000_000_000,
            expires_at=3_000_000_000_000,
            max_runs=7,
            next_run_at=4,
            by_operator=True,
            created_by="ada",
            metadata='{"declared":"x"}',
        )
        stored = await store.schedules.put(put)
        assert stored == replace(put, created_at=clock.now(), updated_at=clock.now())
        assert await store.schedules.get("nightly", "acme") == stored
        assert await store.schedules.get("nightly") is None

    async def test_putting_it_again_keeps_its_id_and_its_counts(
        self, store: Store, clock: FakeClock
    ) -> None:
        first = await store.schedules.put(a_schedule(next_run_at=clock.now()))
        job = tick_job(first, clock.now())
        await store.schedules.fire(first, [job], None, last_run_at=clock.now())
        made = clock.now()
        clock.advance(seconds=5)
        again = await store.schedules.put(a_schedule(interval_ms=5, next_run_at=9))
        assert (again.id, again.created_at, again.updated_at) == (first.id, made, clock.now())
        assert (again.run_count, again.last_run_at) == (1, made)
        assert (again.interval_ms, again.next_run_at) == (5, 9)
        assert again.revision > first.revision

    async def test_names_belong_to_tenants(self, store: Store) -> None:
        for tenant in ("", "acme", "globex"):
            await store.schedules.put(a_schedule(tenant_id=tenant))
        assert len(await store.schedules.known()) == 3
        for tenant in ("", "acme", "globex"):
            [one] = await store.schedules.known(tenant_id=tenant)
            assert one.tenant_id == tenant
        assert await store.schedules.known(tenant_id="initech") == []

    async def test_all_are_listed_by_name(self, store: Store) -> None:
        for name in ("c", "a", "b"):
            await store.schedules.put(a_schedule(name=name))
        assert [one.name for one in await store.schedules.known()] == ["a", "b", "c"]
        assert [one.name for one in await store.schedules.known(2)] == ["a", "b"]

    async def test_a_removed_schedule_is_gone_and_its_jobs_stay(
        self, store: Store, clock: FakeClock
    ) -> None:
        made = await store.schedules.put(a_schedule(next_run_at=clock.now()))
        await store.schedules.fire(made, [tick_job(made, clock.now())], clock.now())
        assert await store.schedules.remove("nightly")
        assert not await store.schedules.remove("nightly")
        assert await store.schedules.get("nightly") is None
        assert len(await store.reader.find(JobFilter(schedule_id=made.id))) == 1

    async def test_schedules_past_their_expiry_are_deleted(
        self, store: Store, clock: FakeClock
    ) -> None:
        await store.schedules.put(a_schedule(name="brief", expires_at=clock.now() + 10))
        await store.schedules.put(a_schedule(name="long"))
        assert await store.schedules.expire() == 0
        clock.advance(seconds=0.010)
        assert await store.schedules.expire() == 1
        assert [one.name for one in await store.schedules.known()] == ["long"]


class TestDueSchedules:
    """Which schedules are due, and when the next one will be."""

    async def test_the_most_overdue_come_first(self, store: Store, clock: FakeClock) -> None:
        now = clock.now()
        for name, next_run_at in (("b", now), ("a", now - 5), ("later", now + 7), ("over", None)):
            await store.schedules.put(a_schedule(name=name, next_run_at=next_run_at))
        found, next_in_ms = await store.schedules.due()
        assert [one.name for one in found] == ["a", "b"]
        assert next_in_ms == 7
        assert await due_names(store, limit=1) == ["a"]

    async def test_without_schedules_there_is_nothing_to_wait_for(self, store: Store) -> None:
        assert await store.schedules.due() == ([], None)

    async def test_a_paused_one_is_not_due_until_it_is_resumed(
        self, store: Store, clock: FakeClock
    ) -> None:
        await store.schedules.put(a_schedule(next_run_at=clock.now()))
        assert await store.schedules.pause("nightly")
        assert not await store.schedules.pause("nightly")
        assert await store.schedules.due() == ([], None)
        paused = await store.schedules.get("nightly")
        assert paused is not None
        assert not paused.enabled
        assert await store.schedules.resume(paused, clock.now() + 3)
        assert await store.schedules.due() == ([], 3)

    async def test_a_pause_or_resume_of_another_revision_does_nothing(
        self, store: Store, clock: FakeClock
    ) -> None:
        seen = await store.schedules.put(a_schedule(next_run_at=clock.now()))
        now = await store.schedules.put(a_schedule(next_run_at=clock.now()))
        assert not await store.schedules.pause("nightly", revision=seen.revision)
        assert await store.schedules.pause("nightly", revision=now.revision)
        assert not await store.schedules.resume(now, clock.now())
        assert await due_names(store) == []

    async def test_an_expired_one_is_not_due(self, store: Store, clock: FakeClock) -> None:
        now = clock.now()
        await store.schedules.put(a_schedule(next_run_at=now, expires_at=now))
        assert await due_names(store) == []


class TestFire:
    """Comparing, advancing and enqueueing are one step."""

    async def test_jobs_are_enqueued_and_the_schedule_moves_on(
        self, store: Store, clock: FakeClock
    ) -> None:
        now = clock.now()
        made = await store.schedules.put(a_schedule(next_run_at=now))
        jobs = [tick_job(made, now - 1), tick_job(made, now)]
        assert await store.schedules.fire(made, jobs, now + 60, last_run_at=now)
        fired = await store.schedules.get("nightly")
        assert fired is not None
        assert (fired.next_run_at, fired.last_run_at, fired.run_count) == (now + 60, now, 2)
        found = await store.reader.find(JobFilter(schedule_id=made.id))
        assert {job.id for job in found} == {job.id for job in jobs}

    async def test_firing_nothing_only_moves_it_on(self, store: Store, clock: FakeClock) -> None:
        made = await store.schedules.put(a_schedule(next_run_at=clock.now()))
        assert await store.schedules.fire(made, [], clock.now() + 60)
        fired = await store.schedules.get("nightly")
        assert fired is not None
        assert (fired.last_run_at, fired.run_count) == (None, 0)

    async def test_of_many_that_saw_the_same_tick_one_fires(
        self, store: Store, clock: FakeClock
    ) -> None:
        made = await store.schedules.put(a_schedule(next_run_at=clock.now()))
        jobs = [NewJob(id=new_id(), type="work", schedule_id=made.id) for _ in range(10)]
        fired = await asyncio.gather(*(store.schedules.fire(made, [job], None) for job in jobs))
        assert sorted(fired) == [False] * 9 + [True]
        assert len(await store.reader.find(JobFilter(schedule_id=made.id))) == 1

    async def test_a_schedule_that_was_changed_paused_or_removed_is_not_fired(
        self, store: Store, clock: FakeClock
    ) -> None:
        for name in ("changed", "paused", "removed"):
            await store.schedules.put(a_schedule(name=name, next_run_at=clock.now()))
        seen, _ = await store.schedules.due()
        await store.schedules.put(a_schedule(name="changed", next_run_at=clock.now()))
        await store.schedules.pause("paused")
        await store.schedules.remove("removed")
        for schedule in seen:
            job = tick_job(schedule, clock.now())
            assert not await store.schedules.fire(schedule, [job], None)
        assert await store.reader.find(JobFilter()) == []

    async def test_a_job_that_was_there_already_is_not_counted_again(
        self, store: Store, clock: FakeClock
    ) -> None:
        made = await store.schedules.put(a_schedule(next_run_at=clock.now()))
        job = tick_job(made, clock.now())
        await store.schedules.fire(made, [job], clock.now())
        [again], _ = await store.schedules.due()
        assert await store.schedules.fire(again, [job], None)
        fired = await store.schedules.get("nightly")
        assert fired is not None
        assert fired.run_count == 1
        assert len(await store.reader.find(JobFilter(schedule_id=made.id))) == 1
