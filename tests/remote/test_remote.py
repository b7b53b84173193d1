import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from penstock import (
    JobCancelled,
    JobFailed,
    JobNotFound,
    Penstock,
    QueueFull,
    ResultTimeout,
    Status,
    after,
    chain,
    connect,
    group,
)
from penstock.app.tracing import came_with
from penstock.model.errors import (
    DependencyCycle,
    InvalidArguments,
    InvalidOption,
    ParentNotFound,
    UnknownType,
)
from penstock.model.ids import new_id
from penstock.model.not_found import BreakerNotFound, FollowerNotFound, LimitNotFound
from penstock.model.store_errors import NoTransactions
from penstock.remote.client import Remote
from penstock.remote.wire import Wire
from penstock.server.app import create_server
from penstock.testing import drain
from proof.conformance.build import dead_job, enqueue
from tests.remote.kitchen import Dish, make_app
from tests.support.http_server import serving
from tests.support.options import KEPT, columns


async def test_a_call_is_enqueued_with_its_options_and_gives_a_typed_result(
    remote: Remote, behind: Penstock, types: Penstock
) -> None:
    cook = types.types["cook"]
    at = datetime.now(UTC) - timedelta(minutes=1)
    call = cook.options(
        priority=2, key="soup", metadata={"table": 7}, timeout=90, at=at, tenant="acme"
    ).new("soup", minutes=20)
    handle = await remote.enqueue(call)
    assert (handle.id, handle.created) == (call.job.id, True)
    job = await behind.get(handle.id)
    assert (job.queue, job.priority, job.timeout_ms, job.tags) == ("stove", 2, 90_000, ("hot",))
    assert (job.key, job.tenant_id, job.created_by) == ("soup", "acme", "local")
    assert json.loads(job.metadata or "") == {"table": 7}
    await drain(behind)
    assert await handle.result(timeout=20) == Dish("soup", 20)
    assert not (await remote.enqueue(call)).created


async def test_every_option_arrives_whether_the_type_is_known_here_or_not(
    remote: Remote, behind: Penstock, types: Penstock
) -> None:
    said = {name: KEPT[name] for name in KEPT if name != "created_by"}
    call = types.types["add"].options(**said).new(1)
    found = await behind.get((await remote.enqueue(call)).id)
    assert columns(found, said) == columns(call.job, said)
    by_name = said | {"key": "another", "delay": 60, "expires_in": 3_600}
    found = await behind.get((await remote.enqueue_payload("add", '{"a": 1}', **by_name)).id)
    assert columns(found, said) == columns(call.job, said) | {"key": "another"}


async def test_a_number_is_an_identifier_over_the_network_too(
    remote: Remote, behind: Penstock
) -> None:
    job = await remote.enqueue_payload("add", '{"a": 1}', key=7, tenant=8, tags=(9,))
    found = await behind.get(job.id)
    assert (found.key, found.tenant_id, found.tags) == ("7", "8", ("9",))


@pytest.mark.every_store
async def test_a_job_read_over_the_network_is_the_job_in_the_store(
    remote: Remote, behind: Penstock, types: Penstock
) -> None:
    handle = await remote.enqueue(types.types["stir"].new(3))
    await drain(behind)
    job = await behind.get(handle.id)
    assert await remote.get(handle.id) == job
    assert await handle.get() == job
    assert job.progress == '{"phase":"half done","percent":50,"spoon":"wooden"}'
    assert await remote.find(type="stir", status="completed") == [job]
    assert await remote.find(created_by="local") == [job]
    assert await remote.find(created_by="nobody") == await remote.find(workspace_id="x") == []
    assert await remote.executions(handle.id) == await behind.executions(handle.id)
    assert await remote.logs(handle.id) == await behind.logs(handle.id)
    assert [line.message for line in await remote.logs(handle.id)] == ["stirred"]
    assert await remote.executions(new_id()) == [] == await remote.logs(new_id())


