"""The recorder over HTTP: what may be read and decided by whom, as the API's document says."""

import json
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path

import httpx
import msgspec
import pytest
from fastapi import FastAPI

from penstock import Penstock
from penstock.apps.recorder.api import LearningList, SessionList, SessionViewDocument, StatsDocument
from penstock.apps.recorder.demo import BUTTONS
from penstock.config import Settings
from penstock.server.app import create_server
from tests.apps.recorder.sessions import RECORDER, learn, record
from tests.server.conftest import TokenMaker, http, make_token  # noqa: F401

Http = httpx.AsyncClient


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[Penstock]:
    settings = Settings(url=f"sqlite:///{tmp_path}/work.db", requests_per_minute=0)
    async with Penstock(settings=settings, extensions=["events", RECORDER]) as made:
        yield made


@pytest.fixture
async def server(app: Penstock) -> AsyncIterator[FastAPI]:
    made = create_server(app, trusts_callers=True)
    async with made.router.lifespan_context(made):
        yield made


async def test_sessions_are_listed_page_by_page(app: Penstock, http: Http) -> None:  # noqa: F811
    first, second = await record(app), await record(app, BUTTONS, "s2")
    seen, path = [], "/api/recorder/sessions?limit=1"
    while path:
        answer = await http.get(path)
        page = msgspec.json.decode(answer.content, type=SessionList)
        seen += [row.id for row in page.sessions]
        path = f"/api/recorder/sessions?limit=1&before={page.next}" if page.next else ""
    assert sorted(seen) == sorted([first, second])
    narrowed = await http.get("/api/recorder/sessions?platform=cursor&status=complete")
    assert [row["id"] for row in narrowed.json()["sessions"]] == [second]


async def test_a_session_is_read_whole(app: Penstock, http: Http) -> None:  # noqa: F811
    session = await record(app)
    answer = await http.get(f"/api/recorder/sessions/{session}")
    view = msgspec.json.decode(answer.content, type=SessionViewDocument)
    assert (view.row.id, len(view.turns)) == (session, 2)
    assert answer.json()["row"]["started_at"].endswith("Z")
    missing = await http.get("/api/recorder/sessions/nobody")
    assert (missing.status_code, "nobody" in missing.text) == (404, True)


async def test_words_are_searched_and_figures_read(app: Penstock, http: Http) -> None:  # noqa: F811
    session = await record(app)
    hits = (await http.get("/api/recorder/search?text=budget")).json()["hits"]
    assert {hit["conversation_id"] for hit in hits} == {session}
    stats = msgspec.json.decode((await http.get("/api/recorder/stats")).content, type=StatsDocument)
    assert (stats.sessions, stats.turns) == (1, 2)
    assert (await http.get("/api/recorder/search")).status_code == 422


async def test_a_session_is_given_to_a_collector_as_spans(app: Penstock, http: Http) -> None:  # noqa: F811
    session = await record(app)
    document = (await http.get(f"/api/recorder/sessions/{session}/spans")).json()
    spans = document["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert spans[0]["name"] == "invoke_agent Claude Code"
    assert {span["traceId"] for span in spans} == {session}


async def test_an_export_is_lines_with_a_hash_at_the_end(app: Penstock, http: Http) -> None:  # noqa: F811
    session = await record(app)
    answer = await http.get(f"/api/recorder/sessions/{session}/export")
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    *lines, last = answer.content.splitlines(keepends=True)
    assert json.loads(last)["sha256"] == sha256(b"".join(lines)).hexdigest()


async def test_a_deletion_answers_with_its_proof(
    app: Penstock,
    http: Http,  # noqa: F811
    make_token: TokenMaker,  # noqa: F811
) -> None:
    session = await record(app)
    path = f"/api/recorder/sessions/{session}"
    operator, admin = await make_token("operate", "read"), await make_token("admin")
    assert (await http.delete(path, headers=operator)).status_code == 403
    proof = (await http.delete(path, headers=admin)).json()
    assert set(proof["left"].values()) == {0}
    assert (await http.get(path, headers=admin)).status_code == 404


async def test_learnings_are_changed_and_decided(app: Penstock, http: Http) -> None:  # noqa: F811
    await record(app)
    learning = await learn(app)
    path = f"/api/recorder/learnings/{learning}"
    changed = await http.patch(path, json={"title": "Budgets belong to work"})
    assert changed.json()["title"] == "Budgets belong to work"
    assert (await http.patch(path, json={})).status_code == 422
    assert (await http.post(f"{path}/approve")).json()["status"] == "approved"
    assert (await http.post(f"{path}/reject")).json()["status"] == "rejected"
    listed = await http.get("/api/recorder/learnings?status=rejected")
    page = msgspec.json.decode(listed.content, type=LearningList)
    assert [each.id for each in page.learnings] == [learning]
    revoked = await http.post(f"{path}/revoke")
    assert (revoked.status_code, "was not published" in revoked.text) == (422, True)
    assert (await http.get("/api/recorder/learnings/nobody")).status_code == 404


async def test_a_tenant_reads_its_own(
    app: Penstock,
    http: Http,  # noqa: F811
    make_token: TokenMaker,  # noqa: F811
) -> None:
    await record(app, tenant="north")
    south = await record(app, tenant="south")
    bound = await make_token("read", tenant="south")
    listed = await http.get("/api/recorder/sessions", headers=bound)
    assert [row["id"] for row in listed.json()["sessions"]] == [south]
    other = await http.get("/api/recorder/sessions?tenant=north", headers=bound)
    assert other.status_code == 403
    hits = (await http.get("/api/recorder/search?text=budget", headers=bound)).json()["hits"]
    assert {hit["conversation_id"] for hit in hits} == {south}


async def test_the_document_describes_every_address(server: FastAPI) -> None:
    paths = server.openapi()["paths"]
    ours = [path for path in paths if path.startswith("/api/recorder/")]
    assert len(ours) >= 11
    schemas = server.openapi()["components"]["schemas"]
    assert {"SessionViewDocument", "LearningDocument", "ProofDocument"} <= set(schemas)
