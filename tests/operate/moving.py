"""Stores that are moved, and what may go wrong meanwhile."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

from penstock.store.contract import Bookmark, Page, Part, Row, Store, Tally, Transfer

Opened = Callable[[str], Awaitable[Store]]


class Lost(Exception):
    """The connection went away."""


class Shaky:
    """A store's transfer that fails once, at a given call, before or after it is done."""

    def __init__(self, inner: Transfer, calls: list[int], *, after: bool) -> None:
        self._inner = inner
        self._calls = calls
        self._after = after

    async def _pass(self, call: Callable[[], Awaitable[Any]]) -> Any:
        self._calls[0] -= 1
        fails = self._calls[0] == 0
        if fails and not self._after:
            raise Lost
        answer = await call()
        if fails:
            raise Lost
        return answer

    async def tally(self) -> Tally:
        tally: Tally = await self._pass(self._inner.tally)
        return tally

    async def page(self, part: Part, after: str | None, limit: int) -> Page:
        page: Page = await self._pass(lambda: self._inner.page(part, after, limit))
        return page

    async def adopt(self, part: Part, rows: Sequence[Row], bookmark: Bookmark) -> bool:
        return bool(await self._pass(lambda: self._inner.adopt(part, rows, bookmark)))

    async def marks(self) -> dict[str, str]:
        marks: dict[str, str] = await self._pass(self._inner.marks)
        return marks

    async def mark(self, changes: Mapping[str, str | None]) -> None:
        await self._pass(lambda: self._inner.mark(changes))

    async def clear(self) -> None:
        await self._pass(self._inner.clear)


class Through:
    """A store with another transfer."""

    def __init__(self, store: Store, transfer: Transfer) -> None:
        self._store = store
        self.transfer = transfer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def through(store: Store, transfer: Transfer) -> Store:
    return cast("Store", Through(store, transfer))
