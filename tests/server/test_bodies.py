"""Who asks is settled before a body is read, and a large body keeps nobody else waiting."""

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient

from penstock import Penstock
from penstock.config import Settings
from penstock.server import bodies
from penstock.server.api.openapi import all_routes
from penstock.server.app import create_server
from tests.server.api.operations import operations
from tests.server.conftest import TokenMaker
from tests.support.places import Place

JSON = {"Content-Type": "application/json"}
FORM = "application/x-www-form-urlencoded"
MIB = 1 << 20
LOGIN = {"/login"}
"""Where the body says who asks."""


class BodyRead(Exception):
    """Somebody read on before it was known who asks."""


async def status_of(
    server: FastAPI, method: str, path: str, kind: str, *headers: tuple[bytes, bytes]
) -> tuple[int, dict[bytes, bytes]]:
    """The status and headers of an answer to a request whose body blows up when it is read."""
    answers: list[Any] = []

    async def receive() -> Any:
        raise BodyRead(path)

    async def send(message: Any) -> None:
        answers.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [
            (b"host", b"localhost"),
            (b"content-type", kind.encode()),
            (b"transfer-encoding", b"chunked"),
            *headers,
        ],
        "client": ("127.0.0.1", 1),
        "server": ("localhost", 80),
    }
    await server(scope, receive, send)
    return answers[0]["status"], dict(answers[0]["headers"])


async def test_no_operation_reads_a_body_before_it_knows_who_sends_it(
    server: FastAPI, make_token: TokenMaker
) -> None:
    await make_token("admin")
    guarded = [each for each in operations(server) if each.scopes]
    assert len([each for each in guarded if each.takes_body]) >= 10
    for operation in guarded:
        path = operation.path.replace("{", "").replace("}", "")
        status, _ = await status_of(server, operation.method.upper(), path, JSON["Content-Type"])
        assert status == 401, operation.id


async def test_no_page_reads_a_form_before_it_knows_who_sends_it(
    server: FastAPI, make_token: TokenMaker
) -> None:
    await make_token("admin")
    routes = [each for each in all_routes(server.routes) if not each.include_in_schema]
    forms = [each for each in routes if "POST" in each.methods and each.path not in LOGIN]
    assert len(forms) >= 20
    for route in forms:
        path = route.path.replace("{", "").replace("}", "")
        status, headers = await status_of(server, "POST", path, FORM)
        assert (status, b"/login" in headers[b"location"]) == (303, True), route.path


async def test_a_caller_without_the_scope_is_refused_before_the_body_is_read(
    server: FastAPI, make_token: TokenMaker
) -> None:
    token = (await make_token("read"))["Authorization"].encode()
    sent = (b"authorization", token)
    status, _ = await status_of(server, "POST", "/api/jobs/bulk", JSON["Content-Type"], sent)
    assert status == 403


@pytest.fixture
async def large(place: Place) -> AsyncIterator[AsyncClient]:
    """A client of a server with a type that takes anything."""
    app = Penstock(settings=Settings(**place.settings, payload_limit=20 * MIB, payload_depth=64))

    @app.job
    async def take(value: Any = None) -> None: ...

    server = create_server(app, trusts_callers=True)
    async with server.router.lifespan_context(server):
        transport = ASGITransport(server, raise_app_exceptions=False)
        async with AsyncClient(transport=transport, base_url="http://localhost") as http:
            yield http


async def test_only_what_enqueues_takes_more_than_a_mebibyte(http: AsyncClient) -> None:
    body = b'{"action": "cancel", "filter": {"type": "' + b"x" * MIB + b'"}}'
    for path in ("/api/jobs/bulk", "/api/tokens", "/api/pauses"):
        told = await http.post(path, content=body, headers=JSON)
        assert (told.status_code, told.headers["content-type"]) == (413, "application/problem+json")
        assert "1,048,576 bytes" in told.json()["detail"]
    jobs = [{"type": "add", "payload": {"a": 1}, "metadata": {"m": "x" * 60_000}}] * 20
    assert (await http.post("/api/jobs", json=jobs)).status_code == 201


async def test_a_payload_as_large_as_allowed_can_be_scheduled(large: AsyncClient) -> None:
    new = {"type": "take", "payload": {"value": "x" * 2 * MIB}, "cron": "0 3 * * *"}
    assert (await large.put("/api/schedules/large", json=new)).status_code == 200


@pytest.mark.parametrize("path", ["/api/jobs", "/api/jobs/bulk"])
async def test_others_are_answered_while_a_large_body_is_decoded(
    large: AsyncClient, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, began, goes_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
    read = bodies.shape_of

    def slow(body: bytes) -> Any:
        loop.call_soon_threadsafe(began.set)
        assert goes_on.wait(10), "the event loop was kept waiting"
        return read(body)

    monkeypatch.setattr(bodies, "shape_of", slow)
    body = b'[{"type": "take", "payload": {"value": "%s"}}]' % (b"x" * 200_000)
    sending = asyncio.create_task(large.post(path, content=body, headers=JSON))
    async with asyncio.timeout(5):
        await began.wait()
        assert (await large.get("/healthz")).status_code == 200
    assert not sending.done()
    goes_on.set()
    assert (await sending).status_code in (201, 422)


async def test_no_more_than_a_few_large_bodies_are_decoded_at_once(
    large: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on, lock = threading.Event(), threading.Lock()
    loop, busy = asyncio.get_running_loop(), asyncio.Event()
    running = most = 0
    read = bodies.shape_of

    def counted(body: bytes) -> Any:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
            if running == bodies.AT_ONCE:
                loop.call_soon_threadsafe(busy.set)
        assert goes_on.wait(10)
        with lock:
            running -= 1
        return read(body)

    monkeypatch.setattr(bodies, "shape_of", counted)
    body = b'[{"type": "take", "payload": {"value": "%s"}}]' % (b"x" * 200_000)
    sending = [
        asyncio.create_task(large.post("/api/jobs", content=body, headers=JSON)) for _ in range(6)
    ]
    async with asyncio.timeout(5):
        await busy.wait()
    goes_on.set()
    assert {(await each).status_code for each in sending} == {201}
    assert most == bodies.AT_ONCE


async def test_a_list_of_more_calls_than_allowed_is_refused_before_they_are_made(
    large: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    from penstock.server.api import calls

    def never(*_: object) -> None:
        raise AssertionError("the calls were made")

    monkeypatch.setattr(calls, "_MANY", type("Decoder", (), {"decode": never}))
    body = b"[" + b",".join([b'{"type":"take"}'] * 10_001) + b"]"
    answer = await large.post("/api/jobs", content=body, headers=JSON)
    assert answer.status_code == 422
    assert "10,000" in answer.json()["detail"]


@pytest.mark.parametrize("field", ["payload", "metadata"])
async def test_what_is_too_large_is_refused_for_its_size_before_its_depth_is_measured(
    http: AsyncClient, field: str
) -> None:
    deep = b'{"a":' * 100 + b"[%s1]" % (b"1," * MIB) + b"}" * 100
    body = b'{"type": "add", "%s": %s}' % (field.encode(), deep)
    answer = await http.post("/api/jobs", content=body, headers=JSON)
    assert answer.status_code in (413, 422)
    assert "bytes" in answer.json()["detail"]
    assert "levels" not in answer.json()["detail"]
