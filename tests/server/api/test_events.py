import asyncio
import json
from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from penstock import Context, Penstock, Worker
from penstock.server import streams
from penstock.server.api import events
from penstock.server.app import create_server
from tests.support.http_server import serving

Event = tuple[str, dict[str, object]]


async def told(answer: httpx.Response) -> AsyncIterator[Event]:
    name = ""
    async for line in answer.aiter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


async def test_a_job_that_has_ended_is_told_once_and_the_stream_ends(
    app: Penstock, http: AsyncClient
) -> None:
    handle = await app.enqueue(app.find_type("add").new(1))
    await handle.cancel("withdrawn")
    answer = await http.get(f"/api/jobs/{handle.id}/events")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert [(name, data["status"], data["error"]) async for name, data in told(answer)] == [
        ("state", "cancelled", "withdrawn")
    ]


@pytest.mark.every_store
async def test_state_and_progress_are_told_until_the_job_ends(
    app: Penstock, http: AsyncClient
) -> None:
    @app.job
    async def count(ctx: Context) -> None:
        for percent in (25, 75):
            ctx.progress({"phase": f"at {percent}", "percent": percent, "of": 100})
            await asyncio.wait_for(seen[percent].wait(), 10)

    seen = {25: asyncio.Event(), 75: asyncio.Event()}
    handle = await app.enqueue(count.new())
    running = asyncio.create_task(Worker(app, burst=True).run())
    found: list[Event] = []
    async for event in _following(app, handle.id):
        found.append(event)
        for percent, bell in seen.items():
            if event[1]["progress_percent"] == percent:
                bell.set()
    await running
    states = [data["status"] for name, data in found if name == "state"]
    assert (states[-1], states == sorted(set(states), key=states.index)) == ("completed", True)
    progress = [data["progress_message"] for name, data in found if name == "progress"]
    assert progress == ["at 25", "at 75"]
    objects = [data["progress"] for name, data in found if name == "progress"]
    assert objects[0] == {"phase": "at 25", "percent": 25, "of": 100}


async def _following(app: Penstock, job_id: str) -> AsyncIterator[Event]:
    """The stream itself: a client without a network waits for the whole of an answer."""
    async for text in events.events_of(app.store, job_id):
        lines = text.decode().split("\n")
        if lines[0].startswith("event"):
            yield lines[0].removeprefix("event: "), json.loads(lines[1].removeprefix("data: "))


async def test_a_caller_has_a_bounded_number_of_streams(
    app: Penstock, server: FastAPI, http: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = await app.enqueue(app.find_type("add").new(1))
    await handle.cancel()
    monkeypatch.setattr(streams, "MAX_PER_CALLER", 0)
    refused = await http.get(f"/api/jobs/{handle.id}/events")
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "5")
    monkeypatch.setattr(streams, "MAX_PER_CALLER", 1)
    for _ in range(2):
        assert (await http.get(f"/api/jobs/{handle.id}/events")).status_code == 200
    assert server.state.server.streams.total == 0


async def test_a_head_of_a_stream_does_not_open_one_for_long(
    app: Penstock, server: FastAPI, http: AsyncClient
) -> None:
    handle = await app.enqueue(app.find_type("add").new(1))
    await handle.cancel()
    answer = await http.head(f"/api/jobs/{handle.id}/events")
    assert (answer.status_code, answer.content) == (200, b"")
    assert server.state.server.streams.total == 0


def test_a_stream_whose_client_has_gone_ends(app: Penstock) -> None:
    server = create_server(app, trusts_callers=True)
    with serving(server) as address, httpx.Client(base_url=address, timeout=20) as http:
        job_id = http.post("/api/jobs", json={"type": "add", "payload": {"a": 1}}).json()["id"]
        with http.stream("GET", f"/api/jobs/{job_id}/events") as answer:
            lines = answer.iter_lines()
            assert next(lines) == "event: state"
            assert server.state.server.streams.total == 1
        head = http.head(f"/api/jobs/{job_id}/events")
        assert (head.status_code, head.content) == (200, b"")
        for _ in range(2000):
            if server.state.server.streams.total == 0:
                return
            http.get("/api/openapi.json")
        pytest.fail("a stream is still counted")
