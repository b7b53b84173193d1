"""What belongs to one tenant is nobody else's business, on any route."""

import asyncio
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from penstock import Penstock
from penstock.operate.actor import Operator
from penstock.store.contract import JobFilter
from proof.conformance.build import dead_job, enqueue_after
from tests.server.api.operations import operations
from tests.server.conftest import TokenMaker

MARK = "of-the-other-tenant"
SHARED = {"list_audit", "enqueue", "put_schedule", "act_on_jobs"}


@pytest.fixture
async def theirs(app: Penstock, server: FastAPI) -> dict[str, str]:
    """One of everything that belongs to the tenant `other`, by the name a path has for it."""
    add = app.find_type("add")
    mine = add.options(tenant="other", tags=(MARK,), metadata={"note": MARK})
    waiting = await app.enqueue(mine.new(1))
    await app.schedule(MARK, mine.new(2), cron="0 3 * * *")
    dead = await dead_job(app.store, type="fail", tenant_id="other", payload='{"text": "x"}')
    await Operator(app, MARK, "other").dead.resolve([dead], "investigating", notes=MARK)
    group = (await app.dead.groups())[0]
    return {"job_id": waiting.id, "dead": dead, "group": group.id, "name": MARK}


async def all_of(app: Penstock) -> Any:
    jobs = await app.store.reader.find(JobFilter(tenant_id="other", limit=100))
    letters = await app.store.dead.find(tenant_id="other")
    return jobs, letters, await app.store.schedules.known(tenant_id="other")


@pytest.mark.every_store
async def test_no_route_shows_or_changes_what_belongs_to_another_tenant(
    app: Penstock,
    server: FastAPI,
    http: AsyncClient,
    make_token: TokenMaker,
    theirs: dict[str, str],
) -> None:
    header = await make_token("admin", tenant="acme")
    before = await all_of(app)
    # What makes something of one's own under the same name comes last.
    for operation in sorted(operations(server), key=lambda each: each.id in SHARED):
        if not operation.scopes or operation.whole:
            continue
        dead = "dead-letters" in operation.path
        names = theirs | {"job_id": theirs["dead" if dead else "job_id"]}
        request = operation.request(http, **names)
        request.headers.update(header)
        async with asyncio.timeout(10):  # a stream that is let through would last
            answer = await http.send(request)
        if "{" in operation.path and operation.id not in SHARED:
            assert answer.status_code == 404, operation.id
        assert theirs["job_id"] not in answer.text or answer.status_code == 404, operation.id
        assert answer.status_code == 404 or MARK not in answer.text or operation.id in SHARED
    assert await all_of(app) == before


async def test_naming_another_tenant_is_refused_on_every_route_that_takes_one(
    server: FastAPI, http: AsyncClient, make_token: TokenMaker, theirs: dict[str, str]
) -> None:
    header = await make_token("admin", tenant="acme")
    taking = [each for each in operations(server) if "tenant" in each.query and not each.whole]
    assert {"list_jobs", "list_dead_letters", "list_audit", "run_schedule"} <= {
        each.id for each in taking
    }
    for operation in taking:
        request = operation.request(http, **theirs)
        request.url = request.url.copy_merge_params({"tenant": "other"})
        request.headers.update(header)
        answer = await http.send(request)
        assert (answer.status_code, answer.json()["field"]) == (403, "tenant"), operation.id
        assert MARK not in answer.text
        request.url = request.url.copy_set_param("tenant", "acme")
        assert (await http.send(request)).status_code in (200, 201, 204, 404), operation.id


@pytest.mark.every_store
async def test_a_filter_by_another_tenant_is_refused_and_changes_nothing(
    app: Penstock, http: AsyncClient, make_token: TokenMaker, theirs: dict[str, str]
) -> None:
    own = await app.find_type("add").options(tenant="acme").enqueue(1)
    header = await make_token("admin", tenant="acme")
    bulk = {"action": "cancel", "filter": {"tenant": "other"}}
    for answer in (
        await http.post("/api/jobs/bulk", json=bulk, headers=header),
        await http.post("/api/jobs/bulk", json=bulk | {"dry_run": True}, headers=header),
    ):
        assert (answer.status_code, answer.json()["field"]) == (403, "tenant")
        assert "'other'" in answer.json()["detail"]
    assert (await own.get()).status == "queued"
    assert (await app.get(theirs["job_id"])).status == "queued"
    job = {"type": "add", "payload": {"a": 1}, "tenant": "other"}
    assert (await http.post("/api/jobs", json=job, headers=header)).status_code == 403
    bulk = {"action": "cancel", "filter": {"tenant": "acme"}}
    done = await http.post("/api/jobs/bulk", json=bulk, headers=header)
    assert done.json()["done"] == 1


