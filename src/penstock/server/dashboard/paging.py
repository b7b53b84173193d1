"""A long list that is known as a whole, shown a page at a time."""

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Generic, TypeVar

from fastapi import Query
from msgspec import Struct

T = TypeVar("T")

SHOWN = 100
PageNumber = Annotated[int, Query(ge=1, le=10_000)]
Find = Annotated[str, Query(max_length=200)]
"""A part of the names that are looked for; upper and lower case are the same."""


class Piece(Struct, Generic[T], frozen=True):
    """The rows of one page, which page it is, and how many rows there are in all."""

    rows: list[T]
    number: int
    of: int

    @property
    def following(self) -> int | None:
        """The number of the next page, if there is one."""
        return self.number + 1 if self.number * SHOWN < self.of else None

    @property
    def before(self) -> int | None:
        """The number of the page before, if there is one."""
        return self.number - 1 if self.number > 1 else None


def named(find: str, rows: Iterable[T], name: Callable[[T], str]) -> list[T]:
    """Those rows with a name that has the part in it."""
    part = find.strip().casefold()
    return [row for row in rows if part in name(row).casefold()]


def piece(rows: Sequence[T], number: int) -> Piece[T]:
    """One page of a list: `piece(rows, 1)` is the first."""
    start = (number - 1) * SHOWN
    return Piece(list(rows[start : start + SHOWN]), number, len(rows))
