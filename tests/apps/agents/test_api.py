"""The agent workers over HTTP: who may do what, and that it is done."""

import io
import zipfile
from collections.abc import AsyncIterator

import httpx
import msgspec
import pytest
from fastapi import FastAPI

from penstock import Penstock
from penstock.apps.agents.api.learning import AgentSessionList, PatternList, TrajectoryList
from penstock.apps.agents.api.maintenance import DeletionList, ExportList, QuotaList, UsageList
from penstock.apps.agents.api.memories import GraphDocument, MemoryList, RecalledList
from penstock.apps.agents.api.webhooks import DeliveryList, WebhookList
from penstock.server.app import create_server
from penstock.testing import drain
from tests.apps.agents.furnish import ANSWER, TENANT, Receiver, furnish, hold_session, remember
from tests.apps.agents.serving import app, receiver  # noqa: F401
from tests.server.conftest import TokenMaker, http, make_token  # noqa: F401

pytestmark = pytest.mark.thorough("postgres")

Http = httpx.AsyncClient


@pytest.fixture
async def server(app: Penstock) -> AsyncIterator[FastAPI]:  # noqa: F811
    made = create_server(app, trusts_callers=True)
    async with made.router.lifespan_context(made):
        yield made


@pytest.mark.quick("postgres")
async def test_a_memory_is_added_found_by_meaning_changed_and_forgotten(http: Http) -> None:  # noqa: F811
    said = {"content": "Ada lives in Turin.", "user_id": "ada", "at": "2026-01-02T03:04:05Z"}
    added = (await http.post("/api/agents/memories", json=said)).json()
    assert added["stored"] is True
    assert added["memory"]["valid_from"] == "2026-01-02T03:04:05.000Z"
    again = (await http.post("/api/agents/memories", json=said)).json()
    assert (again["stored"], again["memory"]["id"]) == (False, added["memory"]["id"])
    asked = await http.get("/api/agents/search?text=In+which+city+is+Ada%3F&user=ada")
    [found] = msgspec.json.decode(asked.content, type=RecalledList).found
    assert found.memory.content == "Ada lives in Turin."
    path = f"/api/agents/memories/{added['memory']['id']}"
    assert (await http.get(path)).json()["access_count"] == 1
    changed = await http.patch(path, json={"content": "Ada lives in Oslo.", "importance": 0.9})
    assert (changed.json()["content"], changed.json()["importance"]) == ("Ada lives in Oslo.", 0.9)
    assert (await http.patch(path, json={})).status_code == 422
    assert (await http.delete(path)).json() == {"removed": True}
    assert (await http.get(path)).status_code == 404


async def test_memories_are_listed_page_by_page(app: Penstock, http: Http) -> None:  # noqa: F811
    sayings = ("The sky is blue.", "Bread is baked at night.", "Ships sail to Genoa.")
    told = {each.id for each in await remember(app, *sayings)}
    seen, path = set(), "/api/agents/memories?limit=1"
    while path:
        page = msgspec.json.decode((await http.get(path)).content, type=MemoryList)
        seen |= {row.id for row in page.memories}
        path = f"/api/agents/memories?limit=1&before={page.next}" if page.next else ""
    assert seen == told
    none = (await http.get("/api/agents/memories?type=procedural")).json()["memories"]
    assert none == []


async def test_memories_are_merged_and_tied_and_their_graph_read(
    app: Penstock,  # noqa: F811
    http: Http,  # noqa: F811
) -> None:
    one, other = (each.id for each in await remember(app, "Ada has a cat.", "The bank is far."))
    edge = {"source": one, "target": other, "edge_type": "caused_by"}
    assert (await http.post("/api/agents/edges", json=edge)).json()["edge_type"] == "caused_by"
    told = {"ids": [one, other], "content": "Ada, her cat and her bank."}
    merged = (await http.post("/api/agents/memories/merge", json=told)).json()
    assert merged["memory_type"] == "semantic"
    graph = msgspec.json.decode(
        (await http.get(f"/api/agents/memories/{merged['id']}/graph")).content, type=GraphDocument
    )
    assert {each.id for each in graph.memories} == {one, other, merged["id"]}
    assert {edge.edge_type for edge in graph.edges} >= {"supersedes"}
    gone = await http.delete("/api/agents/edges", params=edge)
    assert gone.json() == {"removed": True}
    assert (await http.delete("/api/agents/edges", params=edge)).json() == {"removed": False}


