"""SQL, archive, rebuild and erasure over HTTP: who may ask, what is answered, what goes on."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from penstock import Penstock
from penstock.events import archive_api, background
from penstock.events.background import Background, StillRunning
from penstock.events.pool import catch_up
from penstock.server.app import create_server
from penstock.testing.clock import FakeClock
from proof.conformance.build import OWNER, completed, running
from tests.events.counting import Counting, Resetting, counting, numbered
from tests.server.api.operations import BODIES, operations
from tests.server.conftest import TokenMaker, http, make_token  # noqa: F401
from tests.support.events import DAY, NOON, an_event

pytestmark = pytest.mark.thorough("postgres")

Http = httpx.AsyncClient
ASKED = {
    "query_events": {"sql": "SELECT 1"},
    "erase_session": {"session_id": "nobody"},
    "append_events": {"event_type": "x"},
}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(NOON + 100 * DAY)


@pytest.fixture
async def server(app: Penstock) -> AsyncIterator[FastAPI]:
    app.extensions.enable(app.extensions.known()["events"])
    made = create_server(app, trusts_callers=True)
    async with made.router.lifespan_context(made):
        yield made


async def fill(app: Penstock) -> None:
    """An event in each of January, February and March, of two tenants."""
    for month in range(3):
        tenant = "acme" if month < 2 else "beta"
        at = NOON + month * 31 * DAY
        event = an_event(f"s{month}", event_id=f"e{month}", timestamp=at, tenant_id=tenant)
        await app.events.append(event)


async def ended(app: Penstock) -> None:
    """Wait for what goes on."""
    await asyncio.gather(*app.events.background._tasks, return_exceptions=True)


@pytest.mark.quick("postgres")
async def test_a_question_is_answered_over_live_and_archived_events(
    app: Penstock,
    http: Http,  # noqa: F811
) -> None:
    await fill(app)
    await app.events.archive(NOON + 40 * DAY)
    sql = "SELECT event_id, event_date FROM events ORDER BY 1"
    answer = await http.post("/api/event-query", json={"sql": sql, "limit": 2})
    assert answer.status_code == 200, answer.text
    assert answer.json() == {
        "columns": ["event_id", "event_date"],
        "rows": [["e0", "2026-01-01"], ["e1", "2026-02-01"]],
        "more": True,
    }
    narrowed = {"sql": sql, "tenant": "acme", "since": "2026-01-15T00:00:00Z"}
    answer = await http.post("/api/event-query", json=narrowed)
    assert answer.json()["rows"] == [["e1", "2026-02-01"]]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"sql": "DROP TABLE found"}, "one SELECT"),
        ({"sql": "SELECT nothing FROM events"}, "nothing"),
        ({"sql": ""}, "sql"),
        ({"sql": "SELECT 1", "limit": 10_001}, "limit"),
        ({"sql": "SELECT 1", "nonsense": 1}, "nonsense"),
    ],
)
async def test_what_is_no_question_is_refused_and_says_why(
    http: Http,  # noqa: F811
    body: dict[str, Any],
    words: str,
) -> None:
    answer = await http.post("/api/event-query", json=body)
    assert (answer.status_code, words in answer.text) == (422, True), answer.text


async def test_a_question_that_takes_too_long_is_given_up(
    http: Http,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(archive_api, "QUERY_SECONDS", 0.3)
    sql = "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range * b.range = 7"
    answer = await http.post("/api/event-query", json={"sql": sql})
    assert (answer.status_code, "more than 0.3 seconds" in answer.text) == (422, True), answer.text


async def test_months_are_archived_in_the_background_and_their_files_listed(
    app: Penstock,
    http: Http,  # noqa: F811
) -> None:
    await fill(app)
    begun = await http.post("/api/event-archive", json={"before": "2026-03-02T00:00:00Z"})
    assert begun.status_code == 200, begun.text
    assert (begun.json()["name"], begun.json()["state"]) == ("archive:events", "running")
    await ended(app)
    found = (await http.get("/api/event-archive")).json()
    assert [(file["subject"], file["rows"]) for file in found["files"]] == [("events", 1)] * 2
    assert found["files"][0]["first_at"] == "2026-01-01T12:00:00.000Z"
    [work] = found["work"]
    assert (work["state"], work["done"], work["error"]) == ("done", 2, None)
    audit = (await http.get("/api/audit", params={"action": "events"})).json()["entries"]
    assert "events.archive" in {entry["action"] for entry in audit}


async def test_ended_jobs_are_archived_the_same_way(
    app: Penstock,
    http: Http,  # noqa: F811
    clock: FakeClock,
) -> None:
    lease = await running(app.store)
    await app.store.jobs.settle(OWNER, [completed(lease)])
    clock.advance(seconds=40 * DAY / 1000)
    told = {"before": "2026-05-15T00:00:00Z", "jobs": True}
    assert (await http.post("/api/event-archive", json=told)).json()["name"] == "archive:jobs"
    await ended(app)
    [file] = (await http.get("/api/event-archive")).json()["files"]
    assert (file["subject"], file["state"], file["rows"]) == ("jobs", "whole", 1)
    asked = {"sql": "SELECT status, count(*) FROM jobs GROUP BY 1"}
    answer = await http.post("/api/event-query", json=asked)
    assert answer.json()["rows"] == [["completed", 1]]


@pytest.mark.parametrize("body", [None, {}, {"jobs": True}])
async def test_without_a_time_or_a_setting_nothing_is_archived(
    http: Http,  # noqa: F811
    body: Any,
) -> None:
    answer = await http.post("/api/event-archive", json=body)
    assert (answer.status_code, "above 0" in answer.text) == (422, True), answer.text
    assert (await http.get("/api/event-archive")).json() == {"files": [], "work": []}


@pytest.fixture
async def counts(app: Penstock) -> Counting:
    """A consumer that has come past events of three sessions, and forgot what it derived."""
    made = counting(app, Resetting())
    counting(app, Counting(), "other")
    for session in ("s", "t", "u"):
        await app.events.append_many(numbered(1, 2, session=session))
    await catch_up(app)
    made.seen.clear()
    return made


async def test_one_session_is_rebuilt_at_once(
    app: Penstock,
    counts: Counting,
    http: Http,  # noqa: F811
) -> None:
    told = {"session": {"session_id": "t"}}
    done = await http.post("/api/consumers/count/rebuild", json=told)
    assert (done.status_code, done.json()["state"], done.json()["done"]) == (200, "done", 1)
    assert counts.seen == {"t": [1, 2]}
    assert (await http.get("/api/consumers/count/rebuild")).status_code == 404


async def test_all_sessions_are_rebuilt_in_the_background(
    app: Penstock,
    counts: Counting,
    http: Http,  # noqa: F811
) -> None:
    begun = await http.post("/api/consumers/count/rebuild")
    assert (begun.status_code, begun.json()["state"]) == (200, "running"), begun.text
    await ended(app)
    assert counts.seen == {"s": [1, 2], "t": [1, 2], "u": [1, 2]}
    work = (await http.get("/api/consumers/count/rebuild")).json()
    assert (work["state"], work["done"], work["total"]) == ("done", 3, 3)
    assert (await http.post("/api/consumers/nobody/rebuild")).status_code == 404
    cannot = await http.post("/api/consumers/other/rebuild")
    assert (cannot.status_code, "cannot be rebuilt" in cannot.text) == (422, True)


async def test_a_rebuild_that_fails_says_so(
    app: Penstock,
    counts: Counting,
    http: Http,  # noqa: F811
) -> None:
    counts.seen = None  # type: ignore[assignment] # so that nothing can be thrown away
    await http.post("/api/consumers/count/rebuild")
    await ended(app)
    work = (await http.get("/api/consumers/count/rebuild")).json()
    assert work["state"] == "failed"
    assert "failed at 3 sessions" in work["error"]


async def test_what_goes_on_is_not_begun_twice_and_what_was_stopped_begins_again(
    app: Penstock, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached, go_on = asyncio.Event(), asyncio.Event()

    async def slow(tell: background.Tell) -> int:
        tell(3, 7)
        reached.set()
        await go_on.wait()
        return 7

    monkeypatch.setattr(background, "TOLD_SECONDS", 0.001)
    here, there = Background(app), Background(app)
    await here.start("x", slow)
    with pytest.raises(StillRunning):
        await there.start("x", slow)
    await reached.wait()
    async with asyncio.timeout(20):
        while (work := await there.get("x")).done == 0:  # noqa: ASYNC110 - it is in the store
            await asyncio.sleep(0)
    assert (work.state, work.done, work.total) == ("running", 3, 7)
    await here.close()
    assert (await there.get("x")).state == "stopped"
    go_on.set()
    await there.start("x", slow)
    await asyncio.gather(*there._tasks)
    assert (await there.get("x")).state == "done"


async def test_work_of_a_process_that_was_killed_is_stopped(
    app: Penstock, clock: FakeClock
) -> None:
    async def endless(_: background.Tell) -> int:
        await asyncio.Event().wait()
        return 0

    killed, other = Background(app), Background(app)
    await killed.start("x", endless)
    assert (await other.get("x")).state == "running"
    clock.advance(seconds=31)
    assert (await other.get("x")).state == "stopped"
    await killed.close()


async def test_a_session_is_erased(
    app: Penstock,
    counts: Counting,
    http: Http,  # noqa: F811
) -> None:
    app.consumer._declared.pop("other")
    refused = await http.post("/api/event-erasures", json={"session_id": "t"})
    assert (refused.status_code, "'other'" in refused.text) == (422, True), refused.text
    counting(app, Counting(), "other")
    erased = await http.post("/api/event-erasures", json={"session_id": "t"})
    assert erased.json()["erased"] == {"events": 2, "sessions": 1}
    again = await http.post("/api/event-erasures", json={"session_id": "t"})
    assert again.json() == {"erased": {}, "remarks": []}


async def test_every_route_asks_for_its_scope_and_most_for_the_whole_installation(
    server: FastAPI,
    http: Http,  # noqa: F811
    make_token: TokenMaker,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, body in ASKED.items():
        monkeypatch.setitem(BODIES, name, body)
    every = ("read", "enqueue", "operate", "admin")
    north = await make_token(*every, tenant="north")
    ours = [each for each in operations(server) if "event" in each.path or "consumer" in each.path]
    assert {"query_events", "archive_events", "erase_session", "rebuild_consumer"} <= {
        each.id for each in ours
    }
    for each in ours:
        [scope] = each.scopes
        if scope != "read":
            lacking = await make_token(*every[: every.index(scope)])
            request = each.request(http)
            request.headers.update(lacking)
            assert (await http.send(request)).status_code == 403, each.id
        request = each.request(http)
        request.headers.update(north)
        assert ((await http.send(request)).status_code == 403) == each.whole, each.id
