"""What a page asks of the store: a handful of questions, however much there is to show."""

from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from typing import Any

import pytest
from fastapi import FastAPI

from penstock import Penstock
from penstock.server.access.identity import Scope
from penstock.store.contract import Store
from tests.server.dashboard.conftest import Browser
from tests.server.dashboard.furnish import furnish
from tests.server.dashboard.test_walk import pages

PARTS = (
    "audit",
    "controls",
    "dead",
    "jobs",
    "metrics",
    "reader",
    "records",
    "schedules",
    "workers",
)
WHO_ASKS = 2
"""The session and its user."""

MOST = 10
DONE_FOR_ALL = {"roll_up"}
"""What the first page of a minute does, whichever it is."""


@pytest.fixture(autouse=True)
def _one_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    """All pages share one look at the store, however slowly they come."""
    monkeypatch.setattr("penstock.server.state.SUMMARY_SECONDS", 3_600.0)


@pytest.fixture
def asked(app: Penstock, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is asked of the store from now on."""
    return counted(app.store, monkeypatch)


def counted(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the questions, one for each time it is put."""
    calls: list[str] = []

    def noted(name: str, method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def call(*positional: Any, **named: Any) -> Any:
            calls.append(name)
            return await method(*positional, **named)

        return call

    for part_name in PARTS:
        part = getattr(store, part_name)
        for name in dir(part):
            method: Any = getattr(part, name)
            if (
                not name.startswith("_")
                and name not in DONE_FOR_ALL
                and iscoroutinefunction(method)
            ):
                monkeypatch.setattr(part, name, noted(f"{part_name}.{name}", method))
    return calls


async def test_a_page_asks_a_handful_of_questions_and_looks_its_group_up_once(
    log_in: Any, app: Penstock, server: FastAPI, asked: list[str]
) -> None:
    have = await furnish(app, server, "calls")
    admin: Browser = await log_in(Scope.ADMIN)
    await admin.text("")
    excess: dict[str, list[str]] = {}
    for route, address in pages(have).items():
        asked.clear()
        await admin.open(address)
        again = [call for call in asked if asked.count(call) > 2 and "records." not in call]
        if len(asked) > WHO_ASKS + MOST or again or asked.count("dead.groups") > 1:
            excess[route] = sorted(asked)
    assert excess == {}
