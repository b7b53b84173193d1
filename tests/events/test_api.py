"""Events over HTTP: one, a list or NDJSON; what may be read by whom; dead letters and consumers."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from penstock import Penstock
from penstock.config import Settings
from penstock.events import feed
from penstock.events.pool import catch_up
from penstock.events.pressure import check
from penstock.server.app import create_server
from tests.events.counting import Resetting, counting, numbered
from tests.server.conftest import Bearer, TokenMaker, http, make_token  # noqa: F401
from tests.support.places import find_place

pytestmark = pytest.mark.thorough("postgres")

NDJSON = {"Content-Type": "application/x-ndjson"}
EVENT = {"event_type": "tool_use", "session_id": "s", "payload": {"n": 1}}


@pytest.fixture
async def app(kind: str, request: pytest.FixtureRequest) -> AsyncIterator[Penstock]:
    settings = Settings(url=find_place(kind, request).url, requests_per_minute=0)
    async with Penstock(settings=settings, extensions=["events"]) as made:
        yield made


@pytest.fixture
async def server(app: Penstock) -> AsyncIterator[FastAPI]:
    made = create_server(app, trusts_callers=True)
    async with made.router.lifespan_context(made):
        yield made


Http = httpx.AsyncClient


@pytest.mark.quick("postgres")
async def test_one_event_is_appended(app: Penstock, http: Http) -> None:  # noqa: F811
    answer = await http.post("/api/events", json=EVENT)
    assert answer.status_code == 200, answer.text
    [appended] = answer.json()["events"]
    assert (appended["sequence"], appended["created"]) == (1, True)
    assert (await app.events.get(appended["event_id"])).payload == {"n": 1}


async def test_a_list_and_lines_are_appended_in_their_order(
    app: Penstock,
    http: Http,  # noqa: F811
) -> None:
    many = [EVENT | {"payload": {"n": n}} for n in range(3)]
    lines = "\n".join(json.dumps(each) for each in many) + "\n\n"
    listed = await http.post("/api/events", json=many)
    streamed = await http.post("/api/events", content=lines, headers=NDJSON)
    assert [each["sequence"] for each in listed.json()["events"]] == [1, 2, 3]
    assert [each["sequence"] for each in streamed.json()["events"]] == [4, 5, 6]
    assert [event.payload["n"] for event in await app.events.find()] == [0, 1, 2, 0, 1, 2]


async def test_an_event_that_comes_again_is_there_once(http: Http) -> None:  # noqa: F811
    same = EVENT | {"event_id": "e1", "timestamp": "2026-11-16T08:00:00Z"}
    first = await http.post("/api/events", json=same)
    again = await http.post("/api/events", json=same)
    assert [first.json()["events"][0]["created"], again.json()["events"][0]["created"]] == [
        True,
        False,
    ]
    other = await http.post("/api/events", json=same | {"payload": {"n": 2}})
    assert (other.status_code, "another content" in other.json()["detail"]) == (422, True)


BAD: list[tuple[Any, int, str]] = [
    ("{", 400, "JSON"),
    ('"text"', 422, "body"),
    ('{"session_id": "s"}', 422, "event_type"),
    ('{"event_type": "x", "nonsense": 1}', 422, "nonsense"),
    ('{"event_type": "x", "payload": []}', 422, "object"),
    ('{"event_type": "x", "timestamp": "yesterday"}', 422, "ISO 8601"),
    ('{"event_type": "x", "timestamp": -1}', 422, "1970"),
    ('{"event_type": "x", "session_id": "%s"}' % ("s" * 10_240), 422, "over 512 bytes"),
    ('{"event_type": "x\\u0000"}', 422, "NUL"),
    ('[{"event_type": "x"}, {"event_type": ""}]', 422, "word without blanks"),
]


@pytest.mark.parametrize(("body", "status", "words"), BAD)
async def test_what_cannot_be_kept_is_refused_whole_and_says_why(
    app: Penstock,
    http: Http,  # noqa: F811
    body: str,
    status: int,
    words: str,
) -> None:
    sent = {"Content-Type": "application/json"}
    answer = await http.post("/api/events", content=body, headers=sent)
    assert answer.status_code == status, answer.text
    assert words in answer.json()["detail"]
    assert await app.events.latest() == 0


async def test_a_wrong_line_is_named_by_its_number(app: Penstock, http: Http) -> None:  # noqa: F811
    body = '{"event_type": "x"}\n{"event_type": 5}\n'
    answer = await http.post("/api/events", content=body, headers=NDJSON)
    assert (answer.status_code, "line 2" in answer.json()["detail"]) == (422, True)
    assert await app.events.latest() == 0


async def test_another_type_of_body_is_told_both(http: Http) -> None:  # noqa: F811
    answer = await http.post("/api/events", content="x", headers={"Content-Type": "text/plain"})
    assert answer.status_code == 415
    assert "application/json or application/x-ndjson" in answer.json()["detail"]


async def test_the_log_is_read_page_by_page_and_by_what_is_asked_for(http: Http) -> None:  # noqa: F811
    many = [
        EVENT
        | {"session_id": session, "event_type": kind, "timestamp": 1_000 * n, "event_id": f"e/{n}"}
        for n, (session, kind) in enumerate((("a", "x"), ("b", "x"), ("a", "y")))
    ]
    await http.post("/api/events", json=many)

    async def ids(**query: Any) -> list[str]:
        found = await http.get("/api/events", params=query)
        assert found.status_code == 200, found.text
        return [event["event_id"] for event in found.json()["events"]]

    assert await ids(session_id="a") == ["e/0", "e/2"]
    assert await ids(event_type="x", limit=1) == ["e/0"]
    assert await ids(since="1970-01-01T00:00:01Z", until="1970-01-01T00:00:02Z") == ["e/1"]
    page = (await http.get("/api/events", params={"limit": 2})).json()
    assert await ids(after=page["next"]) == ["e/2"]
    one = (await http.get("/api/events/e/1")).json()
    assert (one["timestamp"], one["session_id"]) == ("1970-01-01T00:00:01.000Z", "b")
    assert (await http.get("/api/events/none")).status_code == 404
    assert (await http.get("/api/events", params={"limit": 0})).status_code == 422


async def test_a_caller_bound_to_a_tenant_writes_and_reads_its_own(
    app: Penstock,
    http: Http,  # noqa: F811
    make_token: TokenMaker,  # noqa: F811
) -> None:
    north: Bearer = await make_token("read", "enqueue", "operate", tenant="north")
    await app.events.append("x", event_id="theirs", timestamp=1, tenant_id="south")
    await http.post("/api/events", json=EVENT | {"event_id": "ours", "timestamp": 1}, headers=north)
    assert (await app.events.get("ours")).tenant_id == "north"
    foreign = await http.post("/api/events", json=EVENT | {"tenant_id": "south"}, headers=north)
    assert foreign.status_code == 403
    listed = (await http.get("/api/events", headers=north)).json()["events"]
    assert [event["event_id"] for event in listed] == ["ours"]
    assert (await http.get("/api/events/theirs", headers=north)).status_code == 404
    for path in ("consumers", "pipeline"):
        assert (await http.get(f"/api/{path}", headers=north)).status_code == 403


async def test_letters_are_listed_replayed_and_dropped(app: Penstock, http: Http) -> None:  # noqa: F811
    counts = counting(app, Resetting())
    await app.events.append_many([*numbered(1, bad=1), *numbered(1, bad=1, session="other")])
    await catch_up(app)
    counts.broken = False
    found = (await http.get("/api/dead-events", params={"source": "count", "limit": 1})).json()
    [letter] = found["letters"]
    assert "is bad" in letter["reason"]
    done = await http.post(f"/api/dead-events/{letter['id']}/replay")
    assert done.json() == {"events": 1}
    [last] = (await http.get("/api/dead-events")).json()["letters"]
    dropped = await http.delete(f"/api/dead-events/{last['id']}")
    assert dropped.json()["id"] == last["id"]
    assert (await http.delete(f"/api/dead-events/{last['id']}")).status_code == 404


async def test_consumers_are_shown_paused_and_resumed(app: Penstock, http: Http) -> None:  # noqa: F811
    counting(app, Resetting())
    await feed.declare(app, app.consumer.get("count"))
    paused = await http.post("/api/consumers/count/pause")
    assert (paused.status_code, paused.json()["state"]) == (200, "paused")
    [shown] = (await http.get("/api/consumers")).json()["consumers"]
    assert shown["paused"]
    assert (await http.post("/api/consumers/count/resume")).json()["paused"] is False
    assert (await http.post("/api/consumers/nobody/pause")).status_code == 404
    whole = (await http.get("/api/pipeline")).json()
    assert (whole["pressure"]["level"], whole["latest"]) == ("green", 0)
    await check(app)
    whole = (await http.get("/api/pipeline")).json()
    assert whole["pressure"]["since_at"].endswith("Z")
    assert whole["pressure"]["history"][0]["at"] == whole["pressure"]["since_at"]


async def test_the_document_of_the_api_tells_of_all_three_forms(http: Http) -> None:  # noqa: F811
    document = (await http.get("/api/openapi.json")).json()
    content = document["paths"]["/api/events"]["post"]["requestBody"]["content"]
    single, several = content["application/json"]["schema"]["anyOf"]
    assert single == content["application/x-ndjson"]["schema"] == several["items"]
