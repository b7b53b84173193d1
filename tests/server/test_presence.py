"""A stream lasts no longer than the right to it."""

from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.requests import Request

from penstock import Penstock
from penstock.model.store_errors import StoreUnavailable
from penstock.server import guard, streams
from penstock.server.access.identity import Scope
from penstock.server.access.users import COOKIE
from penstock.server.app import create_server
from penstock.server.guard import Presence, bearer_of, identify
from penstock.server.state import Server
from tests.server.conftest import TokenMaker
from tests.support.http_server import serving


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(streams, "HEARTBEAT_SECONDS", 0.01)


def asking(**headers: str) -> Request:
    named = [(name.encode(), value.encode()) for name, value in headers.items()]
    sent = [(b"host", b"localhost"), *named]
    return Request({"type": "http", "method": "GET", "path": "/", "headers": sent})


async def entered(server: Server, request: Request) -> Presence:
    bearer = await bearer_of(request)
    caller = await identify(request, server, bearer)
    assert caller is not None
    return Presence(request, server, caller, bearer)


async def test_a_revoked_token_is_noticed(server: FastAPI, make_token: TokenMaker) -> None:
    state: Server = server.state.server
    text = (await make_token("read"))["Authorization"]
    here = await entered(state, asking(authorization=text))
    assert await here.lasts()
    await state.tokens.revoke(text.split("_")[1])
    assert not await here.lasts()


async def end_of_session(state: Server, cookie: str) -> None:
    await state.sessions.end(cookie)


async def another_password(state: Server, _: str) -> None:
    await state.users.set_password("ann", "another password")


async def removal(state: Server, _: str) -> None:
    await state.users.remove("ann")


@pytest.mark.parametrize("change", [end_of_session, another_password, removal])
async def test_a_session_that_is_over_is_noticed(server: FastAPI, change: Any) -> None:
    state: Server = server.state.server
    user = await state.users.create("ann", "a long password", (Scope.READ,), by="test")
    cookie = await state.sessions.begin(user)
    here = await entered(state, asking(cookie=f"{COOKIE}={cookie}"))
    assert await here.lasts()
    await change(state, cookie)
    assert not await here.lasts()


async def test_a_page_goes_by_its_cookie_whatever_else_was_sent(
    server: FastAPI, make_token: TokenMaker
) -> None:
    state: Server = server.state.server
    user = await state.users.create("ann", "a long password", (Scope.READ,), by="test")
    cookie = await state.sessions.begin(user)
    token = (await make_token("read"))["Authorization"]
    request = asking(cookie=f"{COOKIE}={cookie}", authorization=token)
    caller = await identify(request, state, None)
    assert caller is not None
    assert await Presence(request, state, caller).lasts()


async def test_who_was_let_in_without_a_name_leaves_when_names_are_asked_for(
    server: FastAPI, make_token: TokenMaker
) -> None:
    here = await entered(server.state.server, asking())
    assert await here.lasts()
    await make_token("read")
    assert not await here.lasts()


async def test_a_store_that_is_away_for_a_moment_turns_nobody_away(
    server: FastAPI, make_token: TokenMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> None:
        raise StoreUnavailable("sqlite", "gone")

    state: Server = server.state.server
    here = await entered(state, asking(authorization=(await make_token("read"))["Authorization"]))
    monkeypatch.setattr(state.tokens, "identify", away)
    assert await here.lasts()


def test_both_kinds_of_streams_end_over_the_wire(app: Penstock) -> None:
    server = create_server(app, trusts_callers=True)
    with serving(server) as address, httpx.Client(base_url=address, timeout=20) as http:
        job = http.post("/api/jobs", json={"type": "add", "payload": {"a": 1}}).json()["id"]
        watched = f"/api/jobs/{job}/events"
        # Whoever watches as nobody in particular is turned away by the first token.
        with http.stream("GET", "/live") as tab, http.stream("GET", watched) as stream:
            new = {"name": "ci", "scopes": ["admin"]}
            assert http.post("/api/tokens", json=new).status_code == 201
            assert "retry: 2000" in list(tab.iter_lines())
            assert "event: state" in list(stream.iter_lines())
