from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from penstock import Penstock
from penstock.client.journal import Journal
from penstock.client.operating.bulk import BulkAction
from penstock.client.operator import Operator
from penstock.model.errors import IllegalTransition, JobNotFound
from penstock.store.contract import AuditFilter, JobFilter
from penstock.testing.conformance.build import dead_job


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
        await operator.requeue(handle.id)
    assert await actions(app) == ["job.requeue", "job.requeue.refused"]
    assert (await Journal(app.store).verify()).problem is None


async def test_what_is_not_found_leaves_no_trace(app: Penstock) -> None:
    handle = await app.enqueue(app.find_type("add").options(tenant="other").new(1))
    bound = Operator(app, "user:ann", "acme")
    for job_id in (handle.id, "01JD3Z6K3V9M0Q2T4W6Y8A0C2E", "no id"):
        with pytest.raises(JobNotFound):
            await bound.cancel(job_id)
    assert await actions(app) == []


async def test_who_did_it_is_told_in_words_that_no_gate_takes_for_a_secret(app: Penstock) -> None:
    handle = await app.enqueue(app.find_type("add").new(1))
    operator = Operator(app, "token:01JD3Z6K3V9M0Q2T4W6Y8A0C2E")
    await operator.cancel(handle.id)
    assert (await handle.get()).error == "cancelled by token 01JD3Z6K3V9M0Q2T4W6Y8A0C2E"


async def test_jobs_chosen_one_by_one_are_acted_on_within_the_tenant(app: Penstock) -> None:
    add = app.find_type("add")
    own = await app.enqueue(add.options(tenant="acme").new(1))
    other = await app.enqueue(add.options(tenant="other").new(1))
    bulk = Operator(app, "user:ann", "acme").bulk
    done = await bulk.act_on(BulkAction.CANCEL, [own.id, other.id])
    assert (done.found, done.done, done.refused) == (2, 1, 1)
    assert (await other.get()).status == "queued"


async def test_a_page_in_which_one_job_is_gone_is_done_for_the_others(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = app.find_type("add")
    ids = [(await app.enqueue(add.new(n))).id for n in range(5)]
    bulk = Operator(app, "user:ann").bulk
    done = await bulk._cancel([*ids[:2], "01JD3Z6K3V9M0Q2T4W6Y8A0C2E", *ids[2:]])
    assert done == 5
    again = await bulk.act(BulkAction.REQUEUE, JobFilter(type="add"))
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