async def test_asking_for_another_tenants_job_by_its_id_finds_nothing(
    http: AsyncClient, make_token: TokenMaker, theirs: dict[str, str]
) -> None:
    header = await make_token("admin", tenant="acme")
    named = await http.get("/api/jobs", params={"id": theirs["job_id"]}, headers=header)
    assert named.json() == {"jobs": [], "next": None}


async def test_a_job_cannot_wait_for_another_tenants_job(
    http: AsyncClient, make_token: TokenMaker, theirs: dict[str, str]
) -> None:
    header = await make_token("enqueue", tenant="acme")
    job = {"type": "add", "payload": {"a": 1}, "after": [theirs["job_id"]]}
    known = await http.post("/api/jobs", json=job, headers=header)
    job["after"] = ["01JD3Z6K3V9M0Q2T4W6Y8A0C2E"]
    unknown = await http.post("/api/jobs", json=job, headers=header)
    assert known.status_code == unknown.status_code == 422
    assert known.json()["title"] == unknown.json()["title"]


async def test_a_waiting_job_cannot_be_made_to_wait_for_another_tenants_job(
    app: Penstock, http: AsyncClient, make_token: TokenMaker, theirs: dict[str, str]
) -> None:
    header = await make_token("operate", tenant="acme")
    own = await app.find_type("add").options(tenant="acme", delay=60).enqueue(1)
    answer = await http.post(
        f"/api/jobs/{own.id}/dependencies", json={"after": [theirs["job_id"]]}, headers=header
    )
    assert answer.status_code == 422
    assert answer.json()["type"] == "urn:penstock:problem:parent-not-found"
    assert (await own.get()).waiting_on == 0


async def test_what_a_tenant_enqueues_and_schedules_is_its_own(
    app: Penstock, http: AsyncClient, make_token: TokenMaker
) -> None:
    header = await make_token("admin", tenant="acme")
    made = await http.post("/api/jobs", json={"type": "add", "payload": {"a": 1}}, headers=header)
    assert (await app.get(made.json()["id"])).tenant_id == "acme"
    new = {"type": "add", "payload": {"a": 1}, "every": 60}
    put = await http.put("/api/schedules/own", json=new, headers=header)
    assert put.json()["tenant_id"] == "acme"
    run = await http.post("/api/schedules/own/run", headers=header)
    assert (await app.get(run.json()["id"])).tenant_id == "acme"
    entries = (await http.get("/api/audit", headers=header)).json()["entries"]
    assert [entry["action"] for entry in entries] == ["schedule.run", "schedule.put"]


async def test_a_bulk_action_stays_within_the_tenant(
    app: Penstock, http: AsyncClient, make_token: TokenMaker, theirs: dict[str, str]
) -> None:
    header = await make_token("admin", tenant="acme")
    await http.post("/api/jobs", json={"type": "add", "payload": {"a": 1}}, headers=header)
    bulk = {"action": "cancel", "filter": {"type": "add"}}
    answer = await http.post("/api/jobs/bulk", json=bulk, headers=header)
    assert (answer.json()["found"], answer.json()["done"]) == (1, 1)
    assert (await app.get(theirs["job_id"])).status == "queued"


