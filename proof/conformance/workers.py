"""The register of workers, and what waits for one."""

from msgspec.structs import asdict, replace

from penstock.store.contract import Beat, Store
from penstock.testing.clock import FakeClock
from proof.conformance.build import (
    OTHER,
    OWNER,
    a_job,
    claim_all,
    completed,
    enqueue,
)

BEAT = Beat(
    owner=OWNER,
    name="mailer",
    node="host-a",
    pid=1,
    queues=("mail", "default"),
    types=("work", "send"),
    concurrency=10,
    running=2,
    completed=7,
    failed=1,
    cpu_percent=12.5,
    memory_mb=80.25,
    poll_age_ms=40,
    declared_queues=("images", "mail"),
)


class TestWorkers:
    """Workers say that they live."""

    async def test_a_beat_is_read_back(self, store: Store, clock: FakeClock) -> None:
        store.workers.beat(BEAT)
        [worker] = await store.workers.list()
        assert {name: getattr(worker, name) for name in asdict(BEAT)} == asdict(BEAT)
        assert worker.started_at == worker.heartbeat_at == clock.now()
        assert worker.heartbeat_age_ms == 0

    async def test_a_later_beat_refreshes_the_row(self, store: Store, clock: FakeClock) -> None:
        store.workers.beat(BEAT)
        started = clock.now()
        clock.advance(seconds=10)
        store.workers.beat(replace(BEAT, running=0, completed=9, state="draining"))
        clock.advance(seconds=3)
        [worker] = await store.workers.list()
        assert (worker.running, worker.completed, worker.state) == (0, 9, "draining")
        assert (worker.started_at, worker.heartbeat_at) == (started, started + 10_000)
        assert worker.heartbeat_age_ms == 3_000

    async def test_a_worker_of_all_queues_is_read_back_as_such(self, store: Store) -> None:
        store.workers.beat(replace(BEAT, queues=None))
        [worker] = await store.workers.list()
        assert worker.queues is None

    async def test_the_freshest_come_first(self, store: Store, clock: FakeClock) -> None:
        for owner in (OWNER, OTHER):
            store.workers.beat(replace(BEAT, owner=owner))
            clock.advance(seconds=1)
        assert [worker.owner for worker in await store.workers.list()] == [OTHER, OWNER]
        store.workers.beat(BEAT)
        assert [worker.owner for worker in await store.workers.list()] == [OWNER, OTHER]

    async def test_a_worker_that_stopped_is_forgotten(self, store: Store) -> None:
        for owner in (OWNER, OTHER):
            store.workers.beat(replace(BEAT, owner=owner))
        await store.workers.forget(OWNER)
        await store.workers.forget("nobody:0:never")
        assert [worker.owner for worker in await store.workers.list()] == [OTHER]


class TestWaitingTypes:
    """Which types wait for a worker that knows them."""

    async def test_queued_jobs_are_counted_by_type(self, store: Store) -> None:
        await store.jobs.enqueue([a_job(type="a", queue=queue) for queue in "xyz"])
        await enqueue(store, type="b")
        await enqueue(store, type="later", delay_ms=1_000)
        assert await store.workers.waiting_types() == {"a": 3, "b": 1}

    async def test_claimed_jobs_wait_no_more(self, store: Store) -> None:
        await enqueue(store)
        await claim_all(store)
        assert await store.workers.waiting_types() == {}

    async def test_the_count_stops_at_a_thousand(self, store: Store) -> None:
        await store.jobs.enqueue([a_job(tenant_id="ab"[n % 2]) for n in range(1_600)])
        assert await store.workers.waiting_types() == {"work": 1_000}


class TestRunningTypes:
    """Which types workers hold jobs of."""

    async def test_leased_jobs_are_counted_by_type_whoever_holds_them(self, store: Store) -> None:
        await store.jobs.enqueue([a_job(type="a", queue=queue, tenant_id=queue) for queue in "xyz"])
        await enqueue(store, type="b")
        assert await store.workers.running_types() == {}
        await claim_all(store, types=("a",), limit=2)
        await claim_all(store, owner=OTHER, types=("a", "b"), limit=10)
        assert await store.workers.running_types() == {"a": 3, "b": 1}

    async def test_jobs_that_ended_run_no_more(self, store: Store) -> None:
        await enqueue(store)
        (lease,) = await claim_all(store)
        await store.jobs.settle(OWNER, [completed(lease)])
        assert await store.workers.running_types() == {}
