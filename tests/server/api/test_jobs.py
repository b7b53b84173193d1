from datetime import UTC, datetime, timedelta

import pytest
from httpx import AsyncClient
from msgspec.structs import replace

from penstock import Context, Penstock
from penstock.model.clock import LATEST
from penstock.testing import drain
from tests.server.conftest import TokenMaker

ADD = {"type": "add", "payload": {"a": 1}}


async def enqueued(http: AsyncClient, **fields: object) -> str:
    answer = await http.post("/api/jobs", json={**ADD, **fields})
    assert answer.status_code == 201, answer.text
    found: str = answer.json()["id"]
    return found


async def test_a_job_is_enqueued_with_its_options(app: Penstock, http: AsyncClient) -> None:
    job_id = await enqueued(
        http,
        queue="mail",
        priority=2,
        delay=60,
        tags=["a", "b"],
        metadata={"order": 7},
        key="once",
        key_scope="forever",
        timeout=5,
        max_retries=0,
    )
    job = await app.get(job_id)
    assert (job.queue, job.priority, job.tags, job.key) == ("mail", 2, ("a", "b"), "once")
    assert (job.metadata, job.timeout_ms, job.max_retries) == ('{"order":7}', 5000, 0)
    assert job.status == "pending"
    assert job.created_by == "local"


async def test_a_key_in_a_field_or_a_header_finds_the_earlier_job(http: AsyncClient) -> None:
    first = await http.post("/api/jobs", json={**ADD, "key": "k"})
    again = await http.post("/api/jobs", json=ADD, headers={"Idempotency-Key": "k"})
    assert again.json()["id"] == first.json()["id"]
    assert (first.json()["created"], again.json()["created"]) == (True, False)


async def test_a_header_key_for_several_jobs_is_refused(http: AsyncClient) -> None:
    answer = await http.post("/api/jobs", json=[ADD, ADD], headers={"Idempotency-Key": "k"})
    assert (answer.status_code, answer.json()["field"]) == (422, "Idempotency-Key")


@pytest.mark.every_store
async def test_a_batch_is_enqueued_as_a_whole_with_each_jobs_own_options(
    app: Penstock, http: AsyncClient
) -> None:
    batch = [
        {**ADD, "key": "one"},
        {**ADD, "key": "two"},
        {**ADD, "priority": 1, "tags": ["x"]},
        {"type": "send_mail", "payload": {"to": "ann"}},
    ]
    answer = await http.post("/api/jobs", json=batch)
    jobs = [await app.get(each["id"]) for each in answer.json()]
    assert [job.key for job in jobs] == ["one", "two", None, None]
    assert [job.priority for job in jobs] == [5, 5, 1, 5]
    assert [job.queue for job in jobs] == ["default", "default", "default", "mail"]


async def test_one_wrong_job_refuses_the_batch_and_is_named(http: AsyncClient) -> None:
    for wrong, field in (
        ({**ADD, "payload": {"a": "one"}}, "body.1.a"),
        ({**ADD, "priority": 11}, "body.1.priority"),
        ({**ADD, "priority": "high"}, "body.1.priority"),
        ({**ADD, "colour": "red"}, "body.1"),
        ({"type": "nothing"}, "body.1.type"),
    ):
        answer = await http.post("/api/jobs", json=[ADD, wrong])
        assert answer.status_code == 422
        assert answer.json()["field"] == field
    assert (await http.get("/api/jobs")).json()["jobs"] == []


async def test_every_key_of_a_batch_is_one_that_all_stores_can_hold(http: AsyncClient) -> None:
    jobs = [{"type": "add", "payload": {"a": 1, "b": 2}, "key": key} for key in ("a", "b\0c")]
    answer = await http.post("/api/jobs", json=jobs)
    assert (answer.status_code, answer.json()["field"]) == (422, "body.1.key")
    assert "without NUL characters" in answer.json()["detail"]


async def test_an_empty_or_endless_batch_is_refused(http: AsyncClient) -> None:
    assert (await http.post("/api/jobs", json=[])).status_code == 422
    assert (await http.post("/api/jobs", json=[ADD] * 10_001)).status_code == 422


async def test_a_full_queue_says_when_to_come_back(http: AsyncClient) -> None:
    limit = {"scope": "queue", "name": "default", "depth": 1}
    assert (await http.put("/api/limits", json=limit)).status_code == 200
    await enqueued(http)
    answer = await http.post("/api/jobs", json={**ADD, "priority": 9})
    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) >= 1


@pytest.mark.every_store
async def test_a_job_is_shown_with_its_executions_dependencies_log_and_progress(
    app: Penstock, http: AsyncClient
) -> None:
    @app.job
    async def tell(ctx: Context) -> str:
        ctx.log("half way")
        ctx.progress({"phase": "half", "percent": 50, "batch": 2})
        return "done"

    parent = await enqueued(http, type="tell", payload={})
    child = await enqueued(http, after=[parent])
    waiting = (await http.get(f"/api/jobs/{child}")).json()
    assert [edge["parent_id"] for edge in waiting["parents"]] == [parent]
    await drain(app)
    shown = (await http.get(f"/api/jobs/{parent}")).json()
    assert (shown["status"], shown["result"]) == ("completed", "done")
    assert [run["status"] for run in shown["executions"]] == ["completed"]
    assert [line["message"] for line in shown["logs"]] == ["half way"]
    assert (shown["progress_percent"], shown["progress_message"]) == (50, "half")
    assert shown["progress"] == {"phase": "half", "percent": 50, "batch": 2}
    assert [edge["child_id"] for edge in shown["children"]] == [child]


