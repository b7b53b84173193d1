from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.json import decode

from penstock import Penstock
from penstock.model.errors import ForeignTenant, IllegalTransition
from penstock.model.not_found import BreakerNotFound, JobNotFound, LimitNotFound
from penstock.operate import actor
from penstock.operate.actor import Operator
from penstock.operate.jobs import BulkAction
from penstock.operate.journal import Journal
from penstock.store.contract import AuditFilter, JobFilter
from proof.conformance.build import dead_job


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[Penstock]:
    made = Penstock(f"sqlite:///{tmp_path}/jobs.db")

    @made.job
    async def add(a: int) -> int:
        return a

    async with made:
        yield made


async def actions(app: Penstock) -> list[str]:
    found = await app.store.audit.find(AuditFilter())
    return [entry.action for entry in found][::-1]


async def test_an_action_is_written_down_before_it_is_done_and_again_if_it_is_refused(
    app: Penstock,
) -> None:
    handle = await app.enqueue(app.find_type("add").new(1))
    operator = Operator(app, "user:ann")
    with pytest.raises(IllegalTransition):
        await operator.jobs.requeue(handle.id)
    assert await actions(app) == ["job.requeue", "job.requeue.refused"]
    assert (await Journal(app.store).verify()).problem is None


async def test_what_is_not_found_leaves_no_trace(app: Penstock) -> None:
    handle = await app.enqueue(app.find_type("add").options(tenant="other").new(1))
    bound = Operator(app, "user:ann", "acme")
    for job_id in (handle.id, "01JD3Z6K3V9M0Q2T4W6Y8A0C2E", "no id"):
        with pytest.raises(JobNotFound):
            await bound.jobs.cancel(job_id)
    assert await actions(app) == []


async def test_who_did_it_is_told_in_words_that_no_gate_takes_for_a_secret(app: Penstock) -> None:
    handle = await app.enqueue(app.find_type("add").new(1))
    operator = Operator(app, "token:01JD3Z6K3V9M0Q2T4W6Y8A0C2E")
    await operator.jobs.cancel(handle.id)
    assert (await handle.get()).error == "cancelled by token 01JD3Z6K3V9M0Q2T4W6Y8A0C2E"


async def test_jobs_chosen_one_by_one_are_acted_on_within_the_tenant(app: Penstock) -> None:
    add = app.find_type("add")
    own = await app.enqueue(add.options(tenant="acme").new(1))
    other = await app.enqueue(add.options(tenant="other").new(1))
    jobs = Operator(app, "user:ann", "acme").jobs
    done = await jobs.act_on(BulkAction.CANCEL, [own.id, other.id])
    assert (done.found, done.done, done.refused) == (2, 1, 1)
    assert (await other.get()).status == "queued"


