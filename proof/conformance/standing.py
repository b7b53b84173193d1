"""All that decides whether a job runs, in one look."""

from penstock.model.controls import (
    Breaker,
    BreakerPosition,
    Limit,
    LimitKind,
    LimitScope,
    PauseScope,
)
from penstock.model.dependency import EdgeKind
from penstock.model.job import KeyScope
from penstock.model.states import Status
from penstock.store.contract import Standing, Store
from penstock.testing.clock import FakeClock
from proof.conformance.build import (
    NOBODY,
    OWNER,
    an_edge,
    cancelled,
    claim_one,
    completed,
    dead_job,
    enqueue,
    enqueue_after,
    failed,
    running,
)
from proof.conformance.workers import BEAT


async def _standing(store: Store, job_id: str) -> Standing:
    found = await store.reader.standing(job_id)
    assert found is not None
    return found


class TestStanding:
    """What a store knows of one job, and of nothing else."""

    async def test_a_job_that_nothing_holds_back(self, store: Store, clock: FakeClock) -> None:
        found = await _standing(store, await enqueue(store))
        assert (found.now, found.job.status) == (clock.now(), Status.QUEUED)
        assert (found.waits_for, found.pauses, found.limits, found.breakers) == ([], [], [], [])
        assert (found.ahead, found.tenants, found.key_holder) == (0, 0, None)

    async def test_an_unknown_job_has_none(self, store: Store) -> None:
        assert await store.reader.standing(NOBODY) is None

    async def test_only_its_own_pauses_are_told(self, store: Store) -> None:
        job_id = await enqueue(store, queue="mail", tenant_id="acme")
        other = await enqueue(store)
        await store.controls.pause(PauseScope.JOB, job_id, reason="odd", by="ada")
        await store.controls.pause(PauseScope.JOB, other)
        for scope, name in (("queue", "mail"), ("type", "work"), ("tenant", "acme")):
            await store.controls.pause(PauseScope(scope), name)
            await store.controls.pause(PauseScope(scope), f"another {name}")
        pauses = (await _standing(store, job_id)).pauses
        assert {(pause.scope, pause.name) for pause in pauses} == {
            (PauseScope.JOB, job_id),
            (PauseScope.QUEUE, "mail"),
            (PauseScope.TYPE, "work"),
            (PauseScope.TENANT, "acme"),
        }
        [own] = [pause for pause in pauses if pause.scope is PauseScope.JOB]
        assert (own.reason, own.paused_by) == ("odd", "ada")

    async def test_only_parents_that_have_not_ended_are_waited_for(self, store: Store) -> None:
        lease, parent = await running(store), await enqueue(store)
        edges = (an_edge(lease.id), an_edge(parent, kind="data", argument="rows"))
        child = await enqueue_after(store, *edges)
        assert len((await _standing(store, child)).waits_for) == 2
        await store.jobs.settle(OWNER, [completed(lease)])
        [edge] = (await _standing(store, child)).waits_for
        assert (edge.edge.parent_id, edge.edge.kind) == (parent, EdgeKind.DATA)
        assert (edge.parent_type, edge.parent_status) == ("work", Status.QUEUED)

    async def test_the_job_before_it_in_line_is_waited_for(self, store: Store) -> None:
        first = await enqueue(store, order_key="account-1")
        second = await enqueue(store, order_key="account-1")
        [edge] = (await _standing(store, second)).waits_for
        assert (edge.edge.parent_id, edge.edge.kind) == (first, EdgeKind.ORDER)

    async def test_jobs_of_its_lane_that_go_first_are_counted(self, store: Store) -> None:
        await enqueue(store, priority=1)
        await enqueue(store, priority=9)
        await enqueue(store, priority=1, queue="mail")
        await enqueue(store, priority=1, type="other")
        assert (await _standing(store, await enqueue(store, priority=5))).ahead == 1

    async def test_other_tenants_in_its_queue_are_counted(self, store: Store) -> None:
        for tenant in ("", "acme", "acme", "globex", "umbrella"):
            await enqueue(store, tenant_id=tenant)
        await enqueue(store, tenant_id="elsewhere", queue="mail")
        assert (await _standing(store, await enqueue(store, tenant_id="acme"))).tenants == 3

    async def test_every_worker_is_told(self, store: Store) -> None:
        store.workers.beat(BEAT)
        [worker] = (await _standing(store, await enqueue(store))).workers
        assert (worker.owner, worker.name) == (BEAT.owner, BEAT.name)

    async def test_the_key_a_requeue_would_meet_is_told(self, store: Store) -> None:
        dead = await dead_job(store, key="k")
        assert (await _standing(store, dead)).key_holder is None
        lease = await running(store, key="k")
        assert (await _standing(store, dead)).key_holder == lease.id
        assert (await _standing(store, lease.id)).key_holder is None
        await store.jobs.settle(OWNER, [cancelled(lease)])
        assert (await _standing(store, dead)).key_holder is None

    async def test_a_key_that_is_held_only_while_pending_meets_no_requeue(
        self, store: Store
    ) -> None:
        dead = await dead_job(store, key="k", key_scope=KeyScope.WHILE_PENDING)
        await enqueue(store, key="k", key_scope=KeyScope.WHILE_PENDING)
        assert (await _standing(store, dead)).key_holder is None
        assert await store.jobs.requeue([dead]) == [dead]


