"""Tabs hear of changes, all of them through one subscription to the store."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from penstock import Penstock
from penstock.model.store_errors import StoreError
from penstock.server import streams as live_module
from penstock.server.streams import CHANGED, RETRY, Live
from penstock.store.contract import Subscription


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_module, "PAUSE_SECONDS", 0.0)


async def add(app: Penstock) -> None:
    await app.enqueue_payload("add", '{"a": 1}')


async def test_one_subscription_serves_all_tabs(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscribed: list[Subscription] = []
    subscribe = app.store.subscribe

    def counted() -> Subscription:
        subscribed.append(subscribe())
        return subscribed[-1]

    monkeypatch.setattr(app.store, "subscribe", counted)
    live = Live(app.store)
    async with app, asyncio.timeout(10):
        tabs = [live.events() for _ in range(5)]
        assert [await anext(tab) for tab in tabs] == [RETRY] * 5
        waiting = [asyncio.ensure_future(anext(tab)) for tab in tabs]
        await asyncio.sleep(0)
        await add(app)
        assert set(await asyncio.gather(*waiting)) == {CHANGED}
        assert (len(subscribed), live.tabs) == (1, 5)
        for tab in tabs:
            await tab.aclose()
        assert live.tabs == 0


@pytest.mark.parametrize("error", [StoreError("sqlite", "is away"), ValueError("a mistake")])
async def test_a_store_that_is_away_for_a_moment_ends_no_tab(
    app: Penstock, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    back = asyncio.Event()
    monkeypatch.setattr(app.store, "subscribe", failing(app.store.subscribe, error, back))
    tab = Live(app.store).events()
    async with app, asyncio.timeout(10):
        assert await anext(tab) == RETRY
        waiting = asyncio.ensure_future(anext(tab))
        await back.wait()
        await add(app)
        assert await waiting == CHANGED
        await tab.aclose()


def failing(
    subscribe: Callable[[], Any], error: Exception, back: asyncio.Event
) -> Callable[[], Any]:
    """Fails twice, then subscribes."""
    left = [error, error]

    def answer() -> Any:
        if left:
            raise left.pop()
        back.set()
        return subscribe()

    return answer


async def test_nobody_listens_to_the_store_for_tabs_that_are_closed(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = asyncio.Event()

    class Silent:
        async def wait(self, timeout: float) -> bool:
            await asyncio.Event().wait()
            return False

        def close(self) -> None:
            closed.set()

    monkeypatch.setattr(app.store, "subscribe", Silent)
    live = Live(app.store)
    for _ in range(2):
        closed.clear()
        tab = live.events()
        await anext(tab)
        await asyncio.sleep(0)
        await tab.aclose()
        async with asyncio.timeout(10):
            await closed.wait()
        assert live.tabs == 0