async def test_a_page_in_which_one_job_is_gone_is_done_for_the_others(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = app.find_type("add")
    ids = [(await app.enqueue(add.new(n))).id for n in range(5)]
    jobs = Operator(app, "user:ann").jobs
    done = await jobs._cancel([*ids[:2], "01JD3Z6K3V9M0Q2T4W6Y8A0C2E", *ids[2:]])
    assert done == 5
    again = await jobs.act(BulkAction.REQUEUE, JobFilter(type="add"))
    assert (again.found, again.done) == (5, 5)


async def test_a_purge_of_a_group_takes_the_open_letters_of_the_tenant(app: Penstock) -> None:
    own = await dead_job(app.store, type="add", tenant_id="acme", payload="{}")
    other = await dead_job(app.store, type="add", tenant_id="other", payload="{}")
    dead = Operator(app, "user:ann", "acme").dead
    (group,) = await dead.groups()
    assert await dead.purge(group.id) == 1
    left = await app.store.dead.find()
    assert [letter.job_id for letter in left] == [other]
    with pytest.raises(JobNotFound):
        await dead.show(own)


async def test_a_purge_by_filter_stays_within_the_tenant_and_is_on_record(app: Penstock) -> None:
    own = await dead_job(app.store, type="add", tenant_id="acme")
    other = await dead_job(app.store, type="add", tenant_id="other")
    dead = Operator(app, "user:ann", "acme").dead
    assert await dead.count(type_name="add") == 1
    with pytest.raises(ForeignTenant):
        await dead.purge(tenant="other")
    assert await dead.purge(type_name="add", resolution="open") == 1
    assert [letter.job_id for letter in await app.store.dead.find()] == [other]
    (entry,) = await app.store.audit.find(AuditFilter())
    assert (entry.action, entry.tenant_id) == ("dead.purge", "acme")
    assert decode(entry.details) == {
        "filter": {"type_name": "add", "resolution": "open"},
        "count": 1,
        "ids": [own],
    }


async def test_an_entry_belongs_to_the_tenant_to_whom_all_it_touches_belongs(
    app: Penstock,
) -> None:
    whole = Operator(app, "user:ann")
    one, two = [await dead_job(app.store, type="add", tenant_id="acme") for _ in range(2)]
    group = (await app.dead.groups())[0].id
    await whole.dead.replay(group, canary=1)
    await whole.dead.release(group, None, force=True)
    await whole.jobs.cancel_all([one, two], "withdrawn")
    await whole.jobs.act_on(BulkAction.REQUEUE, [one, two])
    found = await app.store.audit.find(AuditFilter(tenant_id="acme"))
    assert [entry.action for entry in found][::-1] == [
        "dead.replay",
        "dead.release",
        "jobs.cancel",
        "jobs.requeue",
    ]


async def test_an_entry_about_several_tenants_belongs_to_none_of_them(app: Penstock) -> None:
    whole = Operator(app, "user:ann")
    ids = [await dead_job(app.store, type="add", tenant_id=name) for name in ("acme", "other")]
    group = (await app.dead.groups())[0].id
    await whole.dead.resolve(group, "investigating")
    await whole.dead.resolve(ids, "investigating")
    await whole.jobs.act_on(BulkAction.PAUSE, ids)
    await whole.dead.purge(ids[:1])
    found = await app.store.audit.find(AuditFilter())
    assert [(entry.action, entry.tenant_id) for entry in found][::-1] == [
        ("dead.resolve", ""),
        ("dead.resolve", ""),
        ("jobs.pause", ""),
        ("dead.purge", "acme"),
    ]


async def test_what_is_done_to_one_job_reads_the_same_however_it_was_named(app: Penstock) -> None:
    whole = Operator(app, "user:ann")
    ids = [await dead_job(app.store, type="add", tenant_id="acme") for _ in range(3)]
    await whole.jobs.requeue(ids[0])
    await whole.jobs.requeue_all(ids[1:2])
    await whole.jobs.requeue_each(ids[2:])
    await whole.jobs.cancel(ids[0])
    await whole.jobs.cancel_all(ids[1:2], "withdrawn")
    await whole.jobs.act_on(BulkAction.CANCEL, ids[2:])
    entries = (await app.store.audit.find(AuditFilter(tenant_id="acme")))[::-1]
    assert [entry.action for entry in entries] == ["job.requeue"] * 3 + ["job.cancel"] * 3
    assert [entry.subject for entry in entries] == [f"job:{job_id}" for job_id in ids] * 2
    assert len({entry.details for entry in entries[:3]}) == 1
    assert len({entry.details for entry in entries[3:]}) == 1


async def test_what_is_done_to_several_jobs_names_each(app: Penstock) -> None:
    whole = Operator(app, "user:ann")
    ids = [await dead_job(app.store, type="add") for _ in range(2)]
    await whole.dead.resolve(ids, "investigating")
    await whole.jobs.requeue_all(ids)
    for entry in await app.store.audit.find(AuditFilter()):
        assert entry.subject == "jobs"
        assert decode(entry.details)["ids"] == ids
        assert decode(entry.details)["count"] == 2


async def test_an_entry_of_very_many_jobs_stays_small(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actor, "MOST_IDS", 2)
    ids = [await dead_job(app.store, type="add") for _ in range(3)]
    await Operator(app, "user:ann").dead.purge(ids)
    [entry] = await app.store.audit.find(AuditFilter())
    assert decode(entry.details) == {"count": 3, "ids": ids[:2]}


async def test_many_letters_are_purged_without_a_question_about_each(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [await dead_job(app.store, type="add", tenant_id="acme") for _ in range(20)]
    asked: list[object] = []
    for part, name in ((app.store.dead, "get"), (app.store.reader, "get")):
        real = getattr(part, name)

        def counting(*of: Any, real: Any = real) -> Any:
            asked.append(of)
            return real(*of)

        monkeypatch.setattr(part, name, counting)
    assert await Operator(app, "user:ann", "acme").dead.purge(ids) == 20
    assert len(asked) == 1


async def test_taking_away_what_is_not_there_is_on_record_as_refused(app: Penstock) -> None:
    controls = Operator(app, "user:ann").controls
    with pytest.raises(LimitNotFound, match="no limit of rate on key 'gas'"):
        await controls.remove_limit(key="gas", kind="rate")
    with pytest.raises(BreakerNotFound, match="no breaker 'oven'"):
        await controls.reset_breaker("oven")
    assert await actions(app) == [
        "limit.remove",
        "limit.remove.refused",
        "breaker.reset",
        "breaker.reset.refused",
    ]


async def test_a_cancelled_job_is_amended_on_record(app: Penstock) -> None:
    handle = await app.enqueue(app.find_type("add").options(tenant="acme").new(1))
    bound = Operator(app, "user:ann", "acme")
    await bound.jobs.cancel(handle.id)
    amended = await bound.dead.amend(handle.id, {"a": 2})
    assert amended.payload == '{"a":2}'
    assert await actions(app) == ["job.cancel", "job.amend"]
    with pytest.raises(JobNotFound):
        await Operator(app, "user:bob", "other").dead.amend(handle.id, {"a": 3})


async def test_what_a_program_does_is_not_on_record(app: Penstock) -> None:
    add = app.find_type("add")
    handle = await app.enqueue(add.new(1))
    await app.schedule("nightly", add.new(1), every=60)
    await app.controls.pause(job=handle)
    await app.controls.resume(job=handle)
    pause = await app.controls.pause(queue="mail", reason="deploy")
    assert pause.paused_by is None
    await app.controls.set_limit(key="gas", rate="1/s")
    await app.controls.remove_limit(key="gas")
    await app.schedules.pause("nightly")
    await app.schedules.run("nightly")
    await app.cancel(handle.id)
    assert (await handle.get()).error == "cancelled by the caller"
    await app.dead.amend(handle.id, {"a": 2}, requeue=True)
    await dead_job(app.store, type="add")
    await app.dead.resolve((await app.dead.groups())[0].id, "ignored")
    assert await app.dead.purge(resolution="ignored") == 1
    assert await actions(app) == []


async def test_a_job_is_paused_within_the_tenant_and_on_record_by_who_asked(
    app: Penstock,
) -> None:
    add = app.find_type("add")
    own = await app.enqueue(add.options(tenant="acme").new(1))
    other = await app.enqueue(add.options(tenant="other").new(1))
    controls = Operator(app, "user:ann", "acme").controls
    for act in (controls.pause, controls.resume):
        with pytest.raises(JobNotFound):
            await act(job=other.id)
    assert (await controls.pause(job=own.id)).paused_by == "user ann"
    assert (await other.get()).status == "queued"
    [entry] = await app.store.audit.find(AuditFilter())
    assert (entry.action, entry.subject, entry.tenant_id) == ("job.pause", f"job:{own.id}", "acme")


async def test_schedules_of_another_tenant_are_neither_listed_nor_touched(app: Penstock) -> None:
    add = app.find_type("add")
    for tenant in ("acme", "other"):
        await app.schedule("nightly", add.options(tenant=tenant).new(1), every=60)
    schedules = Operator(app, "user:ann", "acme").schedules
    assert [each.schedule.tenant_id for each in await schedules.list()] == ["acme"]
    assert len(await app.schedules.list()) == 2
    assert [v.schedule.tenant_id for v in await app.schedules.list("other")] == ["other"]
    for act in (schedules.get, schedules.pause, schedules.remove, schedules.run, schedules.list):
        with pytest.raises(ForeignTenant):
            await act("other") if act == schedules.list else await act("nightly", "other")
    assert (await schedules.pause("nightly")).schedule.tenant_id == "acme"
    assert not (await app.schedules.get("nightly", "other")).paused
    assert await actions(app) == ["schedule.pause"]
