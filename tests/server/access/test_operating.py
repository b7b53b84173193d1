"""Letting others in: by every bind the same rules, and the same words on record."""

from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient
from msgspec.json import decode

from penstock import Penstock
from penstock.model.errors import InvalidOption
from penstock.model.not_found import TokenNotFound, UserNotFound
from penstock.operate.actor import Operator
from penstock.server.access.identity import LOCAL, Scope
from penstock.server.access.operating import AccessOperator
from penstock.server.access.tokens import Tokens
from penstock.server.access.users import Users

PASSWORD = "a long password"
READ, ADMIN = (Scope.READ,), (Scope.ADMIN,)


@pytest.fixture
def access(server: FastAPI, app: Penstock) -> AccessOperator:
    return AccessOperator(Operator(app, "user:ada"))


@pytest.fixture
def first(server: FastAPI, app: Penstock) -> AccessOperator:
    """Somebody on this machine, while nobody was named yet."""
    return AccessOperator(Operator(app, LOCAL.actor))


async def on_record(app: Penstock) -> list[tuple[str, str, str]]:
    entries = await app.store.audit.page(0, 100)
    return [(entry.action, entry.subject, entry.tenant_id) for entry in entries]


async def test_what_is_done_is_on_record_where_its_tenant_reads_it(
    access: AccessOperator, app: Penstock
) -> None:
    token, text = await access.create_token("billing", READ, tenant_id="acme")
    await access.revoke_token(token.id)
    await access.add_user("ben", PASSWORD, READ, tenant_id="acme")
    await access.set_password("ben", "another password")
    await access.remove_user("ben")
    assert await on_record(app) == [
        ("token.create", "tokens", "acme"),
        ("token.revoke", f"token:{token.id}", "acme"),
        ("user.add", "user:ben", "acme"),
        ("user.password", "user:ben", "acme"),
        ("user.remove", "user:ben", "acme"),
    ]
    told = [entry.details for entry in await app.store.audit.page(0, 100)]
    assert decode(told[0]) == {"name": "billing", "scopes": ["read"], "tenant": "acme"}
    assert not any(secret in "".join(told) for secret in (text, PASSWORD, "another password"))


async def test_what_is_not_there_is_not_found_and_leaves_no_entry(
    access: AccessOperator, app: Penstock
) -> None:
    with pytest.raises(TokenNotFound, match="'nope'; see `penstock tokens ls`"):
        await access.revoke_token("nope")
    with pytest.raises(UserNotFound, match="'nobody'; see `penstock users ls`"):
        await access.set_password("nobody", PASSWORD)
    with pytest.raises(UserNotFound):
        await access.remove_user("nobody")
    assert await on_record(app) == []


@pytest.mark.parametrize(
    ("name", "tenant", "part"),
    [
        ("", None, "plain text"),
        ("a\x1b[2J", None, "plain text"),
        ("a" * 129, None, "plain text"),
        ("a", "", "left out"),
        ("a", "north\n", "left out"),
    ],
)
async def test_a_name_that_is_none_is_refused_by_every_door(
    name: str, tenant: str | None, part: str, access: AccessOperator, http: AsyncClient
) -> None:
    with pytest.raises(InvalidOption, match=part):
        await access.create_token(name, ADMIN, tenant_id=tenant)
    new: dict[str, Any] = {"name": name, "scopes": ["admin"], "tenant": tenant}
    assert (await http.post("/api/tokens", json=new)).status_code == 422


async def test_a_user_whose_name_or_tenant_is_none_is_refused(access: AccessOperator) -> None:
    with pytest.raises(InvalidOption, match="left out"):
        await access.add_user("ben", PASSWORD, READ, tenant_id="")
    with pytest.raises(InvalidOption, match="letters, digits"):
        await access.add_user("b" * 65, PASSWORD, READ)


async def test_nobody_removes_themselves(access: AccessOperator, app: Penstock) -> None:
    await access.add_user("ada", PASSWORD, ADMIN)
    with pytest.raises(InvalidOption, match="somebody else than you"):
        await access.remove_user("ada")
    assert await Users(app.store).get("ada") is not None


@pytest.mark.parametrize(("scopes", "tenant"), [(READ, None), (ADMIN, "acme")])
async def test_whoever_closes_the_door_from_inside_can_let_others_in_afterwards(
    scopes: tuple[Scope, ...], tenant: str | None, first: AccessOperator, app: Penstock
) -> None:
    with pytest.raises(InvalidOption, match="for the first one of all"):
        await first.create_token("t", scopes, tenant_id=tenant)
    with pytest.raises(InvalidOption, match="for the first one of all"):
        await first.add_user("ada", PASSWORD, scopes, tenant_id=tenant)
    assert await Tokens(app.store).all() == []
    await first.create_token("t", ADMIN)


async def test_the_first_token_over_the_api_must_be_able_to_make_others(http: AsyncClient) -> None:
    refused = await http.post("/api/tokens", json={"name": "ci", "scopes": ["read"]})
    assert (refused.status_code, refused.json()["field"]) == (422, "scopes")
    assert (await http.get("/api/jobs")).status_code == 200
    made = await http.post("/api/tokens", json={"name": "ci", "scopes": ["admin"]})
    assert made.status_code == 201
    assert (await http.get("/api/jobs")).status_code == 401
