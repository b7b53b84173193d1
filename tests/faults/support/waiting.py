"""Waiting for a condition without holding up the event loop, which the stores need."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from penstock.model.store_errors import StoreUnavailable
from penstock.store.contract import Store

T = TypeVar("T")
STEP_SECONDS = 0.02


async def rescued(store: Store, count: int, seconds: float = 30) -> set[str]:
    """Rescue leases as they run out, until so many have; return the ids of their jobs."""
    ids: set[str] = set()

    async def ran_out() -> bool:
        ids.update(lease.id for lease in await store.upkeep.rescue())
        return len(ids) >= count

    await eventually(ran_out, seconds)
    return ids


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
