"""The reader: jobs, pages of jobs, executions and logs."""

from typing import Any

import pytest

from penstock.model.ids import derived_id
from penstock.model.job import Job
from penstock.model.states import Status
from penstock.store.contract import JobFilter, Report, Store
from penstock.testing.clock import FakeClock
from proof.conformance.build import (
    NOBODY,
    OTHER,
    OWNER,
    a_job,
    claim_one,
    completed,
    enqueue,
    failed,
    running,
)


def _ids(jobs: list[Job]) -> list[str]:
    return [job.id for job in jobs]


class TestGet:
    """Jobs by id."""

    async def test_jobs_come_in_the_order_asked(self, store: Store) -> None:
        ids = [await enqueue(store) for _ in range(3)]
        asked = [ids[2], ids[0], ids[1]]
        assert _ids(await store.reader.get(asked)) == asked

    async def test_unknown_ids_are_left_out(self, store: Store) -> None:
        job_id = await enqueue(store)
        assert _ids(await store.reader.get([NOBODY, job_id])) == [job_id]

    async def test_nothing_asked_is_nothing_found(self, store: Store) -> None:
        assert await store.reader.get([]) == []


class TestRunning:
    """Jobs under a lease."""

    async def test_the_longest_running_come_first_and_prefetched_ones_last(
        self, store: Store, clock: FakeClock
    ) -> None:
        late = [await enqueue(store, type="late") for _ in range(2)]
        assert await store.reader.running() == []
        prefetched = await claim_one(store, types=("late",), limit=1, start=0)
        clock.advance(seconds=1)
        first = await running(store)
        clock.advance(seconds=1)
        second = await running(store)
        assert prefetched.id in late
        found = _ids(await store.reader.running())
        assert found == [first.id, second.id, prefetched.id]
        assert _ids(await store.reader.running(1)) == [first.id]


class TestFind:
    """Pages of jobs, newest first."""

    async def test_the_newest_come_first(self, store: Store, clock: FakeClock) -> None:
        ids = []
        for _ in range(3):
            ids.append(await enqueue(store))
            clock.advance(seconds=1)
        assert _ids(await store.reader.find(JobFilter())) == ids[::-1]

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("type", "wanted"),
            ("queue", "wanted"),
            ("tenant_id", "wanted"),
            ("parent_job_id", NOBODY),
        ],
    )
    async def test_a_filter_finds_only_its_own(self, store: Store, field: str, value: str) -> None:
        await enqueue(store)
        wanted = await enqueue(store, **{field: value})
        await enqueue(store)
        where: dict[str, Any] = {field: value}
        assert _ids(await store.reader.find(JobFilter(**where))) == [wanted]

    async def test_every_filter_of_a_search_is_one_of_a_page_too(
        self, store: Store, clock: FakeClock
    ) -> None:
        made = {"category": "c2", "payload": '{"to": "ann"}'}
        done = await running(store, id=derived_id(clock.now(), "done"), **made)
        await store.jobs.settle(OWNER, [completed(done)])
        clock.advance(seconds=60)
        job_id = derived_id(clock.now(), "other")
        other = await enqueue(store, id=job_id, payload='{"to": "bob"}')
        middle = clock.now() - 30_000
        for where, expected in (
            (JobFilter(category="c2"), [done.id]),
            (JobFilter(statuses=(Status.COMPLETED,)), [done.id]),
            (JobFilter(statuses=(Status.COMPLETED, Status.QUEUED)), [other, done.id]),
            (JobFilter(since=middle), [other]),
            (JobFilter(until=middle), [done.id]),
            (JobFilter(payload=(("to", '"bob"'),)), [other]),
            (JobFilter(text="ANN"), [done.id]),
            (JobFilter(text="nowhere"), []),
        ):
            assert _ids(await store.reader.find(where)) == expected, where

    async def test_a_tag_is_matched_whole(self, store: Store) -> None:
        wanted = await enqueue(store, tags=("red", "blue"))
        await enqueue(store, tags=("bluebell",))
        await enqueue(store)
        assert _ids(await store.reader.find(JobFilter(tag="blue"))) == [wanted]

    async def test_the_empty_tenant_is_a_tenant(self, store: Store) -> None:
        wanted = await enqueue(store)
        await enqueue(store, tenant_id="acme")
        assert _ids(await store.reader.find(JobFilter(tenant_id=""))) == [wanted]

    async def test_each_status_is_found(self, store: Store) -> None:
        done = await running(store)
        await store.jobs.settle(OWNER, [completed(done)])
        retrying = await running(store)
        await store.jobs.settle(OWNER, [failed(retrying)])
        busy = await running(store)
        stopped = await enqueue(store)
        await store.jobs.cancel([stopped], "no")
        expected = {
            Status.COMPLETED: done.id,
            Status.FAILED: retrying.id,
            Status.IN_PROGRESS: busy.id,
            Status.CANCELLED: stopped,
            Status.QUEUED: await enqueue(store),
            Status.PENDING: await enqueue(store, delay_ms=1_000),
        }
        for status, job_id in expected.items():
            assert _ids(await store.reader.find(JobFilter(statuses=(status,)))) == [job_id]

    async def test_filters_narrow_each_other(self, store: Store) -> None:
        await enqueue(store, queue="a", type="x")
        wanted = await enqueue(store, queue="a", type="y")
        await enqueue(store, queue="b", type="y")
        assert _ids(await store.reader.find(JobFilter(queue="a", type="y"))) == [wanted]

    async def test_pages_follow_each_other_without_gaps(
        self, store: Store, clock: FakeClock
    ) -> None:
        ids = []
        for number in range(7):
            ids.append(await enqueue(store, queue="a" if number % 2 else "b"))
            clock.advance(seconds=1)
        seen: list[str] = []
        while page := await store.reader.find(
            JobFilter(limit=3, before=seen[-1] if seen else None)
        ):
            assert len(page) <= 3
            seen += _ids(page)
        assert seen == ids[::-1]
        odd = await store.reader.find(JobFilter(queue="a", before=ids[5], limit=1))
        assert _ids(odd) == [ids[3]]

    async def test_a_page_holds_fifty_unless_told(self, store: Store) -> None:
        await store.jobs.enqueue([a_job() for _ in range(51)])
        assert len(await store.reader.find(JobFilter())) == 50


