"""Ids and edges that callers send along."""

from typing import Any

import pytest
from httpx import AsyncClient

from penstock import Penstock
from penstock.model.clock import SystemClock
from penstock.model.ids import IdSource, new_id
from penstock.testing import drain

ADD = {"type": "add", "payload": {"a": 1}}


async def test_a_job_sent_twice_with_its_own_id_is_made_once(
    app: Penstock, http: AsyncClient
) -> None:
    job_id = new_id()
    first = await http.post("/api/jobs", json={**ADD, "id": job_id})
    again = await http.post("/api/jobs", json=[{**ADD, "id": job_id}, ADD])
    assert first.json()["id"] == again.json()[0]["id"] == job_id
    assert (first.json()["created"], again.json()[0]["created"]) == (True, False)
    assert len(await app.find()) == 2


@pytest.mark.parametrize("days", [-2, 2])
async def test_an_id_of_another_day_is_refused(http: AsyncClient, days: int) -> None:
    job_id = IdSource().new_id(SystemClock().now() + days * 86_400_000)
    answer = await http.post("/api/jobs", json={**ADD, "id": job_id})
    assert (answer.status_code, answer.json()["field"]) == (422, "id")


async def test_an_id_that_is_none_or_comes_twice_is_refused(http: AsyncClient) -> None:
    same = {**ADD, "id": new_id()}
    for body in ({**ADD, "id": "nonsense"}, [same, same]):
        answer = await http.post("/api/jobs", json=body)
        assert (answer.status_code, answer.json()["field"]) == (422, "id")


async def test_a_batch_may_wait_for_jobs_of_its_own_and_take_their_results(
    app: Penstock, http: AsyncClient
) -> None:
    first, second, third = new_id(), new_id(), new_id()
    batch = [
        {**ADD, "id": first},
        {
            "type": "add",
            "id": second,
            "after": [{"parent_id": first, "kind": "data", "argument": "a"}],
        },
        {**ADD, "id": third, "after": [first, {"parent_id": second, "kind": "completion"}]},
    ]
    answer = await http.post("/api/jobs", json=batch)
    assert answer.status_code == 201, answer.text
    await drain(app)
    assert [(await app.get(each)).result for each in (first, second, third)] == ["2", "3", "2"]


@pytest.mark.parametrize(
    "edge",
    [
        {"kind": "order"},
        {"kind": "conditional"},
        {"kind": "conditional", "condition": "import os"},
        {"condition": "result > 1"},
        {"kind": "data"},
        {"kind": "data", "argument": "not one"},
        {"argument": "a"},
        {"position": 1},
        {"kind": "data", "argument": "a", "position": -1},
        {"parent_id": "nonsense"},
        {"surprise": 1},
    ],
    ids=str,
)
async def test_an_edge_that_makes_no_sense_is_refused(
    http: AsyncClient, edge: dict[str, Any]
) -> None:
    parent = (await http.post("/api/jobs", json=ADD)).json()["id"]
    answer = await http.post(
        "/api/jobs", json={"type": "add", "after": [{"parent_id": parent} | edge]}
    )
    assert answer.status_code == 422, answer.text


async def test_a_job_is_cancelled_for_a_reason(app: Penstock, http: AsyncClient) -> None:
    job_id = (await http.post("/api/jobs", json={**ADD, "delay": 60})).json()["id"]
    answer = await http.post(f"/api/jobs/{job_id}/cancel", json={"reason": "not wanted"})
    assert answer.status_code == 200
    assert (await app.get(job_id)).error == "not wanted"


async def test_a_problem_names_its_kind_and_what_it_is_about(http: AsyncClient) -> None:
    answer = (await http.get(f"/api/jobs/{new_id()}")).json()
    assert answer["type"] == "urn:penstock:problem:job-not-found"
    assert set(answer["about"]) == {"job_id"}
    wrong = [ADD, {"type": "add", "payload": {"a": "x"}}]
    refused = (await http.post("/api/jobs", json=wrong)).json()
    assert refused["type"] == "urn:penstock:problem:invalid-arguments"
    assert refused["field"] == "body.1.a"
    blank = (await http.get("/api/jobs?limit=0")).json()
    assert blank["type"] == "about:blank"
