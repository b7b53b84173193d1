"""Pages bounded in bytes as well as in rows: a thousand large jobs would not fit into memory."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

STEP = 50
MOST_BYTES = 16 << 20

Step = Callable[[str | None, int], Awaitable[tuple[list[T], str | None]]]


async def gathered(
    step: Step[T], before: str | None, limit: int, size_of: Callable[[T], int]
) -> tuple[list[T], str | None]:
    """Rows, a few at a time, until there are enough or they are heavy; and where to go on."""
    rows: list[T] = []
    size = 0
    while True:
        asked = min(STEP, limit - len(rows))
        found, before = await step(before, asked)
        rows += found
        size += sum(map(size_of, found))
        ended = before is None or len(found) < asked
        if ended or len(rows) == limit or size >= MOST_BYTES:
            return rows, before