async def test_a_session_becomes_a_trajectory(app: Penstock, http: Http) -> None:  # noqa: F811
    opened = (await http.post("/api/agents/sessions", json={"user_id": "ada"})).json()
    path = f"/api/agents/sessions/{opened['id']}"
    turns = [
        {"role": "user", "content": "Book a table for two"},
        {"role": "tool", "content": "booked", "skill_id": "book", "succeeded": True},
        {"role": "user", "content": "Perfect, thanks"},
    ]
    assert (await http.post(f"{path}/turns", json=turns)).json()["turns"] == 3
    read = (await http.get(f"{path}/turns?after=1")).json()["turns"]
    assert [turn["n"] for turn in read] == [2, 3]
    assert (await http.post(f"{path}/close")).json()["status"] == "closed"
    assert (await http.post(f"{path}/turns", json=turns[:1])).status_code == 422
    await drain(app)
    listed = await http.get(f"/api/agents/trajectories?session={opened['id']}")
    [task] = msgspec.json.decode(listed.content, type=TrajectoryList).trajectories
    assert (task.verdict, task.skill_ids) == ("success", ["book"])
    one = (await http.get(f"/api/agents/trajectories/{task.id}")).json()
    assert one["session_id"] == opened["id"]
    sessions = await http.get("/api/agents/sessions?status=closed")
    page = msgspec.json.decode(sessions.content, type=AgentSessionList)
    assert [each.id for each in page.sessions] == [opened["id"]]


async def test_patterns_are_listed_and_switched_on_record(
    app: Penstock,  # noqa: F811
    http: Http,  # noqa: F811
    receiver: Receiver,  # noqa: F811
) -> None:
    have = await furnish(app, receiver.url)
    listed = (await http.get("/api/agents/patterns?active=true")).content
    [row] = msgspec.json.decode(listed, type=PatternList).patterns
    assert (row.id, row.confidence) == (have.pattern, 0.9)
    path = f"/api/agents/patterns/{have.pattern}"
    assert (await http.post(f"{path}/deactivate")).json()["is_active"] is False
    assert (await http.get("/api/agents/patterns?active=true")).json()["patterns"] == []
    assert (await http.post(f"{path}/activate")).json()["is_active"] is True
    actions = [entry.action for entry in await app.store.audit.page(0, 1_000)]
    assert {"pattern.deactivate", "pattern.activate"} <= {*actions}
    task = {"task": "Refund an order", "tenant": TENANT}
    assert (await http.post("/api/agents/predict", json=task)).json() == {"prediction": None}
    assert (await http.post("/api/agents/patterns/match", json=task)).status_code == 200
    assert (await http.get("/api/agents/classifiers")).json() == {"classifiers": []}


async def test_a_webhook_is_added_tested_replayed_rotated_and_switched_off(
    app: Penstock,  # noqa: F811
    http: Http,  # noqa: F811
    receiver: Receiver,  # noqa: F811
) -> None:
    told = {"url": receiver.url, "topics": ["order.shipped"], "tenant": TENANT}
    made = (await http.post("/api/agents/webhooks", json=told)).json()
    assert made["secret"].startswith("whsec_")
    path = f"/api/agents/webhooks/{made['webhook']['id']}"
    assert made["secret"] not in (await http.get(path)).text
    await http.post(f"{path}/test")
    topic = {"topic": "order.shipped", "data": {"n": 7}, "tenant": TENANT}
    assert len((await http.post("/api/agents/topics", json=topic)).json()["job_ids"]) == 1
    await drain(app)
    page = msgspec.json.decode((await http.get(f"{path}/deliveries")).content, type=DeliveryList)
    assert {each.topic for each in page.deliveries} == {"webhook.test", "order.shipped"}
    assert {each.response_body for each in page.deliveries} == {ANSWER}
    again = await http.post(f"/api/agents/deliveries/{page.deliveries[0].id}/replay")
    assert again.status_code == 200
    span = {"since": "2020-01-01T00:00:00Z", "delivered": True}
    assert (await http.post(f"{path}/replay", json=span)).json() == {"messages": 2}
    await drain(app)
    assert receiver.taken == 5
    assert (await http.get(f"{path}/statistics")).json()["succeeded"] == 5
    assert (await http.post(f"{path}/rotate")).json()["secret"] != made["secret"]
    changed = await http.patch(path, json={"topics": ["a.*"], "owner": "ben"})
    assert (changed.json()["topics"], changed.json()["owner"]) == (["a.*"], "ben")
    assert (await http.post(f"{path}/disable")).json()["is_enabled"] is False
    assert (await http.post(f"{path}/enable")).json()["is_enabled"] is True
    listed = msgspec.json.decode((await http.get("/api/agents/webhooks")).content, type=WebhookList)
    assert [each.id for each in listed.webhooks] == [made["webhook"]["id"]]
    assert (await http.delete(path)).json() == {"removed": True}
    assert (await http.get(path)).status_code == 404


