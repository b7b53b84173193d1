"""A long list that is known as a whole, shown a page at a time."""

from collections.abc import Sequence
from typing import Annotated, Generic, TypeVar

from fastapi import Query
from msgspec import Struct

T = TypeVar("T")

SHOWN = 200
PageNumber = Annotated[int, Query(ge=1, le=10_000)]


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


def piece(rows: Sequence[T], number: int) -> Piece[T]:
    """One page of a list: `piece(rows, 1)` is the first."""
    start = (number - 1) * SHOWN
    return Piece(list(rows[start : start + SHOWN]), number, len(rows))