class TestStandingUnderControls:
    """Limits and breakers that concern a job."""

    async def test_limits_that_concern_it_are_told_with_their_holders(self, store: Store) -> None:
        limits = [
            Limit(scope=LimitScope(scope), name=name, kind=LimitKind.CONCURRENCY, capacity=1)
            for scope, name in (("key", "openai"), ("key", "else"), ("tenant", "*"))
        ]
        await store.controls.set_limits(limits)
        lease = await running(store, limit_key="openai", tenant_id="acme")
        waiting = await enqueue(store, limit_key="openai", tenant_id="globex")
        states = {s.limit.scope: s for s in (await _standing(store, waiting)).limits}
        assert set(states) == {LimitScope.KEY, LimitScope.TENANT}
        key, tenant = states[LimitScope.KEY], states[LimitScope.TENANT]
        assert (key.limit.name, key.used, key.holders) == ("openai", 1, (lease.id,))
        assert (tenant.limit.name, tenant.used) == ("globex", 0)

    async def test_a_rate_says_when_it_lets_more_through(
        self, store: Store, clock: FakeClock
    ) -> None:
        rate = Limit(
            scope=LimitScope.TYPE,
            name="work",
            kind=LimitKind.RATE,
            capacity=1,
            interval_ms=60_000,
        )
        await store.controls.set_limits([rate])
        await running(store)
        clock.advance(seconds=10)
        [state] = (await _standing(store, await enqueue(store))).limits
        assert (state.used, state.frees_in_ms) == (1, 50_000)

    async def test_a_breaker_names_its_probe_while_that_runs(
        self, store: Store, clock: FakeClock
    ) -> None:
        breaker = Breaker(name="smtp", types=("work",), failures=1, cool_down_ms=30_000)
        unrelated = Breaker(name="s3", types=("other",))
        await store.controls.define_breakers([breaker, unrelated])
        await store.jobs.settle(OWNER, [failed(await running(store), retry_in_ms=3_600_000)])
        waiting = await enqueue(store, priority=9)
        [state] = (await _standing(store, waiting)).breakers
        assert state.position(clock.now()) is BreakerPosition.OPEN
        clock.advance(seconds=30)
        assert [s.probe_id for s in (await _standing(store, waiting)).breakers] == [None]
        probe = await running(store, priority=1)
        assert [s.probe_id for s in (await _standing(store, waiting)).breakers] == [probe.id]
        await store.upkeep.rescue(owner=OWNER)
        assert [s.probe_id for s in (await _standing(store, waiting)).breakers] == [None]
        probe = await claim_one(store)
        await store.jobs.settle(OWNER, [completed(probe)])
        [state] = (await _standing(store, waiting)).breakers
        assert state.position(clock.now()) is BreakerPosition.CLOSED