async def test_quotas_are_set_read_and_removed(app: Penstock, http: Http) -> None:  # noqa: F811
    path = "/api/agents/quotas/north/jobs"
    told = {"most": 5, "period": "day", "action": "warn"}
    assert (await http.put(path, json=told)).json()["most"] == 5
    quotas = msgspec.json.decode((await http.get("/api/agents/quotas")).content, type=QuotaList)
    assert [(each.tenant_id, each.measure) for each in quotas.quotas] == [("north", "jobs")]
    usage = await http.get("/api/agents/usage?tenant=north")
    [used] = msgspec.json.decode(usage.content, type=UsageList).usage
    assert (used.used, used.state) == (0, "open")
    assert (await http.put("/api/agents/quotas/north/hats", json=told)).status_code == 422
    assert (await http.delete(path)).json() == {"removed": True}


async def test_an_export_is_started_and_downloaded(app: Penstock, http: Http) -> None:  # noqa: F811
    await remember(app, "Ada lives in Turin.")
    started = await http.post("/api/agents/exports", json={"tenant": TENANT})
    await drain(app)
    assert (await app.get(started.json()["job_id"])).status == "completed"
    listed = msgspec.json.decode((await http.get("/api/agents/exports")).content, type=ExportList)
    [export] = listed.exports
    file = await http.get(f"/api/agents/exports/{export.id}/file")
    with zipfile.ZipFile(io.BytesIO(file.content)) as archive:
        held = b"".join(archive.read(name) for name in archive.namelist())
    assert b"Ada lives in Turin." in held
    assert (await http.delete(f"/api/agents/exports/{export.id}")).json() == {"removed": True}
    nobody = await http.post("/api/agents/exports", json={})
    assert (nobody.status_code, "tenant" in nobody.text) == (422, True)


async def test_a_deletion_ends_with_a_certificate_that_verifies(
    app: Penstock,  # noqa: F811
    http: Http,  # noqa: F811
) -> None:
    await remember(app, "Ada lives in Turin.")
    begun = (await http.post("/api/agents/deletions", json={"tenant": TENANT})).json()
    assert (await http.get(f"/api/jobs/{begun['job_id']}")).json()["type"] == "data-deletion"
    await drain(app)
    assert (await http.get("/api/agents/memories")).json()["memories"] == []
    listed = await http.get("/api/agents/deletions")
    [found] = msgspec.json.decode(listed.content, type=DeletionList).deletions
    assert (found.id, found.status, found.subject) == (begun["deletion_id"], "done", None)
    one = (await http.get(f"/api/agents/deletions/{found.id}")).json()
    certificate = one["certificate"]
    assert certificate["found"]["agents_memories"] == 1
    verify = "/api/agents/deletions/verify"
    assert (await http.post(verify, json=certificate)).json() == {"valid": True}
    forged = certificate | {"found": {}}
    assert (await http.post(verify, json=forged)).json() == {"valid": False}


@pytest.mark.parametrize("told", [{}, {"user_id": ""}, {"tenant": TENANT, "user_id": ""}])
async def test_a_deletion_of_nobody_is_refused(
    app: Penstock,  # noqa: F811
    http: Http,  # noqa: F811
    make_token: TokenMaker,  # noqa: F811
    told: dict[str, str],
) -> None:
    await remember(app, "Ada lives in Turin.")
    bound = await make_token("admin", "read", tenant=TENANT)
    answer = await http.post("/api/agents/deletions", json=told, headers=bound)
    assert answer.status_code == 422, answer.text
    await drain(app)
    assert (await http.get("/api/agents/memories", headers=bound)).json()["memories"]