async def test_without_an_application_calls_go_by_name_and_results_come_as_data(
    address: str, behind: Penstock
) -> None:
    async with connect(address) as remote:
        first = await remote.enqueue_payload("add", '{"a": 1}')
        second = await remote.enqueue_payload(
            "add", "{}", after=after(first, data="a"), queue="other"
        )
        dish = await remote.enqueue_payload("cook", '{"name": "tea", "minutes": 4}')
        await drain(behind)
        assert await dish.result(timeout=20) == {"name": "tea", "minutes": 4}
        assert await (await remote.handle(first.id)).result(timeout=20) == 2
        assert await second.result(timeout=20) == 3
        assert (await second.get()).queue == "other"
        with pytest.raises(InvalidArguments, match="'minutes'") as refused:
            await remote.enqueue_payload("cook", '{"name": "tea"}')
        assert refused.value.argument == "minutes"
        with pytest.raises(InvalidArguments, match="an object in JSON"):
            await remote.enqueue_payload("cook", '{"name": "tea"}, {}')
        with pytest.raises(UnknownType, match="'bake'") as unknown:
            await remote.enqueue_payload("bake")
        assert unknown.value.job_type == "bake"
        with pytest.raises(InvalidOption, match="created_by"):
            await remote.enqueue_payload("add", '{"a": 1}', created_by="me")


@pytest.mark.every_store
async def test_a_flow_runs_step_by_step_and_its_result_is_the_last_ones(
    remote: Remote, behind: Penstock, types: Penstock
) -> None:
    add, total = types.types["add"], types.types["total"]
    flow = await remote.enqueue(group(add.new(1, 2), add.new(3, 4)) | total.new())
    await drain(behind)
    assert await flow.result(timeout=20) == 10
    assert (await flow.progress()).percent == 100
    broken = await remote.enqueue(chain(types.types["burn"].new(), add.new(1)))
    await drain(behind)
    with pytest.raises(JobFailed, match="step 1 of 2, 'burn': burnt"):
        await broken.result(timeout=20)


