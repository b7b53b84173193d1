"""Routes that an extension declares, as callers find them."""

from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from penstock import Penstock
from penstock.config import Settings
from penstock.extension import Extension, Route
from penstock.model.errors import InvalidOption
from penstock.server.app import create_server
from tests.server.conftest import TokenMaker
from tests.support import garden
from tests.support.places import Place

PROTOBUF = {"Content-Type": "application/x-protobuf"}
LINES = {"Content-Type": "application/x-ndjson"}


@pytest.fixture
def app(place: Place) -> Penstock:
    garden.watered.clear()
    settings = Settings(**place.settings, requests_per_minute=0)
    return Penstock(settings=settings, extensions=[garden.garden, garden.needy])


@pytest.fixture(scope="session")
def document() -> dict[str, Any]:
    app = Penstock("sqlite:///:memory:", extensions=[garden.garden, garden.needy])
    return create_server(app).openapi()


async def test_a_route_answers_below_api_with_records(http: httpx.AsyncClient) -> None:
    answer = await http.get("/api/garden/beds")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.json() == [{"name": "rose", "plants": 2}, {"name": "moor", "plants": 0}]


async def test_parameters_are_read_as_its_record_says(http: httpx.AsyncClient) -> None:
    assert len((await http.get("/api/garden/beds?plants=2")).json()) == 1
    wrong = await http.get("/api/garden/beds?plants=many")
    assert (wrong.status_code, wrong.json()["field"]) == (422, "query.plants")
    unknown = await http.get("/api/garden/beds?colour=red")
    assert unknown.status_code == 422
    assert "known are named, plants" in unknown.json()["detail"]


async def test_a_body_is_decoded_and_the_caller_is_named(http: httpx.AsyncClient) -> None:
    answer = await http.put("/api/garden/beds/rose", json={"name": "rose", "plants": 3})
    assert (answer.status_code, answer.json()) == (201, {"name": "rose", "plants": 3})
    assert garden.watered == ["local None rose"]


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        (b'{"name": 1}', 422, "body.name"),
        (b"{", 400, None),
        (b"[" * 200 + b"]" * 200, 413, None),
        (b"[" * 99 + b"]" * 99, 422, "body"),
        (b'{"name": "a", "plants": 101}', 422, "plants"),
    ],
)
async def test_what_is_wrong_with_a_body_is_a_problem_document(
    http: httpx.AsyncClient, body: bytes, status: int, field: str | None
) -> None:
    sent = {"Content-Type": "application/json"}
    answer = await http.put("/api/garden/beds/rose", content=body, headers=sent)
    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.status_code, answer.json().get("field")) == (status, field)


async def test_who_asks_is_settled_before_anything_is_read(
    http: httpx.AsyncClient, make_token: TokenMaker
) -> None:
    reads = await make_token("read")
    large = {"name": "x" * 500}
    nobody = await http.put("/api/garden/beds/rose", json=large)
    assert nobody.status_code == 401
    refused = await http.put("/api/garden/beds/rose", json=large, headers=reads)
    assert refused.status_code == 403
    assert "'operate'" in refused.json()["detail"]
    operates = await make_token("operate")
    too_large = await http.put("/api/garden/beds/rose", json=large, headers=operates)
    assert (too_large.status_code, garden.watered) == (413, [])


async def test_a_tenant_is_named_and_kept_from_what_is_about_the_whole(
    http: httpx.AsyncClient, make_token: TokenMaker
) -> None:
    bound = await make_token("operate", "enqueue", tenant="north")
    await http.put("/api/garden/beds/rose", json={"name": "rose"}, headers=bound)
    assert garden.watered[0].endswith(" north rose")
    whole = await http.post("/api/garden/weigh", content=b"ab", headers=bound | PROTOBUF)
    assert whole.status_code == 403


async def test_lines_are_decoded_one_by_one(http: httpx.AsyncClient) -> None:
    body = b'{"name": "a", "plants": 2}\n\n{"name": "b"}\r\n'
    answer = await http.post("/api/garden/sow", content=body, headers=LINES)
    assert answer.json() == {"beds": 2, "plants": 3}
    wrong = await http.post("/api/garden/sow", content=body + b'{"plants": 1}', headers=LINES)
    assert wrong.status_code == 422
    assert "line 4" in wrong.json()["detail"]


