from fastapi import FastAPI
from httpx import AsyncClient

from penstock.operate.journal import Journal
from tests.server.conftest import TokenMaker


async def test_a_token_is_made_used_listed_and_revoked(
    http: AsyncClient, make_token: TokenMaker
) -> None:
    admin = await make_token("admin")
    new = {"name": "billing", "scopes": ["read", "enqueue"], "tenant": "acme", "expires_in": 60}
    made = (await http.post("/api/tokens", json=new, headers=admin)).json()
    assert (made["scopes"], made["tenant_id"]) == (["enqueue", "read"], "acme")
    own = {"Authorization": f"Bearer {made['token']}"}
    assert (await http.get("/api/jobs", headers=own)).status_code == 200
    listed = (await http.get("/api/tokens", headers=admin)).json()["tokens"]
    assert "billing" in [token["name"] for token in listed]
    assert made["token"].split("_", 2)[2] not in str(listed)
    revoked = await http.delete(f"/api/tokens/{made['id']}", headers=admin)
    assert revoked.json()["revoked_at"] is not None
    assert (await http.get("/api/jobs", headers=own)).status_code == 401


async def test_making_and_revoking_a_token_is_in_the_audit_log_without_its_secret(
    http: AsyncClient, server: FastAPI, make_token: TokenMaker
) -> None:
    admin = await make_token("admin")
    new = {"name": "billing", "scopes": ["read"]}
    made = (await http.post("/api/tokens", json=new, headers=admin)).json()
    await http.delete(f"/api/tokens/{made['id']}", headers=admin)
    entries = (await http.get("/api/audit?action=token", headers=admin)).json()["entries"]
    assert [entry["action"] for entry in entries] == ["token.revoke", "token.create"]
    assert made["token"].split("_", 2)[2] not in str(entries)
    verified = await Journal(server.state.server.app.store).verify()
    assert (verified.entries, verified.problem) == (2, None)


async def test_an_unknown_token_is_not_found(http: AsyncClient) -> None:
    for token_id in ("01JD3Z6K3V9M0Q2T4W6Y8A0C2E", "x"):
        assert (await http.delete(f"/api/tokens/{token_id}")).status_code == 404


async def test_the_audit_log_is_read_page_by_page_and_filtered(http: AsyncClient) -> None:
    for queue in ("a", "b", "c"):
        await http.post("/api/pauses", json={"scope": "queue", "name": queue})
    first = (await http.get("/api/audit?limit=2")).json()
    rest = (await http.get("/api/audit", params={"limit": 2, "before": first["next"]})).json()
    subjects = [entry["subject"] for entry in first["entries"] + rest["entries"]]
    assert subjects == ["queue:c", "queue:b", "queue:a"]
    one = (await http.get("/api/audit", params={"subject": "queue:b"})).json()["entries"]
    assert [entry["seq"] for entry in one] == [2]
    nobody = (await http.get("/api/audit", params={"actor": "user:ann"})).json()["entries"]
    assert nobody == []


async def test_tokens_are_listed_page_by_page_and_none_is_left_out(
    http: AsyncClient, make_token: TokenMaker
) -> None:
    admin = await make_token("admin")
    for _ in range(4):
        await make_token("read")
    found: list[str] = []
    after, pages = "", 0
    while after is not None:
        query = {"after": after, "limit": "2"}
        page = (await http.get("/api/tokens", params=query, headers=admin)).json()
        found += [token["id"] for token in page["tokens"]]
        after, pages = page["next"], pages + 1
    whole = (await http.get("/api/tokens", headers=admin)).json()
    assert found == [token["id"] for token in whole["tokens"]]
    assert (len(found), pages, whole["next"]) == (5, 3, None)
