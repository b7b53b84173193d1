"""A browser without scripts: pages are fetched, forms are sent with the token of their page."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from penstock import Context, Penstock
from penstock.server.access.identity import Scope
from penstock.server.access.users import COOKIE
from penstock.server.app import create_server
from tests.support.places import Place

TOKEN = re.compile(r'name="csrf" value="([^"]*)"')
PASSWORD = "a long password"


class Browser:
    """Somebody at a page."""

    def __init__(self, http: httpx.AsyncClient, root: str = "") -> None:
        self.http = http
        self.root = root

    async def open(self, path: str, **options: Any) -> httpx.Response:
        return await self.http.get(f"{self.root}/{path}", **options)

    async def text(self, path: str) -> str:
        answer = await self.open(path)
        assert answer.status_code == 200, answer.text
        return answer.text

    async def walk(self, path: str, row: str) -> list[str]:
        """What a pattern finds on a page and on all that follow it."""
        seen: list[str] = []
        while path:
            text = await self.text(path)
            seen += re.findall(row, text)
            older = re.search(r'rel="next" href="/([^"]+)"', text)
            path = older[1].replace("&amp;", "&") if older else ""
        return seen

    async def token(self) -> str:
        found = TOKEN.search(await self.text("jobs"))
        assert found is not None
        return found[1]

    async def send(
        self, path: str, fields: Any = (), *, csrf: str | None = None, **headers: str
    ) -> httpx.Response:
        """Send a form as a browser does; `csrf` replaces the page's token."""
        token = await self.token() if csrf is None else csrf
        pairs = list(fields.items()) if isinstance(fields, dict) else list(fields)
        body = str(httpx.QueryParams([*pairs, ("csrf", token)]))
        sent = {
            "Origin": "http://localhost",
            "Sec-Fetch-Site": "same-origin",
            "Content-Type": "application/x-www-form-urlencoded",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        return await self.http.post(f"{self.root}/{path}", content=body, headers=sent)

    async def follow(self, answer: httpx.Response) -> str:
        """The page that an action leads to."""
        assert answer.status_code == 303, answer.text
        found = await self.http.get(answer.headers["location"])
        assert found.status_code == 200, found.text
        return found.text


@pytest.fixture
async def app(place: Place) -> AsyncIterator[Penstock]:
    made = Penstock(place.url, dispatch=place.dispatch)

    @made.job(name="mail.send", queue="mail")
    async def send(to: str, copies: int = 1) -> str:
        """Send a message."""
        return to

    @made.job(name="import", queue="data")
    async def import_rows(ctx: Context, file: str) -> int:
        return 1

    async with made:
        yield made


@pytest.fixture
def server(app: Penstock) -> FastAPI:
    return create_server(app, trusts_callers=True)


@asynccontextmanager
async def a_browser(server: FastAPI) -> AsyncIterator[Browser]:
    """Somebody at the pages of a server."""
    transport = httpx.ASGITransport(server)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield Browser(client)


@pytest.fixture
async def http(server: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    async with a_browser(server) as browser:
        yield browser.http


@pytest.fixture
def browser(http: httpx.AsyncClient) -> Browser:
    """Somebody on this machine, before there are users."""
    return Browser(http)


@pytest.fixture
async def log_in(server: FastAPI, http: httpx.AsyncClient) -> Any:
    """Makes a user and gives their browser: `await log_in(Scope.READ, tenant_id="north")`."""

    async def made(*scopes: Scope, tenant_id: str | None = None, name: str = "ana") -> Browser:
        state = server.state.server
        user = await state.users.create(name, PASSWORD, scopes, by="test", tenant_id=tenant_id)
        client = httpx.AsyncClient(
            transport=httpx.ASGITransport(server),
            base_url="http://localhost",
            cookies={COOKIE: await state.sessions.begin(user)},
        )
        clients.append(client)
        return Browser(client)

    clients: list[httpx.AsyncClient] = []
    yield made
    for client in clients:
        await client.aclose()


@pytest.fixture
async def admin(log_in: Any) -> Browser:
    """The browser of somebody who may do everything."""
    found: Browser = await log_in(Scope.ADMIN)
    return found
