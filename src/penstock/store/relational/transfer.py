"""Moving a whole installation, in SQL: every part has one query to read it and one to write it."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from msgspec import DecodeError
from msgspec.json import decode, encode

from penstock.model.transfer import MOVE
from penstock.store.contract import COLUMNS, Bookmark, Page, Part, Row, Tally
from penstock.store.contract.transfer import AT_ONCE, PAGE_BYTES, size_of
from penstock.store.relational.transaction import Database, Transaction, readable

Values = list[Any]

FIRST: Mapping[Part, tuple[str | int, ...]] = MappingProxyType(
    {
        Part.JOBS: (0,),
        Part.EXECUTIONS: ("", 0),
        Part.LOGS: (0,),
        Part.DEAD_LETTERS: (0,),
        Part.KEYS: ("", "", ""),
        Part.DEPENDENCIES: ("", "", "", ""),
        Part.LINES: ("",),
        Part.SCHEDULES: ("",),
        Part.PAUSES: ("", ""),
        Part.LIMITS: ("", "", ""),
        Part.RATES: ("", ""),
        Part.BREAKERS: ("",),
        Part.METRICS: (1, 0, "", "", ""),  # not the sum, which the target makes anew
        Part.RECORDS: ("", ""),
        Part.AUDIT: (0,),
    }
)
"""What every record of a part comes after, in the columns that its pages are ordered by."""

_LISTS = ("tags", "types")
_FLAGS = ("enabled", "by_operator")
_BY_HAND = ("payload", "snapshot")
_LEASE = COLUMNS[Part.JOBS].index("lease_left_ms")


class RelationalTransfer:
    """`Transfer` in SQL."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def tally(self) -> Tally:
        """Count everything."""
        return await self._db.read(self.tally_in)

    async def page(self, part: Part, after: str | None, limit: int) -> Page:
        """Read some records of a part."""
        return await self._db.read(lambda tx: self.page_in(tx, part, after, limit))

    async def adopt(self, part: Part, rows: Sequence[Row], bookmark: Bookmark) -> bool:
        """Write records as they are, and the bookmark."""
        return await self._db.write(lambda tx: self._adopt(tx, part, rows, bookmark))

    async def marks(self) -> dict[str, str]:
        """What is written here about a move."""
        return await self._db.read(marks)

    async def mark(self, changes: Mapping[str, str | None]) -> None:
        """Write or remove some of it."""
        await self._db.write(lambda tx: mark(tx, changes))

    async def clear(self) -> None:
        """Delete everything."""
        await self._db.write(clear)

    def tally_in(self, tx: Transaction) -> Tally:
        """Count everything that a transaction sees."""
        return tally(tx)

    def page_in(self, tx: Transaction, part: Part, after: str | None, limit: int) -> Page:
        """Read some records that a transaction sees."""
        return page(tx, part, after, limit)

    def insert(self, tx: Transaction, part: Part, rows: Sequence[Values]) -> None:
        """Insert rows as the queries take them."""
        tx.many(f"adopt_{_named(part)}", (tuple(row) for row in rows))

    def _adopt(self, tx: Transaction, part: Part, rows: Sequence[Row], bookmark: Bookmark) -> bool:
        tx.lock("move")
        known = marks(tx)
        if known.get(MOVE) != bookmark.move or known.get(part) != bookmark.before:
            return False
        if rows:
            self.insert(tx, part, [_to_store(tx, part, row) for row in rows])
        if part is Part.METRICS:
            # All steps were folded before they were read; older ones are not whole any more.
            tx.run("remember_roll_up", (tx.now,))
        mark(tx, {part: bookmark.after})
        return True


class RelationalSnapshot:
    """`Snapshot` of what one transaction sees, which stays open for as long as it is read."""

    def __init__(self, transfer: RelationalTransfer, tx: Transaction) -> None:
        self._transfer = transfer
        self._tx = tx

    async def tally(self) -> Tally:
        """Count everything."""
        return await asyncio.to_thread(self._transfer.tally_in, self._tx)

    async def page(self, part: Part, after: str | None, limit: int) -> Page:
        """Read some records of a part."""
        return await asyncio.to_thread(self._transfer.page_in, self._tx, part, after, limit)

    async def marks(self) -> dict[str, str]:
        """What is written here about a move."""
        return await asyncio.to_thread(marks, self._tx)


def tally(tx: Transaction) -> Tally:
    """Count everything."""
    statuses = tx.rows("tally_statuses")
    return Tally(
        parts={Part(name): count for name, count in tx.rows("tally_parts")},
        statuses={status: count for status, count, _, _ in statuses},
        fences=sum(int(fences) for _, _, fences, _ in statuses),
        attempts=sum(int(attempts) for _, _, _, attempts in statuses),
    )


def page(
    tx: Transaction,
    part: Part,
    after: str | None,
    limit: int,
    first: Mapping[Part, tuple[str | int, ...]] = FIRST,
) -> Page:
    """Some records of a part, in the order of its first columns."""
    begin = first[part] if after is None else tuple(decode(after))
    width, size = len(begin), 0
    rows: list[Row] = []
    while len(rows) < limit and size < PAGE_BYTES:
        wanted = min(AT_ONCE, limit - len(rows))
        found = tx.rows(f"page_{_named(part)}", (*begin, wanted))
        read = [_from_store(tx, part, row[width:]) for row in found]
        rows += read
        if len(found) < wanted:
            return Page(rows, None)
        begin = found[-1][:width]
        size += size_of(read)
    return Page(rows, encode(begin).decode())


def marks(tx: Transaction) -> dict[str, str]:
    """What is written about a move."""
    return dict(tx.rows("marks"))


def mark(tx: Transaction, changes: Mapping[str, str | None]) -> None:
    """Write or remove some of it."""
    for name, value in changes.items():
        if value is None:
            tx.run("drop_mark", (str(name),))
        else:
            tx.run("set_mark", (str(name), value))


def clear(tx: Transaction) -> None:
    """Delete everything."""
    tx.run("clear")
    tx.run("clear_marks")


def _named(part: Part) -> str:
    return part.replace(" ", "_")


def _from_store(tx: Transaction, part: Part, stored: tuple[Any, ...]) -> Row:
    row = list(stored)
    for place, read in _READ[part]:
        if row[place] is not None:
            row[place] = read(row[place])
    if part is Part.JOBS and row[_LEASE] is not None:
        row[_LEASE] -= tx.monotonic
    return tuple(row)


def _to_store(tx: Transaction, part: Part, given: Row) -> Values:
    row = list(given)
    for place in _LISTED[part]:
        if row[place] is not None:
            row[place] = tx.listed(row[place])
    if part is Part.JOBS and row[_LEASE] is not None:
        row[_LEASE] += tx.monotonic
    return row


def _list(stored: str) -> list[str]:
    try:
        return decode(stored, type=list[str])
    except DecodeError:  # edited by hand
        return [stored]


_READERS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(_LISTS, _list),
    **dict.fromkeys(_FLAGS, bool),
    **dict.fromkeys(_BY_HAND, readable),
}
_READ = {
    part: [(place, _READERS[name]) for place, name in enumerate(names) if name in _READERS]
    for part, names in COLUMNS.items()
}
_LISTED = {
    part: [place for place, name in enumerate(names) if name in _LISTS]
    for part, names in COLUMNS.items()
}