class TestExecutions:
    """One row per execution."""

    async def test_a_job_that_never_ran_has_none(self, store: Store) -> None:
        assert await store.reader.executions(await enqueue(store)) == []
        assert await store.reader.executions(NOBODY) == []

    async def test_a_prefetched_lease_is_no_execution(self, store: Store) -> None:
        job_id = await enqueue(store)
        await claim_one(store, start=0)
        assert await store.reader.executions(job_id) == []

    async def test_they_come_oldest_first_the_running_one_included(
        self, store: Store, clock: FakeClock
    ) -> None:
        job_id = await enqueue(store)
        for _ in range(2):
            await store.jobs.settle(OWNER, [failed(await claim_one(store), retry_in_ms=0)])
            clock.advance(seconds=1)
        lease = await claim_one(store, owner=OTHER)
        executions = await store.reader.executions(job_id)
        assert [e.fence for e in executions] == [1, 2, 3]
        assert [e.status for e in executions] == ["failed", "failed", "running"]
        now = executions[-1]
        assert (now.worker, now.started_at, now.ended_at) == (OTHER, lease.started_at, None)

    async def test_an_ended_one_keeps_its_facts(self, store: Store, clock: FakeClock) -> None:
        lease = await running(store)
        clock.advance(seconds=3)
        await store.jobs.settle(OWNER, [completed(lease, "1", duration_ms=2_900)])
        [execution] = await store.reader.executions(lease.id)
        assert (execution.job_id, execution.fence) == (lease.id, lease.fence)
        assert (execution.started_at, execution.ended_at) == (lease.started_at, clock.now())
        assert (execution.duration_ms, execution.wait_ms) == (2_900, 2)
        assert (execution.worker, execution.node) == (OWNER, OWNER.partition(":")[0])
        assert (execution.error, execution.error_class, execution.error_code) == (None, None, None)


class TestLogs:
    """The lines a handler kept."""

    async def test_they_come_oldest_first_across_executions(
        self, store: Store, clock: FakeClock
    ) -> None:
        job_id = await enqueue(store)
        for word in ("one", "two"):
            lease = await claim_one(store)
            line = (clock.now(), "info", word)
            told = Report(id=job_id, fence=lease.fence, logs=[line])
            await store.jobs.report(OWNER, [told])
            await store.jobs.settle(OWNER, [failed(lease, retry_in_ms=0)])
            clock.advance(seconds=1)
        lines = await store.reader.logs(job_id)
        assert [(line.fence, line.message) for line in lines] == [(1, "one"), (2, "two")]
        assert lines[0].at < lines[1].at

    async def test_the_latest_are_read_up_to_the_limit(self, store: Store) -> None:
        lease = await running(store)
        told = Report(id=lease.id, fence=lease.fence, logs=[(n, "info", str(n)) for n in range(5)])
        await store.jobs.report(OWNER, [told])
        lines = await store.reader.logs(lease.id, limit=3)
        assert [line.message for line in lines] == ["2", "3", "4"]

    async def test_a_job_without_lines_has_none(self, store: Store) -> None:
        assert await store.reader.logs(await enqueue(store)) == []
