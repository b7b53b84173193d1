"""Erasing over the API: for administrators of the whole, and on record."""

from httpx import AsyncClient

from penstock import Penstock


async def test_a_tenant_is_erased_on_record(app: Penstock, http: AsyncClient) -> None:
    handle = await app.find_type("add").options(tenant="acme").enqueue(1)
    answer = await http.post("/api/erasures", json={"tenant": "acme"})
    assert answer.json() == {"erased": {"jobs": 1}}
    assert not await app.store.reader.get([handle.id])
    [entry] = (await http.get("/api/audit?action=erase")).json()["entries"]
    assert entry["subject"] == "tenant:acme"


async def test_an_erasure_of_nobody_is_refused(http: AsyncClient) -> None:
    answer = await http.post("/api/erasures", json={})
    assert answer.status_code == 422
    assert "tenant= or person=" in answer.json()["detail"]
