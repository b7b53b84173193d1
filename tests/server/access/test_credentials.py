"""Tokens and users: how they are kept, found and taken away."""

import threading
from collections.abc import Callable

import pytest
from fastapi import FastAPI
from httpx import AsyncClient
from starlette.requests import Request

from penstock import Penstock
from penstock.model.not_found import UserNotFound
from penstock.server.access import users
from penstock.server.access.identity import Scope
from penstock.server.access.tokens import Tokens
from penstock.server.access.users import Users
from penstock.server.guard import PROXIED, identify
from penstock.server.problems import Refusal
from penstock.store.contract import records

PASSWORD = "a long password"


async def test_passwords_are_stretched_beside_the_event_loop(
    server: FastAPI, app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: set[int] = set()

    def noting(done: Callable[..., object]) -> Callable[..., object]:
        def call(*given: str) -> object:
            threads.add(threading.get_ident())
            return done(*given)

        return call

    monkeypatch.setattr(users, "hash_of_password", noting(users.hash_of_password))
    monkeypatch.setattr(users, "password_fits", noting(users.password_fits))
    users.nobodys_hash.cache_clear()
    known = Users(app.store)
    await known.create("ann", PASSWORD, (Scope.READ,), by="test")
    await known.set_password("ann", "another password")
    assert await known.check("ann", "another password") is not None
    assert await known.check("nobody", PASSWORD) is None
    assert threads
    assert threading.get_ident() not in threads


async def test_who_was_removed_meanwhile_does_not_come_back_with_a_password(
    server: FastAPI, app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = Users(app.store)
    await known.create("ann", PASSWORD, (Scope.READ,), by="test")
    get = app.store.records.get

    async def too_late(kind: str, name: str) -> object:
        found = await get(kind, name)
        await app.store.records.remove(kind, name)
        return found

    monkeypatch.setattr(app.store.records, "get", too_late)
    with pytest.raises(UserNotFound, match="users ls"):
        await known.set_password("ann", "another password")
    assert await known.get("ann") is None


async def test_one_of_many_tokens_is_still_listed_and_revoked(
    http: AsyncClient, app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "AT_ONCE", 2)
    tokens = Tokens(app.store)
    async with app:
        made = [await tokens.create(f"t{n}", (Scope.ADMIN,), by="test") for n in range(5)]
        header = {"Authorization": f"Bearer {made[0][1]}"}
        listed = (await http.get("/api/tokens", headers=header)).json()["tokens"]
        assert {each["id"] for each in listed} == {token.id for token, _ in made}
        last = max(token.id for token, _ in made)
        answer = await http.delete(f"/api/tokens/{last}", headers=header)
        assert answer.json()["revoked_at"] is not None


async def test_the_cookie_of_a_session_that_is_over_does_no_harm_on_an_open_server(
    http: AsyncClient,
) -> None:
    stale = {"Cookie": "penstock_session=of-last-week"}
    assert (await http.get("/api/jobs", headers=stale)).status_code == 200
    job = {"type": "add", "payload": {"a": 1}}
    assert (await http.post("/api/jobs", json=job, headers=stale)).status_code == 201
    for origin in ("https://evil.example", "http://[", "null"):
        foreign = {**stale, "Origin": origin}
        assert (await http.post("/api/jobs", json=job, headers=foreign)).status_code == 403
    named = {**stale, "Host": "evil.example"}
    assert (await http.get("/api/jobs", headers=named)).status_code == 403


@pytest.mark.parametrize("header", PROXIED)
async def test_an_open_server_does_not_take_a_proxy_for_somebody_on_this_machine(
    http: AsyncClient, header: str
) -> None:
    answer = await http.get("/api/jobs", headers={header: "1.1 proxy"})
    assert (answer.status_code, "proxy" in answer.json()["detail"]) == (403, True)


async def test_a_proxy_that_tells_nothing_of_itself_is_known_by_its_old_http(
    server: FastAPI,
) -> None:
    old = {"type": "http", "method": "GET", "path": "/", "headers": [(b"host", b"localhost")]}
    with pytest.raises(Refusal, match="proxy"):
        await identify(Request(old | {"http_version": "1.0"}), server.state.server, None)
    assert await identify(Request(old | {"http_version": "1.1"}), server.state.server, None)