async def test_jobs_are_asked_for_by_their_ids(http: AsyncClient) -> None:
    ids = [await enqueued(http) for _ in range(3)]
    asked = [ids[1], "01K0000000000000000000000Z", ids[0]]
    page = (await http.get("/api/jobs", params={"id": asked})).json()
    assert ([job["id"] for job in page["jobs"]], page["next"]) == ([ids[1], ids[0]], None)
    first = (await http.get("/api/jobs", params={"id": ids, "limit": 2})).json()
    assert ([job["id"] for job in first["jobs"]], first["next"]) == (ids[:2], ids[1])
    more = {"id": ids, "limit": 2, "before": first["next"]}
    assert [j["id"] for j in (await http.get("/api/jobs", params=more)).json()["jobs"]] == ids[2:]
    refused = await http.get("/api/jobs", params={"id": ids, "type": "add"})
    assert (refused.status_code, refused.json()["field"]) == (422, "id")


@pytest.mark.every_store
async def test_jobs_are_found_page_by_page(http: AsyncClient) -> None:
    ids = [await enqueued(http, tags=["t"]) for _ in range(5)]
    found: list[str] = []
    query: dict[str, str] = {"tag": "t", "limit": "2"}
    while True:
        page = (await http.get("/api/jobs", params=query)).json()
        found += [job["id"] for job in page["jobs"]]
        if page["next"] is None:
            break
        query["before"] = page["next"]
    assert found == ids[::-1]


@pytest.mark.every_store
async def test_jobs_are_found_by_payload_text_and_time(http: AsyncClient) -> None:
    one = await enqueued(http, payload={"a": 7})
    await enqueued(http, payload={"a": 8})
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    for query, expected in (
        ({"payload": "a=7"}, [one]),
        ({"text": one[-6:]}, [one]),
        ({"since": later}, []),
        ({"status": ["completed", "failed"]}, []),
    ):
        page = (await http.get("/api/jobs", params=query)).json()
        assert [job["id"] for job in page["jobs"]] == expected, query


@pytest.mark.every_store
async def test_a_job_is_paused_resumed_cancelled_and_requeued(http: AsyncClient) -> None:
    path = f"/api/jobs/{await enqueued(http)}"
    paused = await http.post(f"{path}/pause", json={"reason": "wait"})
    assert paused.json()["status"] == "paused"
    reasons = (await http.get(f"{path}/explain")).json()["reasons"]
    assert reasons[0]["kind"] == "job_paused"
    assert "wait" in reasons[0]["sentence"]
    assert (await http.post(f"{path}/resume")).json()["status"] in ("pending", "queued")
    assert (await http.post(f"{path}/cancel")).json()["status"] == "cancelled"
    assert (await http.post(f"{path}/requeue")).json()["status"] in ("pending", "queued")
    assert (await http.post(f"{path}/requeue")).status_code == 409
    entries = (await http.get("/api/audit", params={"action": "job"})).json()["entries"]
    assert [entry["action"].removeprefix("job.") for entry in entries[::-1]] == [
        "pause",
        "resume",
        "cancel",
        "requeue",
        "requeue",
        "requeue.refused",
    ]


async def test_what_is_no_id_is_not_found(http: AsyncClient) -> None:
    for job_id in ("x", "01jd3z6k3v9m0q2t4w6y8a0c2e", "%F0%9F%98%80", "..%2F..", "0" * 400):
        for action in ("", "/explain", "/events"):
            assert (await http.get(f"/api/jobs/{job_id}{action}")).status_code == 404
        assert (await http.post(f"/api/jobs/{job_id}/cancel")).status_code == 404


async def test_a_job_with_a_wild_time_does_not_hide_the_others(
    app: Penstock, http: AsyncClient
) -> None:
    for at in ("9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+14:00"):
        answer = await http.post("/api/jobs", json={**ADD, "at": at})
        assert (answer.status_code, answer.json()["field"]) == (422, "at")
    new = app.find_type("add").new(1)
    await app.store.jobs.enqueue([replace(new.job, scheduled_at=LATEST + 86_400_000)])
    listed = (await http.get("/api/jobs")).json()["jobs"]
    assert [each["scheduled_at"] for each in listed] == ["9999-12-31T23:59:59.999Z"]


@pytest.mark.parametrize("number", ["9" * 5_000, "-" + "9" * 5_000])
async def test_a_number_nobody_can_keep_is_the_callers_mistake(
    http: AsyncClient, number: str
) -> None:
    body = f'{{"type": "add", "payload": {{"a": 1}}, "metadata": {{"n": {number}}}}}'
    headers = {"Content-Type": "application/json"}
    answer = await http.post("/api/jobs", content=body, headers=headers)
    assert (answer.status_code, answer.json()["field"]) == (422, "metadata")


@pytest.mark.every_store
async def test_jobs_are_found_by_who_enqueued_them_and_for_which_workspace(
    app: Penstock, http: AsyncClient, make_token: TokenMaker
) -> None:
    mine, theirs = await make_token("admin"), await make_token("admin")
    body = {"type": "add", "payload": {"a": 1}, "workspace": "north"}
    made = (await http.post("/api/jobs", json=body, headers=mine)).json()["id"]
    await http.post("/api/jobs", json={**body, "workspace": "south"}, headers=theirs)
    creator = (await app.get(made)).created_by
    for where in ({"created_by": creator}, {"workspace": "north"}):
        page = await http.get("/api/jobs", params=where, headers=mine)
        assert [job["id"] for job in page.json()["jobs"]] == [made]
        bulk = {"action": "cancel", "filter": where, "dry_run": True}
        found = await http.post("/api/jobs/bulk", json=bulk, headers=mine)
        assert found.json()["found"] == 1
    nothing = await http.get("/api/jobs", params={"created_by": "nobody"}, headers=mine)
    assert nothing.json()["jobs"] == []