async def test_many_lines_are_decoded_off_the_loop(
    http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    import asyncio

    threads: list[Any] = []
    in_thread = asyncio.to_thread

    async def noted(work: Any, *rest: Any) -> Any:
        threads.append(work)
        return await in_thread(work, *rest)

    monkeypatch.setattr("penstock.server.bodies.asyncio.to_thread", noted)
    body = b'{"name": "a"}\n' * 10_000
    answer = await http.post("/api/garden/sow", content=body, headers=LINES)
    assert (answer.json()["beds"], len(threads)) == (10_000, 1)


async def test_bytes_come_and_go_as_they_are(http: httpx.AsyncClient) -> None:
    answer = await http.post("/api/garden/weigh", content=b"\x00ab", headers=PROTOBUF)
    assert answer.content == b"ba\x00"
    assert answer.headers["content-type"] == "application/x-protobuf"


async def test_a_body_of_another_type_is_refused(http: httpx.AsyncClient) -> None:
    for path, media in (("weigh", PROTOBUF), ("sow", LINES)):
        wrong = await http.post(f"/api/garden/{path}", json={})
        assert wrong.status_code == 415
        assert media["Content-Type"] in wrong.json()["detail"]
    ours = await http.post("/api/jobs", content=b"{}", headers=PROTOBUF)
    assert ours.status_code == 415


async def test_pieces_are_sent_as_they_come(http: httpx.AsyncClient) -> None:
    answer = await http.get("/api/garden/export")
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert answer.text.count("\n") == 2


async def test_what_breaks_is_told_to_the_log_alone(http: httpx.AsyncClient) -> None:
    answer = await http.post("/api/garden/wither")
    assert answer.status_code == 500
    assert "no water" not in answer.text


async def test_a_missing_extra_is_named(http: httpx.AsyncClient) -> None:
    answer = await http.get("/api/needy")
    assert answer.status_code == 501
    assert "penstock[server]" in answer.json()["detail"]


async def test_other_methods_are_named(http: httpx.AsyncClient) -> None:
    answer = await http.delete("/api/garden/beds")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD, OPTIONS")


def test_the_document_tells_of_it(document: dict[str, Any]) -> None:
    listing = document["paths"]["/api/garden/beds"]["get"]
    assert listing["operationId"] == "garden_list_beds"
    assert listing["tags"] == ["garden"]
    assert listing["summary"] == "The beds there are"
    assert listing["x-scopes"] == ["read"]
    assert {p["name"] for p in listing["parameters"]} == {"plants", "named"}
    rows = listing["responses"]["200"]["content"]["application/json"]["schema"]
    assert rows["items"] == {"$ref": "#/components/schemas/Bed"}
    put = document["paths"]["/api/garden/beds/{name}"]["put"]
    assert put["parameters"][0]["in"] == "path"
    taken = put["requestBody"]["content"]["application/json"]["schema"]
    assert taken == {"$ref": "#/components/schemas/Bed"}
    assert document["components"]["schemas"]["Bed"]["properties"]["plants"]["default"] == 1
    sow = document["paths"]["/api/garden/sow"]["post"]
    assert list(sow["requestBody"]["content"]) == ["application/x-ndjson"]
    assert {"name": "garden", "description": "Beds and what grows in them."} in document["tags"]


def test_a_record_whose_name_is_taken_gets_another(server_of: Any) -> None:
    from msgspec import defstruct

    health = defstruct("Health", [("leaves", int)])
    route = Route(method="GET", path="plants", run=garden.list_beds, gives=health)
    told = server_of(Extension(name="plants", routes=(route,))).openapi()
    answer = told["paths"]["/api/plants"]["get"]["responses"]["200"]
    assert answer["content"]["application/json"]["schema"]["$ref"].endswith("/PlantsHealth")
    assert "leaves" in told["components"]["schemas"]["PlantsHealth"]["properties"]
    assert "checks" in told["components"]["schemas"]["Health"]["properties"]


def test_an_address_that_is_taken_is_refused(server_of: Any) -> None:
    route = Route(method="GET", path="jobs", run=garden.list_beds)
    with pytest.raises(InvalidOption, match="that nothing else has"):
        server_of(Extension(name="rival", routes=(route,)))


@pytest.fixture
def server_of() -> Any:
    def made(extension: Extension) -> FastAPI:
        return create_server(Penstock("sqlite:///:memory:", extensions=[extension]))

    return made
