"""Injected resources, opened once per worker and closed when it stops.

The processes of jobs load this file, and not the rest of a worker: they start often.
"""

import asyncio
import inspect
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any

from penstock.app.arguments import Injected


class Resources:
    """Opens what handlers ask for, at the first request."""

    def __init__(self) -> None:
        self._stack = AsyncExitStack()
        self._opened: dict[Callable[[], Any], Any] = {}
        self._opening = asyncio.Lock()

    async def fill(self, wanted: Mapping[str, Injected]) -> dict[str, Any]:
        """The values for a handler's injected parameters."""
        return {name: await self._get(injected.provider) for name, injected in wanted.items()}

    async def close(self) -> None:
        """Close everything, the latest first."""
        await self._stack.aclose()
        self._opened.clear()

    async def _get(self, provider: Callable[[], Any]) -> Any:
        async with self._opening:
            if provider not in self._opened:
                self._opened[provider] = await self._open(provider)
            return self._opened[provider]

    async def _open(self, provider: Callable[[], Any]) -> Any:
        if inspect.isasyncgenfunction(provider):
            return await self._stack.enter_async_context(asynccontextmanager(provider)())
        if inspect.isgeneratorfunction(provider):
            return self._stack.enter_context(contextmanager(provider)())
        manager = provider()
        if hasattr(manager, "__aenter__"):
            return await self._stack.enter_async_context(manager)
        return self._stack.enter_context(manager)
