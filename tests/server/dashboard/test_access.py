import re
from typing import Any

import pytest
from fastapi import FastAPI
from msgspec.json import encode

from penstock import Penstock
from penstock.server.access.identity import Scope
from penstock.server.dashboard import render
from tests.server.dashboard.conftest import PASSWORD, Browser

ADMIN = {"name": "bob", "password": PASSWORD, "scope": "admin"}


async def actions(app: Penstock) -> list[tuple[str, str]]:
    return [(entry.action, entry.subject) for entry in await app.store.audit.page(0, 1_000)]


async def test_a_token_is_shown_once_and_revoked(
    admin: Browser, app: Penstock, server: FastAPI
) -> None:
    fields = [("name", "billing"), ("scope", "enqueue"), ("scope", "read"), ("days", "30")]
    made = await admin.send("access/tokens", [*fields, ("tenant", "north")])
    found = re.search(r"<pre[^>]*>(pk_[^<]+)</pre>", made.text)
    assert found is not None
    assert made.headers["cache-control"] == "no-store"
    tokens = server.state.server.tokens
    identity = await tokens.identify(found[1])
    assert identity is not None
    assert (identity.scopes, identity.tenant_id) == ((Scope.ENQUEUE, Scope.READ), "north")
    [token] = await tokens.all()
    assert token.expires_at - token.created_at == 30 * 86_400_000
    text = await admin.text("access")
    assert "billing" in text
    assert found[1] not in text
    sent = await admin.send("access/tokens/revoke", {"id": token.id})
    assert "is revoked" in await admin.follow(sent)
    assert await tokens.identify(found[1]) is None
    unknown = await admin.send("access/tokens/revoke", {"id": "nope"})
    assert "There is no token" in await admin.follow(unknown)
    assert await actions(app) == [
        ("token.create", "tokens"),
        ("token.revoke", f"token:{token.id}"),
    ]


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "", "scope": "read"},
        {"name": "t"},
        {"name": "t", "scope": "everything"},
        {"name": "t", "scope": "read", "days": "0"},
        {"name": "t", "scope": "read", "days": "soon"},
        {"name": "t\x07", "scope": "read"},
        {"name": "t" * 200, "scope": "read"},
    ],
)
async def test_a_token_that_makes_no_sense_is_refused_in_words(
    fields: dict[str, str], admin: Browser, server: FastAPI
) -> None:
    sent = await admin.send("access/tokens", fields)
    assert "notice bad" in await admin.follow(sent)
    assert await server.state.server.tokens.all() == []


async def test_a_user_is_added_changed_and_removed(
    admin: Browser, app: Penstock, server: FastAPI
) -> None:
    users = server.state.server.users
    text = await admin.follow(await admin.send("access/users", ADMIN))
    assert "bob can log in now." in text
    assert await users.check("bob", PASSWORD) is not None
    changed = {"name": "bob", "password": " another password "}
    await admin.follow(await admin.send("access/users/password", changed))
    assert await users.check("bob", " another password ") is not None
    assert await users.check("bob", PASSWORD) is None
    assert "Remove the user bob?" in await admin.text("access/users/remove?name=bob")
    await admin.follow(await admin.send("access/users/remove", {"name": "bob"}))
    assert [user.name for user in await users.all()] == ["ana"]
    assert await actions(app) == [
        ("user.add", "user:bob"),
        ("user.password", "user:bob"),
        ("user.remove", "user:bob"),
    ]
    for entry in await app.store.audit.page(0):
        assert "password" not in entry.details


@pytest.mark.parametrize(
    "change",
    [{"name": "no good name"}, {"password": "short"}, {"name": "ana"}, {"scope": ""}, {"name": ""}],
)
async def test_a_user_that_makes_no_sense_is_refused_in_words(
    change: dict[str, str], admin: Browser, server: FastAPI
) -> None:
    sent = await admin.send("access/users", {**ADMIN, **change})
    assert "notice bad" in await admin.follow(sent)
    assert [user.name for user in await server.state.server.users.all()] == ["ana"]


async def test_nobody_removes_themselves(admin: Browser, server: FastAPI) -> None:
    sent = await admin.send("access/users/remove", {"name": "ana"})
    assert "somebody else than you" in await admin.follow(sent)
    assert len(await server.state.server.users.all()) == 1


async def test_whoever_closes_the_door_has_a_key_first(browser: Browser, server: FastAPI) -> None:
    assert "As soon as there is a user, everybody must log in." in await browser.text("access")
    refused = await browser.send("access/tokens", {"name": "t", "scope": "admin"})
    assert "made after a user" in await browser.follow(refused)
    for change in ({"scope": "read"}, {"tenant": "north"}):
        refused = await browser.send("access/users", {**ADMIN, **change})
        assert "for the first one of all" in await browser.follow(refused)
    assert (await browser.send("access/users", ADMIN)).status_code == 303
    assert (await browser.open("access")).headers["location"] == "/login?next=access"


async def test_the_page_is_for_administrators_of_the_whole(log_in: Any) -> None:
    reader: Browser = await log_in(Scope.READ, Scope.OPERATE, name="eve")
    bound: Browser = await log_in(Scope.ADMIN, tenant_id="north", name="tom")
    for browser in (reader, bound):
        assert (await browser.open("access")).status_code == 403
        assert 'href="/access"' not in await browser.text("jobs")
        assert (await browser.send("access/users", ADMIN)).status_code == 403


async def test_many_tokens_and_users_are_shown_page_by_page_and_found_by_name(
    admin: Browser, server: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(render, "SHOWN", 2)
    known = server.state.server
    for number in range(3):
        await known.tokens.create(f"made-{number}", (Scope.READ,), by="test")
        document = encode(await known.users.get("ana")).replace(b'"ana"', b'"x%d"' % number, 1)
        await known.app.store.records.put("user", f"x{number}", document.decode())
    first, second = await admin.text("access"), await admin.text("access?page=2&users=2")
    assert ["made-0" in text for text in (first, second)] == [False, True]
    assert ["made-2" in text for text in (first, second)] == [True, False]
    assert ["user-x2" in text for text in (first, second)] == [False, True]
    assert 'href="/access?page=2&amp;find=' not in first
    assert "users=1" in first
    found = await admin.text("access?find=MADE-0")
    assert "made-0" in found
    assert "made-2" not in found
