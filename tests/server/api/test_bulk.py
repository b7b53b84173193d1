import pytest
from httpx import AsyncClient

from penstock import Penstock

ADD = {"type": "add", "payload": {"a": 1}}


async def act(http: AsyncClient, action: str, **more: object) -> dict[str, object]:
    bulk = {"action": action, "filter": {"type": "add"}, **more}
    answer = await http.post("/api/jobs/bulk", json=bulk)
    assert answer.status_code == 200, answer.text
    found: dict[str, object] = answer.json()
    return found


async def test_a_dry_run_counts_and_changes_nothing(app: Penstock, http: AsyncClient) -> None:
    await http.post("/api/jobs", json=[ADD] * 3)
    counted = await act(http, "cancel", dry_run=True)
    assert (counted["found"], counted["done"], counted["next"]) == (3, 0, None)
    assert {job.status for job in await app.find()} == {"queued"}
    assert (await http.get("/api/audit")).json()["entries"] == []


@pytest.mark.every_store
async def test_every_action_is_done_to_all_jobs_that_allow_it(
    app: Penstock, http: AsyncClient
) -> None:
    await http.post("/api/jobs", json=[ADD] * 60)
    await http.post("/api/jobs", json={"type": "send_mail", "payload": {"to": "ann"}})
    for action, status in (
        ("pause", {"paused"}),
        ("resume", {"pending", "queued"}),
        ("cancel", {"cancelled"}),
        ("requeue", {"pending", "queued"}),
    ):
        answer = await act(http, action)
        assert (answer["found"], answer["done"], answer["refused"]) == (60, 60, 0)
        assert {job.status for job in await app.find(type="add", limit=100)} <= status
    assert (await act(http, "requeue"))["found"] == 0
    assert {job.status for job in await app.find(type="send_mail")} == {"queued"}


@pytest.mark.every_store
async def test_a_bound_action_says_where_to_go_on(http: AsyncClient) -> None:
    await http.post("/api/jobs", json=[ADD] * 5)
    first = await act(http, "cancel", limit=3)
    assert (first["done"], first["next"] is None) == (3, False)
    rest = await act(http, "cancel", limit=3, before=first["next"])
    assert (rest["done"], rest["next"]) == (2, None)


async def test_it_is_one_entry_of_the_audit_log_without_what_was_looked_for(
    http: AsyncClient,
) -> None:
    await http.post("/api/jobs", json=[ADD] * 3)
    await act(http, "cancel", filter={"type": "add", "text": "secret"})
    await act(http, "cancel", filter={"type": "add", "text": "secret"})
    entries = (await http.get("/api/audit")).json()["entries"]
    assert [entry["action"] for entry in entries] == ["jobs.cancel", "jobs.cancel"]
    one, other = (entry["details"] for entry in entries)
    assert one["filter"] == ["text", "type"]
    assert one["filter_hash"] == other["filter_hash"]
    assert "secret" not in str(entries)


async def test_an_empty_filter_is_refused(http: AsyncClient) -> None:
    answer = await http.post("/api/jobs/bulk", json={"action": "cancel", "filter": {}})
    assert (answer.status_code, answer.json()["field"]) == (422, "filter")