@pytest.mark.every_store
async def test_a_group_that_tenants_share_shows_each_its_own(
    app: Penstock, http: AsyncClient, make_token: TokenMaker, theirs: dict[str, str]
) -> None:
    own = await dead_job(app.store, type="fail", tenant_id="acme", payload="{}")
    header = await make_token("operate", tenant="acme")
    group = f"/api/dead-letters/groups/{theirs['group']}"
    assert (await http.get(group, headers=header)).json()["count"] == 1
    replayed = await http.post(f"{group}/replay", json={"canary": 10}, headers=header)
    assert replayed.json()["done"] == [own]
    assert (await app.get(theirs["dead"])).status == "dead_letter"
    canaries = await http.get(f"{group}/canaries", headers=header)
    assert canaries.json()["unfinished"] == [own]
    released = await http.post(f"{group}/release", json={"force": True}, headers=header)
    assert released.json()["done"] == []


@pytest.mark.every_store
async def test_nothing_is_told_of_a_parent_of_another_tenant(
    app: Penstock, http: AsyncClient, make_token: TokenMaker
) -> None:
    parent = await app.find_type("send_mail").options(tenant="other", delay=60).enqueue("ann")
    child = await enqueue_after(app.store, parent.id, type="add", tenant_id="acme")
    header = await make_token("read", tenant="acme")
    shown = await http.get(f"/api/jobs/{child}", headers=header)
    assert shown.json()["parents"] == []
    explained = await http.get(f"/api/jobs/{child}/explain", headers=header)
    [reason] = [r for r in explained.json()["reasons"] if r["kind"] == "waits_for_parents"]
    assert "a job of another tenant" in reason["sentence"]
    assert (reason["jobs"], "jobs explain" in reason["sentence"]) == ([], False)
    for told in (parent.id, "send_mail", "pending"):
        assert told not in reason["sentence"]
        assert told not in shown.text or told == "pending"
    await app.cancel(parent.id)
    for path in (f"/api/jobs/{child}", f"/api/jobs/{child}/explain", "/api/jobs"):
        fallen = await http.get(path, headers=header)
        assert "job of another tenant" in fallen.text
        assert parent.id not in fallen.text
        assert "send_mail" not in fallen.text
    # Whoever may see both is told which.
    whole = await http.get(f"/api/jobs/{child}/explain", headers=await make_token("read"))
    assert whole.status_code == 200


async def test_keys_and_orders_of_two_tenants_do_not_meet(
    app: Penstock, http: AsyncClient, make_token: TokenMaker
) -> None:
    body = {"type": "add", "payload": {"a": 1}, "order_key": "o"}
    made = []
    for tenant in ("other", "acme"):
        header = await make_token("enqueue", tenant=tenant) | {"Idempotency-Key": "k"}
        answer = (await http.post("/api/jobs", json=body, headers=header)).json()
        assert answer["created"]
        made.append(answer["id"])
        assert (await app.get(answer["id"])).status == "queued"
    assert len(set(made)) == 2


async def test_a_cursor_out_of_another_tenants_list_leads_to_ones_own(
    app: Penstock, http: AsyncClient, make_token: TokenMaker, theirs: dict[str, str]
) -> None:
    mine = app.find_type("add").options(tenant="acme")
    older = await app.enqueue(mine.new(1))
    foreign = await app.enqueue(app.find_type("add").options(tenant="other").new(2))
    header = await make_token("operate", tenant="acme")
    page = await http.get("/api/jobs", params={"before": foreign.id}, headers=header)
    assert [job["id"] for job in page.json()["jobs"]] == [older.id]
    letters = await http.get("/api/dead-letters", params={"before": foreign.id}, headers=header)
    assert letters.json()["letters"] == []
    bulk = {"action": "cancel", "filter": {"parent": theirs["job_id"]}, "dry_run": True}
    assert (await http.post("/api/jobs/bulk", json=bulk, headers=header)).json()["found"] == 0


async def test_a_tenant_reads_what_the_whole_operator_did_to_what_is_its_own(
    app: Penstock, http: AsyncClient, make_token: TokenMaker, theirs: dict[str, str]
) -> None:
    whole = await make_token("operate")
    group = f"/api/dead-letters/groups/{theirs['group']}"
    await http.post(f"{group}/resolve", json={"resolution": "ignored"}, headers=whole)
    for tenant, seen in (("other", 1), ("acme", 0)):
        header = await make_token("read", tenant=tenant)
        entries = (await http.get("/api/audit", headers=header)).json()["entries"]
        told = [entry for entry in entries if entry["subject"].startswith("group:")]
        assert len(told) == seen
