"""Asking a store that may hang: whoever asks is not kept waiting with it."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from penstock.model.errors import StoreUnavailable
from penstock.store.contract import Store

T = TypeVar("T")


async def answered(store: Store, question: Coroutine[Any, Any, T], seconds: float) -> T:
    """The answer to a short question, or StoreUnavailable when it does not come in time."""
    try:
        async with asyncio.timeout(seconds):
            return await question
    except TimeoutError:
        raise StoreUnavailable(store.url, f"no answer within {seconds:g} s") from None
