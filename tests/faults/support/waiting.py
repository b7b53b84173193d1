"""Waiting for a condition without holding up the event loop, which the stores need."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from penstock.model.store_errors import StoreUnavailable

T = TypeVar("T")
STEP_SECONDS = 0.02


async def eventually(true: Callable[[], T | Awaitable[T]], seconds: float = 30) -> T:
    """What became true; a store that is away is asked again."""
    deadline = time.monotonic() + seconds
    found: T | None = None
    while time.monotonic() < deadline:
        try:
            answer = true()
            found = await answer if isinstance(answer, Awaitable) else answer
        except StoreUnavailable:
            found = None
        if found:
            return found
        await asyncio.sleep(STEP_SECONDS)
    raise AssertionError(f"not within {seconds} s; the last answer was {found!r}")
