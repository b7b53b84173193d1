"""Requeueing many jobs, where one that is refused must not stop the others."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from penstock.model.errors import PenstockError, StoreError

if TYPE_CHECKING:
    from penstock.store.contract import Store

PAGE = 1_000

Progress = Callable[[int, int], None]
"""Called with how many of how many are through."""


class Requeued(Struct, frozen=True):
    """The ids that run again, and why the others do not."""

    done: list[str]
    refused: dict[str, str]


async def requeue_all(
    store: "Store",
    ids: Sequence[str],
    *,
    spread_ms: float = 0,
    progress: Progress | None = None,
) -> Requeued:
    """Requeue in pages, each of them atomic, every job due `spread_ms` after the one before."""
    answer = Requeued([], {})
    for start in range(0, len(ids), PAGE):
        page = ids[start : start + PAGE]
        await _requeue(store, page, start * spread_ms, spread_ms, answer)
        if progress is not None:
            progress(start + len(page), len(ids))
    return answer


async def _requeue(
    store: "Store", ids: Sequence[str], delay_ms: float, spread_ms: float, answer: Requeued
) -> None:
    """Requeue all; where one is refused, each half by itself, down to that one."""
    try:
        answer.done.extend(await store.jobs.requeue(ids, spread_ms=spread_ms, delay_ms=delay_ms))
    except StoreError:
        raise
    except PenstockError as error:
        if len(ids) == 1:
            answer.refused[ids[0]] = str(error)
            return
        half = len(ids) // 2
        await _requeue(store, ids[:half], delay_ms, spread_ms, answer)
        await _requeue(store, ids[half:], delay_ms + half * spread_ms, spread_ms, answer)
