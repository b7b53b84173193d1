"""A store that hangs or is away: callers are told so, soon, and when to come back."""

import asyncio
from typing import Any, NoReturn

import pytest
from httpx import AsyncClient

from penstock import Penstock
from penstock.model.store_errors import StoreUnavailable
from penstock.server import guard


async def hang(*_: Any, **__: Any) -> NoReturn:
    await asyncio.Event().wait()
    raise AssertionError


async def away(*_: Any, **__: Any) -> NoReturn:
    raise StoreUnavailable("postgresql://db", "refused")


@pytest.mark.parametrize("broken", [hang, away])
async def test_a_store_that_hangs_or_is_away_is_told_of_soon_and_when_to_come_back(
    app: Penstock, http: AsyncClient, monkeypatch: pytest.MonkeyPatch, broken: Any
) -> None:
    monkeypatch.setattr(guard, "STORE_SECONDS", 0.01)
    for method in ("get", "list"):
        monkeypatch.setattr(app.store.records, method, broken)
    for answer in (await http.post("/api/jobs", json={"type": "add"}), await http.get("/api/jobs")):
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "1"
        assert answer.json()["type"] == "urn:penstock:problem:store-unavailable"
    assert (await http.get("/")).status_code == 503


async def test_a_server_that_is_not_ready_says_when_to_ask_again(
    app: Penstock, http: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app.store.transfer, "marks", away)
    answer = await http.get("/readyz")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