async def test_a_tenant_sees_and_changes_only_its_own(
    app: Penstock,  # noqa: F811
    http: Http,  # noqa: F811
    make_token: TokenMaker,  # noqa: F811
    receiver: Receiver,  # noqa: F811
) -> None:
    theirs = await furnish(app, receiver.url, "theirs")
    session = await hold_session(app, tenant="south")
    bound = await make_token("operate", "enqueue", "admin", tenant="south")
    for path, name in (
        ("memories", "memories"),
        ("patterns", "patterns"),
        ("trajectories", "trajectories"),
        ("webhooks", "webhooks"),
        ("quotas", "quotas"),
        ("exports", "exports"),
        ("deletions", "deletions"),
    ):
        listed = (await http.get(f"/api/agents/{path}", headers=bound)).json()[name]
        assert listed == [], path
        if path != "deletions":
            other = await http.get(f"/api/agents/{path}?tenant={TENANT}", headers=bound)
            assert other.status_code == 403, path
    own = (await http.get("/api/agents/sessions", headers=bound)).json()["sessions"]
    assert [each["id"] for each in own] == [session]
    found = (await http.get("/api/agents/search?text=Ada", headers=bound)).json()["found"]
    assert found == []
    for method, path in (
        ("GET", f"memories/{theirs.merged}"),
        ("DELETE", f"memories/{theirs.merged}"),
        ("GET", f"memories/{theirs.merged}/graph"),
        ("GET", f"sessions/{theirs.session}"),
        ("GET", f"sessions/{theirs.session}/turns"),
        ("GET", f"patterns/{theirs.pattern}"),
        ("POST", f"patterns/{theirs.pattern}/deactivate"),
        ("GET", f"webhooks/{theirs.webhook}"),
        ("POST", f"webhooks/{theirs.webhook}/test"),
        ("POST", f"webhooks/{theirs.webhook}/rotate"),
        ("GET", f"webhooks/{theirs.webhook}/deliveries"),
        ("DELETE", f"webhooks/{theirs.webhook}"),
    ):
        answer = await http.request(method, f"/api/agents/{path}", headers=bound)
        assert answer.status_code == 404, (path, answer.text)
    merge = {"ids": theirs.memories}
    assert (
        await http.post("/api/agents/memories/merge", json=merge, headers=bound)
    ).status_code == 404
    quota = await http.put("/api/agents/quotas/south/jobs", json={"most": 1}, headers=bound)
    assert quota.status_code == 403, "what it may use is for others to say"
    erasing = {"tenant": TENANT}
    assert (
        await http.post("/api/agents/deletions", json=erasing, headers=bound)
    ).status_code == 403
    usage = await http.get(f"/api/agents/usage?tenant={TENANT}", headers=bound)
    assert usage.status_code == 403


async def test_reading_is_not_changing(
    app: Penstock,  # noqa: F811
    http: Http,  # noqa: F811
    make_token: TokenMaker,  # noqa: F811
) -> None:
    [memory] = await remember(app, "Ada lives in Turin.")
    reader, operator = await make_token("read"), await make_token("operate")
    path = f"/api/agents/memories/{memory.id}"
    assert (await http.get(path, headers=reader)).status_code == 200
    assert (await http.delete(path, headers=reader)).status_code == 403
    assert (await http.get("/api/agents/exports/x/file", headers=operator)).status_code == 403
    started = await http.post("/api/agents/deletions", json={"tenant": TENANT}, headers=operator)
    assert started.status_code == 403


async def test_the_document_describes_every_address(server: FastAPI) -> None:
    paths = server.openapi()["paths"]
    ours = [path for path in paths if path.startswith("/api/agents/")]
    assert len(ours) >= 40
    for path in ours:
        for operation in paths[path].values():
            assert operation["summary"] or operation["description"]
    schemas = server.openapi()["components"]["schemas"]
    assert {"MemoryDocument", "WebhookDocument", "Certificate"} <= {*schemas}