async def test_how_a_long_flow_stands_is_asked_in_few_requests(
    remote: Remote, types: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = types.types["add"]
    flow = await remote.enqueue(group(*(add.new(n) for n in range(150))))
    asked: list[str] = []
    send = Wire.send

    async def counted(self: Wire, method: str, path: str, *args: Any, **more: Any) -> Any:
        asked.append(path)
        return await send(self, method, path, *args, **more)

    monkeypatch.setattr(Wire, "send", counted)
    assert (await flow.progress()).counts == {Status.QUEUED: 150}
    assert asked == ["jobs", "jobs"]


async def test_a_flow_is_cancelled_as_a_whole(remote: Remote, types: Penstock) -> None:
    add = types.types["add"]
    flow = await remote.enqueue(chain(add.options(delay=60).new(1), add.new()))
    assert set((await flow.cancel()).values()) == {Status.CANCELLED}
    with pytest.raises(JobCancelled):
        await flow.result(timeout=20)


async def test_a_condition_and_a_policy_of_an_edge_arrive(
    remote: Remote, behind: Penstock, types: Penstock
) -> None:
    add = types.types["add"]
    first = await remote.enqueue(add.new(1))
    waits = after(first, condition="result > 100", on_failure="run", on_requeue="leave")
    second = await remote.enqueue(add.options(after=waits).new(5))
    [found] = (await behind.store.reader.dependencies(second.id)).parents
    assert (found.edge.condition, found.edge.on_failure) == ("result > 100", "run")
    assert found.edge.on_requeue == "leave"


async def test_a_job_belongs_to_the_trace_of_who_enqueued_it(
    remote: Remote, behind: Penstock, types: Penstock
) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    with came_with(trace):
        handle = await remote.enqueue(types.types["add"].new(1))
    job = await behind.get(handle.id)
    assert job.trace_context == trace
    assert await remote.get(handle.id) == job


async def test_waiting_for_a_result_ends_as_it_does_locally(
    remote: Remote, behind: Penstock, types: Penstock
) -> None:
    late = await remote.enqueue(types.types["add"].options(delay=60).new(1))
    with pytest.raises(ResultTimeout, match="still pending"):
        await late.result(timeout=0.5)
    assert await late.cancel("not wanted") is Status.CANCELLED
    with pytest.raises(JobCancelled, match="not wanted"):
        await late.result(timeout=20)
    dead = await remote.enqueue(types.types["burn"].new("black"))
    await drain(behind)
    with pytest.raises(JobFailed, match="dead_letter: black"):
        await dead.result(timeout=20)
    with pytest.raises(JobNotFound):
        await remote.get(new_id())
    dead.id = new_id()
    with pytest.raises(JobNotFound) as missing:
        await dead.result(timeout=20)
    assert missing.value.job_id == dead.id


async def test_a_batch_is_enqueued_as_one_or_not_at_all(
    remote: Remote, behind: Penstock, types: Penstock
) -> None:
    add = types.types["add"]
    handles = await remote.enqueue_many([add.new(n) for n in range(50)])
    assert [handle.created for handle in handles] == [True] * 50
    assert await remote.enqueue_many([]) == []
    parent = add.new(1)
    with pytest.raises(InvalidOption, match="at most 10,000"):
        await remote.enqueue_many([parent] * 10_001)
    with pytest.raises(NoTransactions):
        await remote.enqueue(parent, connection=object())
    with pytest.raises(InvalidOption, match="force"):
        await remote.enqueue(parent, force=True)
    assert len(await behind.find(limit=100)) == 50


async def test_a_page_may_be_larger_than_the_servers(
    remote: Remote, behind: Penstock, types: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.remote.client.MAX_PAGE", 4)
    add = types.types["add"]
    handles = await remote.enqueue_many([add.options(tags=(f"n{n}",)).new(n) for n in range(11)])
    newest = [handle.id for handle in reversed(handles)]
    assert [job.id for job in await remote.find(limit=10)] == newest[:10]
    assert [job.id for job in await remote.find(before=newest[8])] == newest[9:]
    assert [job.id for job in await remote.find(tag="n3")] == [handles[3].id]
    assert [job.id for job in await remote.find(payload=[("a", "3")])] == [handles[3].id]
    made = (await remote.get(newest[0])).created_at
    assert await remote.find(until=made - 60_000) == []
    assert len(await remote.find(since=made - 60_000, statuses=("queued", "pending"))) == 11
    assert await remote.find(status="failed") == []
    with pytest.raises(InvalidOption, match="nonsense"):
        await remote.find(nonsense=1)


async def test_more_dead_letters_may_be_wanted_than_a_page_has(
    remote: Remote, behind: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.remote.dead.MAX_PAGE", 2)
    died = [await dead_job(behind.store, type=f"t{n}") for n in range(5)]
    groups = await remote.dead.groups()
    assert [group.newest_id for group in groups] == died[::-1]
    assert await remote.dead.groups(before=died[2], limit=3) == groups[3:]
    assert await remote.dead.groups(limit=3) == groups[:3]
    again = [await dead_job(behind.store, type="t0") for _ in range(2)]
    letters = await remote.dead.find(group=groups[4].id)
    assert [letter.job_id for letter in letters] == [*again[::-1], died[0]]


async def test_a_full_queue_refuses_or_is_waited_for(store_url: str, types: Penstock) -> None:
    server = create_server(make_app(store_url, queue_limit=2), trusts_callers=True)
    with serving(server) as address:
        async with connect(address, app=types) as remote, make_app(store_url) as behind:
            add = types.types["add"]
            await remote.enqueue_many([add.new(1), add.new(2)])
            with pytest.raises(QueueFull) as full:
                await remote.enqueue(add.options(priority=8).new(3))
            assert (full.value.queue, full.value.limit) == ("default", 2)
            with pytest.raises(QueueFull):
                await remote.enqueue(add.new(3), wait=False)
            await drain(behind)
            assert (await remote.enqueue(add.new(3), wait=5)).created


async def test_jobs_are_paused_resumed_cancelled_and_requeued(
    remote: Remote, behind: Penstock, types: Penstock
) -> None:
    job = await remote.enqueue(types.types["add"].new(1))
    pause = await remote.controls.pause(job=job, reason="wait")
    assert (pause.scope, pause.name, pause.reason) == ("job", job.id, "wait")
    assert (await behind.get(job.id)).status is Status.PAUSED
    explained = await remote.explain(job.id)
    assert explained.reasons == (await behind.explain(job.id)).reasons
    assert await remote.controls.resume(job=job)
    assert not await remote.controls.resume(job=job)
    assert await remote.cancel(job.id) is Status.CANCELLED
    assert (await remote.requeue(job.id)).status in (Status.PENDING, Status.QUEUED)
    await remote.cancel(job.id)
    again = await remote.run_again(job.id)
    assert (again.parent_job_id, again.payload) == (job.id, (await job.get()).payload)
    with pytest.raises(InvalidOption, match="'by'"):
        await remote.controls.pause(job=job, by="me")


async def test_queues_limits_and_breakers_are_controlled(remote: Remote, behind: Penstock) -> None:
    await behind.declare()
    pause = await remote.controls.pause(queue="stove", reason="cleaning")
    assert await behind.controls.pauses() == [pause] == await remote.controls.pauses()
    assert await remote.controls.queues() == await behind.controls.queues() != []
    assert await remote.controls.queues("nobody") == []
    assert await remote.controls.resume(queue="stove")
    assert not await remote.controls.resume(queue="stove")
    await remote.controls.set_limit(key="gas", concurrency=3, rate="60/min")
    assert await remote.controls.limits() == await behind.controls.limits()
    assert len(await remote.controls.limits()) == 2
    await remote.controls.remove_limit(key="gas", kind="rate")
    with pytest.raises(LimitNotFound, match="no limit of rate on key 'gas'"):
        await remote.controls.remove_limit(key="gas", kind="rate")
    assert await remote.controls.breakers() == await behind.controls.breakers()
    await remote.controls.reset_breaker("oven")
    with pytest.raises(BreakerNotFound, match="no breaker 'fridge'"):
        await remote.controls.reset_breaker("fridge")


async def test_followers_are_looked_at_and_dropped(remote: Remote, behind: Penstock) -> None:
    await behind.store.changes.follow("links.clicks", [Status.COMPLETED, Status.QUEUED])
    await enqueue(behind.store)
    [state] = await remote.followers.states()
    assert [state] == await behind.followers.states()
    await remote.followers.drop("links.clicks")
    with pytest.raises(FollowerNotFound, match=r"no follower 'links\.clicks'"):
        await remote.followers.drop("links.clicks")


@pytest.mark.every_store
async def test_schedules_are_put_looked_at_and_run(
    remote: Remote, behind: Penstock, types: Penstock
) -> None:
    cook = types.types["cook"]
    made = await remote.schedule(
        "daily/soup",
        cook.options(priority=3).partial(minutes=20),
        {"name": "soup of {{ tick.date }}"},
        cron="0 12 * * *",
        zone="Europe/Berlin",
        end=datetime(2100, 1, 1, tzinfo=UTC),
    )
    assert made.next_run is not None
    stored = (await behind.schedules.get("daily/soup")).schedule
    found = (await remote.schedules.get("daily/soup")).schedule
    for name in ("id", "type", "expression", "zone", "ends_at", "next_run_at", "enabled"):
        assert getattr(found, name) == getattr(stored, name), name
    assert json.loads(found.payload) == json.loads(stored.payload)
    assert json.loads(stored.options)["priority"] == 3
    assert [each.name for each in await remote.schedules.list()] == ["daily/soup"]
    assert (await remote.schedules.pause("daily/soup")).paused
    assert not (await remote.schedules.resume("daily/soup")).paused
    job_id = await remote.schedules.run("daily/soup")
    assert (await behind.get(job_id)).type == "cook"
    await remote.schedules.remove("daily/soup")
    assert await remote.schedules.list() == []


@pytest.mark.every_store
async def test_dead_letters_are_purged(remote: Remote, behind: Penstock) -> None:
    ids = [await dead_job(behind.store, type=f"t{number % 2}") for number in range(5)]
    assert await remote.dead.count(type_name="t1") == 2
    assert await remote.dead.purge(ids[0]) == 1
    assert await remote.dead.purge(type_name="t1", resolution="open", older_than=0) == 2
    assert [letter.job_id for letter in await behind.store.dead.find()] == [ids[4], ids[2]]
    [group_] = await remote.dead.groups()
    assert await remote.dead.purge([group_.id]) == 2
    with pytest.raises(InvalidOption, match="filter"):
        await remote.dead.purge()


async def test_dead_letters_are_sorted_out(
    remote: Remote, behind: Penstock, types: Penstock
) -> None:
    burn = types.types["burn"]
    handles = await remote.enqueue_many([burn.new("black") for _ in range(4)])
    await drain(behind)
    [group_] = await remote.dead.groups("burn")
    assert group_ == (await behind.dead.groups("burn"))[0]
    assert await remote.dead.group(group_.id[:6]) == group_
    assert {each.job_id for each in await remote.dead.find(group=group_.id)} == {
        handle.id for handle in handles
    }
    shown = await remote.dead.show(handles[0].id)
    assert (shown.group, shown.letter.error) == (group_, "black")
    assert json.loads(shown.letter.snapshot)["type"] == "burn"
    amended = await remote.dead.amend(handles[0].id, {"text": "brown"})
    assert json.loads(amended.payload) == {"text": "brown"}
    assert (await remote.dead.show(handles[0].id)).amended == '{"text":"brown"}'
    replay = await remote.dead.replay(group_.id, 1)
    await drain(behind)
    canaries = await remote.dead.wait(replay, timeout=20)
    assert canaries.failed == [replay.handles[0].id]
    released = await remote.dead.release(group_.id, None, force=True)
    assert len(released.done) == 4
    await drain(behind)
    assert len(await remote.dead.resolve(group_.id, notes="eaten")) == 3
    assert await remote.dead.resolve(handles[0].id, "ignored") == [handles[0].id]


async def test_health_stats_and_workers_are_told(
    remote: Remote, behind: Penstock, types: Penstock
) -> None:
    await remote.enqueue(types.types["add"].new(1))
    assert (await remote.health()).status == "unhealthy"  # there is work and no worker
    assert "store" in (await remote.health()).checks
    assert (await remote.health()).details.queues == 1
    stats = await remote.stats("15m")
    assert stats.window_ms == 900_000
    assert [queue.queue for queue in stats.queues] == ["default"]
    assert stats.series[0].at < stats.at
    assert {slo.key for slo in stats.slos} > {"completion_rate", "worker_uptime"}
    assert await remote.workers() == []


def test_the_same_without_an_event_loop(address: str, types: Penstock, store_url: str) -> None:
    remote, behind = connect(address, app=types), make_app(store_url)
    try:
        handle = remote.sync.enqueue(types.types["add"].new(1, 2))
        drain(behind.sync)
        assert remote.sync.result(handle, timeout=20) == 3
        assert remote.sync.find(type="add") == [remote.sync.get(handle.id)]
        assert remote.sync.explain(handle.id).status is Status.COMPLETED
        assert len(remote.sync.executions(handle.id)) == 1
        assert remote.sync.run(remote.dead.groups()) == []
        late = remote.sync.enqueue_payload("add", '{"a": 1}', delay=60)
        assert remote.sync.handle(late.id).id == late.id
        assert remote.sync.cancel(late.id) is Status.CANCELLED
    finally:
        remote.sync.close()
        behind.sync.close()


async def test_a_waiting_job_is_given_more_to_wait_for(
    remote: Remote, behind: Penstock, types: Penstock
) -> None:
    add, total = types.types["add"], types.types["total"]
    first = await remote.enqueue(add.options(delay=60).new(1))
    last = await remote.enqueue(total.options(delay=60).new([]))
    await remote.add_dependency(
        last, first, after(await remote.enqueue(add.new(2)), when="completion")
    )
    assert (await last.get()).waiting_on == 2
    parents = (await behind.store.reader.dependencies(last.id)).parents
    assert {each.edge.kind.value for each in parents} == {"success", "completion"}
    with pytest.raises(DependencyCycle, match="total"):
        await remote.add_dependency(first, last)
    with pytest.raises(ParentNotFound):
        await remote.add_dependency(last, new_id())


async def test_what_waits_is_compared_with_the_callers_own_types(
    remote: Remote, address: str, behind: Penstock
) -> None:
    await behind.enqueue_payload("cook", '{"name": "tea", "minutes": 4}')
    first = await behind.enqueue_payload("add", '{"a": 1}', delay=60)
    await behind.enqueue_payload("total", "{}", after=after(first, data="parts"))
    await behind.schedule("daily", behind.types["cook"].new("tea", 4), every=86_400)
    looked: list[int] = []
    found = await remote.check_payloads(progress=looked.append)
    assert found == await behind.check_payloads()
    assert (found.fits, found.checked, looked) == (True, 3, [3])
    assert [each.type for each in found.schedules] == ["cook"]
    newer = Penstock("sqlite://")

    @newer.job(name="cook")
    async def cook(name: str, minutes: int, guests: int) -> None: ...

    async with connect(address, app=newer) as other:
        by_type = {each.type: each for each in (await other.check_payloads()).jobs}
        assert (by_type["cook"].known, by_type["cook"].unfit) == (True, 1)
        assert "'guests'" in by_type["cook"].examples[0].problem
        assert not by_type["add"].known


async def test_without_types_of_its_own_a_caller_asks_about_those_of_the_server(
    address: str, behind: Penstock
) -> None:
    await behind.enqueue_payload("add", '{"a": 1}')
    await enqueue(behind.store, type="gone")
    async with connect(address) as remote:
        found = await remote.check_payloads(examples=1)
    assert found == await behind.check_payloads(examples=1)
    assert [(each.type, each.known) for each in found.jobs] == [("add", True), ("gone", False)]


@pytest.mark.every_store
async def test_several_jobs_are_read_watched_and_cancelled(
    remote: Remote, behind: Penstock, types: Penstock
) -> None:
    handles = await remote.enqueue_many([types.types["add"].new(n) for n in range(3)])
    ids = [handle.id for handle in handles]
    for app in (behind, remote):
        assert [job.id for job in await app.get_many([ids[2], new_id(), ids[0]])] == [
            ids[2],
            ids[0],
        ]
    assert await behind.cancel_many(ids[:1]) == {ids[0]: Status.CANCELLED}
    assert await remote.cancel_many(ids[1:]) == dict.fromkeys(ids[1:], Status.CANCELLED)
    for app in (behind, remote):
        assert {job.id: job.status async for job in app.watch(*ids)} == dict.fromkeys(
            ids, Status.CANCELLED
        )
    with pytest.raises(JobNotFound):
        await behind.cancel_many([new_id()])


async def test_letters_and_schedules_are_narrowed_as_an_application_does(
    remote: Remote, behind: Penstock, types: Penstock
) -> None:
    ids = [await dead_job(behind.store, type=t, tenant_id=n) for t, n in ("ax", "bx", "ay")]
    await behind.dead.resolve(ids[0], "ignored")
    for where in (
        {"type_name": "a"},
        {"tenant": "x"},
        {"resolution": "open"},
        {"before": ids[1]},
        {"limit": 1},
        {"group": (await behind.dead.find(type_name="b"))[0].group},
    ):
        letters = await behind.dead.find(**where)  # type: ignore[arg-type]
        found = await remote.dead.find(**where)  # type: ignore[arg-type]
        assert [each.job_id for each in found] == [each.job_id for each in letters], where
        assert letters, where
    with pytest.raises(InvalidOption, match="'resolution' is 'gone'"):
        await remote.dead.find(resolution="gone")
    for tenant in ("x", "y"):
        await behind.schedule(tenant, types.types["add"].options(tenant=tenant).new(1), every=60)
    assert [each.name for each in await remote.schedules.list("y")] == ["y"]
    assert [each.name for each in await behind.schedules.list("y", 5)] == ["y"]
