"""A page is bounded in bytes, and nothing on it is lost or told twice."""

import pytest
from httpx import AsyncClient

from penstock import Penstock
from penstock.server.api import filters
from proof.conformance.build import dead_job


@pytest.mark.parametrize(("path", "name"), [("jobs", "jobs"), ("dead-letters", "letters")])
async def test_large_rows_make_short_pages_that_go_on(
    app: Penstock, http: AsyncClient, monkeypatch: pytest.MonkeyPatch, path: str, name: str
) -> None:
    monkeypatch.setattr(filters, "STEP", 2)
    monkeypatch.setattr(filters, "MOST_BYTES", 5_000)
    payload = '{"text": "' + "x" * 2_000 + '"}'
    made = {await dead_job(app.store, type="fail", payload=payload) for _ in range(9)}
    seen: list[str] = []
    before: str | None = None
    while True:
        query = {"limit": "7"} | ({"before": before} if before else {})
        page = (await http.get(f"/api/{path}", params=query)).json()
        assert len(page[name]) <= 4
        seen += [row.get("id") or row["job_id"] for row in page[name]]
        before = page["next"]
        if before is None:
            break
    assert len(seen) == 9
    assert set(seen) == made


async def test_small_rows_fill_the_page_that_was_asked_for(
    app: Penstock, http: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filters, "STEP", 2)
    await app.enqueue_many([app.find_type("add").new(n) for n in range(9)])
    first = (await http.get("/api/jobs", params={"limit": 7})).json()
    assert len(first["jobs"]) == 7
    rest = (await http.get("/api/jobs", params={"limit": 7, "before": first["next"]})).json()
    assert (len(rest["jobs"]), rest["next"]) == (2, None)
