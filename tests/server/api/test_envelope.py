import json

import pytest
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient

from penstock import Penstock
from penstock.config import Settings
from penstock.server.app import create_server
from tests.support.places import Place

JSON = {"Content-Type": "application/json"}
ADD = {"type": "add", "payload": {"a": 1}}


async def test_a_body_above_the_limit_is_refused_before_it_is_read(place: Place) -> None:
    app = Penstock(settings=Settings(**place.settings, request_limit=1000))
    server = create_server(app, trusts_callers=True)
    read = 0

    async def endless():
        nonlocal read
        for _ in range(100):
            read += 1
            yield b" " * 400

    async with server.router.lifespan_context(server):
        transport = ASGITransport(server)
        async with AsyncClient(transport=transport, base_url="http://localhost") as http:
            told = await http.post("/api/jobs", content=b" " * 1001, headers=JSON)
            assert told.status_code == 413
            untold = await http.post("/api/jobs", content=endless(), headers=JSON)
            assert untold.status_code == 413
            assert read <= 4
            bulk = await http.post("/api/jobs/bulk", content=endless(), headers=JSON)
            assert bulk.status_code == 413


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin-1"]
)
async def test_a_body_of_another_kind_is_refused(http: AsyncClient, kind: str) -> None:
    answer = await http.post("/api/jobs", content=b"{}", headers={"Content-Type": kind})
    assert answer.status_code == 415
    assert answer.headers["content-type"] == "application/problem+json"


async def test_a_body_without_a_kind_is_refused(http: AsyncClient) -> None:
    assert (await http.post("/api/jobs", content=b"{}")).status_code == 415


async def test_what_is_no_json_is_refused(http: AsyncClient) -> None:
    deep = b'{"type":"add","payload":' + b'{"a":' * 5000 + b"1" + b"}" * 5001
    lone = b'{"type":"add","payload":{"a":"\\ud800"}}'
    for body in (b"", b"{", b"\xff\xfe", b'{"a": NaN}', lone, b"[" * 100_000):
        for path in ("/api/jobs", "/api/jobs/bulk", "/api/tokens"):
            answer = await http.post(path, content=body, headers=JSON)
            assert answer.status_code in (400, 422), (path, body[:20])
    assert (await http.post("/api/jobs", content=deep, headers=JSON)).status_code in (400, 422)


async def test_a_payload_or_metadata_that_nests_too_deep_is_refused(http: AsyncClient) -> None:
    nested = json.loads('{"a":' * 65 + "1" + "}" * 65)
    for job in ({"type": "add", "payload": nested}, {**ADD, "metadata": nested}):
        answer = await http.post("/api/jobs", json=job)
        assert answer.status_code == 422
        assert "levels" in answer.json()["detail"]


async def test_unknown_parameters_are_refused_everywhere(server: FastAPI, http) -> None:
    from tests.server.api.operations import operations

    for operation in operations(server):
        if not operation.scopes:
            continue
        request = operation.request(http)
        request.url = request.url.copy_merge_params({"colour": "red"})
        answer = await http.send(request)
        assert (answer.status_code, answer.json()["field"]) == (422, "colour"), operation.id


@pytest.mark.parametrize("path", ["/api/jobs", "/healthz", "/readyz", "/metrics", "/", "/jobs"])
async def test_head_is_get_without_a_body(http: AsyncClient, path: str) -> None:
    asked, answer = await http.get(path), await http.head(path)
    assert (answer.status_code, answer.content) == (asked.status_code, b"") == (200, b"")
    assert answer.headers["content-type"] == asked.headers["content-type"]


async def test_options_and_a_wrong_method_name_the_right_ones(http: AsyncClient) -> None:
    options = await http.options("/api/jobs")
    assert (options.status_code, options.headers["allow"]) == (204, "GET, HEAD, POST, OPTIONS")
    wrong = await http.patch("/api/jobs")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "GET, HEAD, POST, OPTIONS")
    assert (await http.options("/api/nothing")).status_code == 404


async def test_an_unknown_address_is_a_problem_document(http: AsyncClient) -> None:
    answer = await http.get("/api/nothing")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == 404


async def test_a_nul_in_an_address_is_refused(http: AsyncClient) -> None:
    assert (await http.get("/api/jobs?type=a%00b")).status_code == 400
    assert (await http.get("/api/schedules/a%00b")).status_code == 400


async def test_a_mistake_of_the_server_tells_nothing_of_itself(
    http: AsyncClient, server: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr(server.state.server.app.store.reader, "search", broken)
    answer = await http.get("/api/jobs")
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert answer.headers["content-type"] == "application/problem+json"


async def test_the_api_works_below_another_application(app: Penstock) -> None:
    outer = FastAPI()
    inner = create_server(app, trusts_callers=True)
    outer.mount("/inner", inner)
    async with inner.router.lifespan_context(inner):
        transport = ASGITransport(outer)
        async with AsyncClient(transport=transport, base_url="http://localhost") as http:
            assert (await http.post("/inner/api/jobs", json=ADD)).status_code == 201
            assert (await http.post("/inner/api/jobs", content=b"{}")).status_code == 415
            assert (await http.options("/inner/api/jobs")).status_code == 204
