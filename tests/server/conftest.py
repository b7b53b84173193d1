"""An application with a server in front of it, reached without a network."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from penstock import Penstock
from penstock.config import Settings
from penstock.server.access.identity import parse_scopes
from penstock.server.app import create_server
from penstock.server.summary import Fresh
from tests.support.places import Place

ADDRESS = "http://localhost"
Bearer = dict[str, str]
TokenMaker = Callable[..., Awaitable[Bearer]]


@pytest.fixture(autouse=True)
def _quick_pings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here is about a store that answers slowly, as one may on a busy machine."""
    monkeypatch.setattr("penstock.operate.health.SLOW_PING_MS", 60_000)


@pytest.fixture
def app(place: Place) -> Penstock:
    """An application with a few job types."""
    made = Penstock(settings=Settings(**place.settings, requests_per_minute=0))

    @made.job
    async def add(a: int, b: int = 1) -> int:
        return a + b

    @made.job(max_retries=0)
    async def fail(text: str = "broken") -> None:
        raise ValueError(text)

    @made.job(queue="mail", breaker="smtp")
    async def send_mail(to: str) -> None: ...

    return made


@pytest.fixture(scope="session")
def document() -> dict[str, Any]:
    """What a server says of itself: the same for all of them, and slow to put together."""
    return create_server(Penstock("sqlite:///:memory:")).openapi()


@pytest.fixture
async def server(app: Penstock, document: dict[str, Any]) -> AsyncIterator[FastAPI]:
    """Its server, open, which trusts whoever asks until there is a token."""
    made = create_server(app, trusts_callers=True)
    made.openapi_schema = document
    async with made.router.lifespan_context(made):
        yield made


@pytest.fixture
async def http(server: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """A client on this machine."""
    transport = httpx.ASGITransport(server, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=ADDRESS) as client:
        yield client


@pytest.fixture
def always_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that was seen is kept."""
    monkeypatch.setattr(Fresh, "get", lambda kept: kept.look())


@pytest.fixture
def make_token(server: FastAPI) -> TokenMaker:
    """Makes tokens: `await make_token("read", tenant="acme")` is the header that carries one."""

    async def make(
        *scopes: str, tenant: str | None = None, expires_in_ms: int | None = None
    ) -> Bearer:
        tokens = server.state.server.tokens
        _, text = await tokens.create(
            "test", parse_scopes(scopes), by="test", tenant_id=tenant, expires_in_ms=expires_in_ms
        )
        return {"Authorization": f"Bearer {text}"}

    return make
