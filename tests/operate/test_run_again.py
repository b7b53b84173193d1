"""A finished job is run again as a new one; each names the other."""

import pytest
from msgspec.json import decode

from penstock import Cancel, Context, Dead, Penstock, Status, chain, group
from penstock.model.errors import IllegalTransition, KeyTaken
from penstock.model.ids import derived_id
from penstock.model.job import NewJob
from penstock.model.not_found import AmbiguousId, JobNotFound
from penstock.operate.actor import Operator
from penstock.operate.jobs import find_id
from penstock.operate.run_again import ran_again_as, ran_again_from, steps_after
from penstock.store.contract import AuditFilter
from penstock.testing import FakeClock, drain

pytestmark = pytest.mark.thorough("postgres", "valkey")


@pytest.mark.quick("postgres", "valkey")
async def test_a_completed_job_is_run_again_with_the_same_call_and_options(
    app: Penstock, clock: FakeClock
) -> None:
    @app.job(queue="mail", priority=3, timeout=60)
    async def send(to: str) -> str:
        return f"sent to {to}"

    options = send.options(
        tenant="acme", tags=["a"], metadata={"mine": 1}, max_retries=7, expires_in=90
    )
    first = await options.enqueue("ann")
    await drain(app)
    clock.advance(seconds=3600)
    before = await first.get()
    again = await app.run_again(first.id)
    same = ("type", "queue", "priority", "timeout_ms", "payload", "tenant_id", "tags")
    assert [getattr(again, name) for name in same] == [getattr(before, name) for name in same]
    assert (again.max_retries, again.status, again.attempts) == (7, Status.QUEUED, 0)
    assert again.expires_at == clock.now() + 90_000
    assert decode(again.metadata or "")["mine"] == 1
    await drain(app)
    assert (await app.get(again.id)).result == '"sent to ann"'
    assert await first.get() == before


async def test_both_jobs_name_the_other_and_children_are_no_repetitions(app: Penstock) -> None:
    @app.job
    async def child() -> None: ...

    @app.job
    async def parent(ctx: Context) -> None:
        await ctx.enqueue(child.new())

    first = await parent.enqueue()
    await drain(app)
    second = await app.run_again(first.id)
    third = await app.run_again(first.id)
    job = await first.get()
    assert (ran_again_from(job), ran_again_from(second)) == (None, first.id)
    assert await ran_again_as(app.store, job) == [third.id, second.id]
    await drain(app)
    assert ran_again_from(await app.run_again(second.id)) == second.id


@pytest.mark.parametrize("end", [Dead("no"), Cancel("no")])
async def test_a_dead_or_cancelled_job_is_run_again_and_stays_as_it_is(
    app: Penstock, end: BaseException
) -> None:
    ends: list[BaseException] = [end]

    @app.job
    async def once() -> str:
        if ends:
            raise ends.pop()
        return "done"

    first = await once.enqueue()
    await drain(app)
    ended = (await first.get()).status
    again = await app.run_again(first.id)
    await drain(app)
    assert (await app.get(again.id)).status is Status.COMPLETED
    assert (await first.get()).status is ended


async def test_a_job_that_has_not_ended_is_refused(app: Penstock) -> None:
    @app.job
    async def work() -> None: ...

    job = await work.enqueue()
    with pytest.raises(IllegalTransition, match=f"Job {job.id} is queued.*'run again'"):
        await app.run_again(job.id)
    with pytest.raises(JobNotFound):
        await app.run_again("01JD3Z6K3V9M0Q2T4W6Y8A0C2E")


async def test_a_key_that_another_job_holds_is_respected_and_one_that_lasts_is_left(
    app: Penstock,
) -> None:
    @app.job
    async def work(n: int) -> None: ...

    keyed = await work.options(key="one").enqueue(1)
    for_ever = await work.options(key="ever", key_scope="forever").enqueue(2)
    await drain(app)
    again = await app.run_again(keyed.id)
    assert again.key == "one"
    with pytest.raises(KeyTaken) as taken:
        await app.run_again(keyed.id)
    assert taken.value.holder == again.id
    assert (await app.run_again(for_ever.id)).key is None


async def test_a_job_that_never_started_waits_for_its_parents_again(app: Penstock) -> None:
    @app.job
    async def fetch() -> int:
        return 20

    @app.job
    async def double(n: int) -> int:
        return 2 * n

    first = await fetch.enqueue()
    second = await double.options(after=[first]).enqueue(1)
    await second.cancel()
    again = await app.run_again(second.id)
    assert (again.status, again.waiting_on) == (Status.PENDING, 1)
    await drain(app)
    assert (await app.get(again.id)).result == "2"
    ran = await app.run_again(again.id)
    assert ran.waiting_on == 0


async def test_it_is_on_record_and_kept_within_the_tenant(app: Penstock) -> None:
    @app.job
    async def work() -> None: ...

    job = await work.options(tenant="acme").enqueue()
    await drain(app)
    again = await Operator(app, "user:ann", "acme").jobs.run_again(job.id)
    assert again.created_by == "user ann"
    [entry] = await app.store.audit.find(AuditFilter())
    assert (entry.action, entry.subject) == ("job.run_again", f"job:{job.id}")
    assert decode(entry.details)["new_id"] == again.id
    with pytest.raises(JobNotFound):
        await Operator(app, "user:bob", "other").jobs.run_again(job.id)


async def test_a_job_is_found_by_the_beginning_of_its_id(app: Penstock, clock: FakeClock) -> None:
    ids = [derived_id(clock.now() + hour * 3_600_000, "seed") for hour in range(3)]
    await app.store.jobs.enqueue([NewJob(id=job_id, type="work") for job_id in ids])
    for job_id in ids:
        assert await find_id(app.store, job_id[:-1]) == job_id
        assert await find_id(app.store, job_id.lower()) == job_id
    with pytest.raises(AmbiguousId) as shared:
        await find_id(app.store, ids[0][:2])
    assert set(shared.value.ids) == set(ids)
    for nothing in ("", "7ZZ", "no id"):
        with pytest.raises(JobNotFound):
            await find_id(app.store, nothing)


async def test_a_job_is_found_by_the_beginning_of_its_id_even_if_it_is_the_last_that_begins_so(
    app: Penstock, clock: FakeClock
) -> None:
    job_id = derived_id(clock.now(), "seed")[:-2] + "ZZ"
    await app.store.jobs.enqueue([NewJob(id=job_id, type="work")])
    assert await find_id(app.store, job_id[:-1]) == job_id
    assert await find_id(app.store, job_id[:-2]) == job_id


async def test_the_steps_after_a_job_are_counted_and_the_next_of_its_order_is_none(
    app: Penstock,
) -> None:
    @app.job
    async def step() -> None: ...

    flow = await app.enqueue(chain(step.new(), group(step.new(), step.new())))
    ordered = [await step.options(order_key="a").enqueue() for _ in range(2)]
    assert [await steps_after(app.store, each) for each in flow.ids] == [2, 0, 0]
    assert await steps_after(app.store, ordered[0].id) == 0
