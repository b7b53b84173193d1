"""Middleware around every execution, and hooks at its turning points."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from penstock.client.context import Context

CallNext = Callable[[], Awaitable[Any]]
Middleware = Callable[[Context, CallNext], Awaitable[Any]]
Hook = Callable[..., Any]
H = TypeVar("H", bound=Hook)
M = TypeVar("M", bound=Middleware)


class Hooks:
    """What the application hangs around its jobs, in the order it was registered."""

    def __init__(self) -> None:
        self.middleware: list[Middleware] = []
        self.start: list[Hook] = []
        self.complete: list[Hook] = []
        self.failed: list[Hook] = []
        self.progress: list[Hook] = []

    def add_middleware(self, function: M) -> M:
        """Wrap every execution: `async def timed(ctx, call_next): return await call_next()`."""
        self.middleware.append(function)
        return function

    def on_start(self, hook: H) -> H:
        """Call `hook(ctx)` before a handler runs."""
        self.start.append(hook)
        return hook

    def on_complete(self, hook: H) -> H:
        """Call `hook(ctx, result)` after a handler returned a value."""
        self.complete.append(hook)
        return hook

    def on_failed(self, hook: H) -> H:
        """Call `hook(ctx, error)` after a handler raised; what becomes of the job is decided."""
        self.failed.append(hook)
        return hook

    def on_progress(self, hook: H) -> H:
        """Call `hook(ctx, percent, message)` when a handler's progress is written."""
        self.progress.append(hook)
        return hook
