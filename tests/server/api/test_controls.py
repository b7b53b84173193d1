from typing import get_args

from httpx import AsyncClient

from penstock import Penstock
from penstock.model.controls import PAUSABLE
from penstock.model.states import Status
from penstock.server.api.controls import Pausable
from proof.conformance.workers import BEAT

MAIL = {"scope": "queue", "name": "mail"}


async def test_queues_show_what_stands_in_them_and_what_bounds_them(
    app: Penstock, http: AsyncClient
) -> None:
    await app.enqueue(app.find_type("send_mail").new("ann"))
    await http.put("/api/limits", json={"scope": "queue", "name": "idle", "depth": 7})
    await http.post("/api/pauses", json=MAIL | {"reason": "deploy"})
    idle, mail = (await http.get("/api/queues")).json()["queues"]
    assert (idle["queue"], idle["queued"], idle["limits"][0]["capacity"]) == ("idle", 0, 7)
    assert (mail["queue"], mail["queued"], mail["pause"]["reason"]) == ("mail", 1, "deploy")


async def test_a_queue_is_paused_and_resumed(app: Penstock, http: AsyncClient) -> None:
    held = (await http.post("/api/pauses", json=MAIL | {"reason": "deploy"})).json()
    assert (held["scope"], held["name"], held["paused_by"]) == ("queue", "mail", "local")
    assert (await http.delete("/api/pauses", params=MAIL)).json() == {"resumed": True}
    assert (await http.delete("/api/pauses", params=MAIL)).json() == {"resumed": False}
    entries = (await http.get("/api/audit")).json()["entries"]
    assert [entry["action"] for entry in entries] == ["resume", "resume", "pause"]
    assert "deploy" not in str(entries)


async def test_types_and_tenants_are_paused_too(http: AsyncClient) -> None:
    for scope, name in (("type", "add"), ("tenant", "acme"), ("queue", "a/b")):
        held = await http.post("/api/pauses", json={"scope": scope, "name": name})
        assert held.status_code == 201, held.text
    found = (await http.get("/api/pauses")).json()["pauses"]
    assert [each["name"] for each in found] == ["add", "acme", "a/b"]
    for scope, name in (("tenant", "acme"), ("queue", "a/b")):
        query = {"scope": scope, "name": name}
        assert (await http.delete("/api/pauses", params=query)).json() == {"resumed": True}


async def test_limits_are_set_listed_and_dropped(http: AsyncClient) -> None:
    new = {"scope": "key", "name": "openai", "concurrency": 3, "rate": "60/min"}
    found = (await http.put("/api/limits", json=new)).json()["limits"]
    assert {each["kind"]: each["capacity"] for each in found} == {"concurrency": 3, "rate": 60}
    query = {"scope": "key", "name": "openai", "kind": "rate"}
    left = (await http.delete("/api/limits", params=query)).json()["limits"]
    assert [each["kind"] for each in left] == ["concurrency"]
    assert (await http.delete("/api/limits", params=query)).status_code == 404
    assert (await http.get("/api/limits")).json()["limits"] == left


async def test_a_limit_that_makes_no_sense_is_refused(http: AsyncClient) -> None:
    for new in (
        {"scope": "key", "name": "openai"},
        {"scope": "key", "name": "openai", "depth": 3},
        {"scope": "key", "name": "openai", "rate": "often"},
        {"scope": "moon", "name": "openai", "concurrency": 3},
    ):
        assert (await http.put("/api/limits", json=new)).status_code == 422


async def test_breakers_are_listed_and_reset(app: Penstock, http: AsyncClient) -> None:
    await app.declare()
    (found,) = (await http.get("/api/breakers")).json()["breakers"]
    assert (found["name"], found["position"], found["types"]) == ("smtp", "closed", ["send_mail"])
    assert (await http.post("/api/breakers/smtp/reset")).json() == {"name": "smtp"}
    assert (await http.post("/api/breakers/other/reset")).status_code == 404


async def test_workers_are_listed(app: Penstock, http: AsyncClient) -> None:
    app.store.workers.beat(BEAT)
    for _ in range(1000):
        found = (await http.get("/api/workers")).json()["workers"]
        if found:
            break
    assert (found[0]["alive"], found[0]["types"]) == (True, list(BEAT.types))


async def test_a_single_job_is_paused_by_its_own_route_alone(
    app: Penstock, http: AsyncClient
) -> None:
    handle = await app.enqueue(app.find_type("add").new(1, 2))
    assert get_args(Pausable) == PAUSABLE
    about = {"scope": "job", "name": handle.id}
    assert (await http.post("/api/pauses", json=about)).status_code == 422
    assert (await http.delete("/api/pauses", params=about)).status_code == 422
    assert (await handle.get()).status == "queued"


async def test_what_is_not_there_is_not_found_and_on_record_as_refused(http: AsyncClient) -> None:
    reset = await http.post("/api/breakers/oven/reset")
    dropped = await http.delete("/api/limits", params={"scope": "key", "name": "gas"})
    assert (reset.status_code, dropped.status_code) == (404, 404)
    assert "penstock breakers ls" in reset.json()["detail"]
    entries = (await http.get("/api/audit")).json()["entries"]
    assert [entry["action"] for entry in entries][::2] == [
        "limit.remove.refused",
        "breaker.reset.refused",
    ]


async def test_followers_are_listed_and_dropped(app: Penstock, http: AsyncClient) -> None:
    assert (await http.get("/api/followers")).json() == {"followers": []}
    await app.store.changes.follow("links.clicks", [Status.QUEUED])
    await app.enqueue(app.find_type("send_mail").new("ann"))
    [found] = (await http.get("/api/followers")).json()["followers"]
    assert (found["name"], found["statuses"], found["waiting"]) == ("links.clicks", ["queued"], 1)
    assert found["oldest_at"].endswith("Z")
    dropped = await http.delete("/api/followers/links.clicks")
    assert dropped.json() == {"name": "links.clicks"}
    assert (await http.delete("/api/followers/links.clicks")).status_code == 404
    entries = (await http.get("/api/audit")).json()["entries"]
    assert "follower.drop" in [entry["action"] for entry in entries]
