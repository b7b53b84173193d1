import pytest
from httpx import AsyncClient
from msgspec.structs import replace

from penstock import Penstock
from tests.server.conftest import TokenMaker

NIGHTLY = {"type": "add", "payload": {"a": 1}, "cron": "0 3 * * *", "zone": "Europe/Berlin"}


async def test_a_schedule_is_put_shown_and_removed(http: AsyncClient) -> None:
    put = await http.put("/api/schedules/nightly", json=NIGHTLY)
    assert put.status_code == 200
    assert put.json()["by_operator"] is True
    shown = (await http.get("/api/schedules/nightly?runs=3")).json()
    assert len(shown["next_runs"]) == 3
    assert all("T03:00:00+0" in run for run in shown["next_runs"])
    assert shown["next_run"] == shown["next_runs"][0]
    listed = (await http.get("/api/schedules")).json()["schedules"]
    assert [each["name"] for each in listed] == ["nightly"]
    assert (await http.delete("/api/schedules/nightly")).status_code == 204
    assert (await http.get("/api/schedules/nightly")).status_code == 404
    assert (await http.delete("/api/schedules/nightly")).status_code == 404


async def test_a_schedule_is_replaced_and_keeps_its_place(http: AsyncClient) -> None:
    first = (await http.put("/api/schedules/nightly", json=NIGHTLY)).json()
    options = {"queue": "mail", "priority": 2, "tags": ["x"]}
    changed = await http.put(
        "/api/schedules/nightly", json={**NIGHTLY, "cron": "0 4 * * *", "options": options}
    )
    assert changed.json()["id"] == first["id"]
    assert changed.json()["options"] | options == changed.json()["options"]


@pytest.mark.every_store
async def test_a_schedule_is_paused_resumed_and_run(app: Penstock, http: AsyncClient) -> None:
    await http.put("/api/schedules/reports/nightly", json=NIGHTLY)
    path = "/api/schedules/reports/nightly"
    paused = (await http.post(f"{path}/pause")).json()
    assert (paused["paused"], paused["next_runs"]) == (True, [])
    assert (await http.post(f"{path}/resume")).json()["paused"] is False
    run = await http.post(f"{path}/run")
    assert run.status_code == 201
    assert (await app.get(run.json()["id"])).schedule_id == paused["id"]
    found = await http.get("/api/jobs", params={"schedule": paused["id"]})
    assert [job["id"] for job in found.json()["jobs"]] == [run.json()["id"]]
    entries = (await http.get("/api/audit?action=schedule")).json()["entries"]
    actions = [entry["action"].removeprefix("schedule.") for entry in entries[::-1]]
    assert actions == ["put", "pause", "resume", "run"]


async def test_a_schedule_that_makes_no_sense_is_refused_with_its_field(http: AsyncClient) -> None:
    for change, field in (
        ({"cron": "0 3 * *"}, "cron"),
        ({"every": 60}, "time"),
        ({"zone": "Mars/Olympus"}, "zone"),
        ({"payload": {"a": "one"}}, "a"),
        ({"type": "nothing"}, None),
        ({"cron": None, "at": "2001-01-01T00:00:00Z"}, "at"),
        ({"options": {"priority": 11}}, "body.options.priority"),
        ({"options": {"timeout": 1e6}}, "timeout"),
    ):
        answer = await http.put("/api/schedules/nightly", json=NIGHTLY | change)
        assert answer.status_code == 422, answer.text
        assert answer.json().get("field") == field, answer.text
    assert (await http.put("/api/schedules/a b", json=NIGHTLY)).status_code == 422


async def test_one_that_a_hand_edited_into_nonsense_hides_no_other(
    app: Penstock, http: AsyncClient
) -> None:
    for name in ("first", "second"):
        put = await http.put(f"/api/schedules/{name}", json=NIGHTLY)
        assert put.status_code == 200
    found = await app.store.schedules.get("first", "")
    assert found is not None
    await app.store.schedules.put(replace(found, zone="Nowhere/City"))
    first, second = (await http.get("/api/schedules")).json()["schedules"]
    assert (first["zone"], first["next_run"], first["next_runs"]) == ("Nowhere/City", None, [])
    assert second["next_run"] is not None


async def test_schedules_are_listed_page_by_page_and_none_is_left_out(http: AsyncClient) -> None:
    for name in ("b", "a", "a.b", "c"):
        await http.put(f"/api/schedules/{name}", json=NIGHTLY)
    found: list[str] = []
    after = ""
    while after is not None:
        page = (await http.get("/api/schedules", params={"after": after, "limit": "1"})).json()
        found += [schedule["name"] for schedule in page["schedules"]]
        after = page["next"]
    assert found == ["a", "a.b", "b", "c"]
    assert (await http.get("/api/schedules")).json()["next"] is None


async def test_nobody_schedules_more_often_than_once_a_second(
    app: Penstock, http: AsyncClient
) -> None:
    often = {"type": "add", "payload": {"a": 1}, "misfire": "all"}
    answer = await http.put("/api/schedules/flood", json=often | {"every": 0.999})
    assert (answer.status_code, answer.json()["field"]) == (422, "body.every")
    assert await app.store.schedules.known() == []
    assert (await http.put("/api/schedules/flood", json=often | {"every": 1})).status_code == 200


async def test_what_makes_jobs_needs_the_right_to_enqueue(
    http: AsyncClient, make_token: TokenMaker
) -> None:
    operate, both = await make_token("operate"), await make_token("operate", "enqueue")
    path = "/api/schedules/nightly"
    for method, where, status in (("PUT", path, 200), ("POST", f"{path}/run", 201)):
        body = NIGHTLY if method == "PUT" else None
        refused = await http.request(method, where, json=body, headers=operate)
        assert (refused.status_code, "'enqueue'" in refused.json()["detail"]) == (403, True)
        done = await http.request(method, where, json=body, headers=both)
        assert done.status_code == status
    assert (await http.post(f"{path}/pause", headers=operate)).status_code == 200
