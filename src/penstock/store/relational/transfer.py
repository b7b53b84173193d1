"""Moving a whole installation, in SQL: every part has one query to read it and one to write it."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from types import MappingProxyType
from typing import Any, Self, TypeVar, cast

from msgspec import DecodeError
from msgspec.json import decode, encode

from penstock.model.transfer import MOVE
from penstock.store.contract import COLUMNS, Bookmark, Page, Part, Row, Tally
from penstock.store.contract.tables import TableStore
from penstock.store.contract.transfer import AT_ONCE, PAGE_BYTES, size_of
from penstock.store.relational.changes import record_changes
from penstock.store.relational.transaction import (
    Database,
    HeldTransaction,
    StorePart,
    Transaction,
    readable,
    reads,
    writes,
)

T = TypeVar("T")
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
        Part.FOLLOWERS: ("",),
        Part.CHANGES: ("", 0),
    }
)
"""What every record of a part comes after, in the columns that its pages are ordered by."""

_LISTS = ("tags", "types", "statuses")
_FLAGS = ("enabled", "by_operator")
_BY_HAND = ("payload", "snapshot")
_LEASE = COLUMNS[Part.JOBS].index("lease_left_ms")


class RelationalTransfer(StorePart):
    """`Transfer` in SQL, and `Snapshot` when it reads what one transaction sees."""

    first = FIRST
    tables: TableStore | None = None

    def at(self, tx: Transaction) -> Self:
        """The same, of what one transaction sees."""
        held = copy(self)
        held.db = cast("Database", HeldTransaction(tx))
        return held

    @reads
    def tally(self, tx: Transaction) -> Tally:
        """Count everything."""
        statuses = tx.rows("tally_statuses")
        return Tally(
            parts={Part(name): count for name, count in tx.rows("tally_parts")},
            statuses={status: count for status, count, _, _ in statuses},
            fences=sum(int(fences) for _, _, fences, _ in statuses),
            attempts=sum(int(attempts) for _, _, _, attempts in statuses),
        )

    @reads
    def page(self, tx: Transaction, part: Part, after: str | None, limit: int) -> Page:
        """Read some records of a part, in the order of its first columns."""
        self.read_in_order(tx)
        begin = self.first[part] if after is None else tuple(decode(after))
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

    @reads
    def marks(self, tx: Transaction) -> dict[str, str]:
        """What is written here about a move."""
        return _marks(tx)

    @writes
    def adopt(self, tx: Transaction, part: Part, rows: Sequence[Row], bookmark: Bookmark) -> bool:
        """Write records as they are, and the bookmark."""
        tx.lock("move")
        known = _marks(tx)
        if known.get(MOVE) != bookmark.move or known.get(part) != bookmark.before:
            return False
        if rows:
            self.insert(tx, part, [_to_store(tx, part, row) for row in rows])
        if part is Part.METRICS:
            # All steps were folded before they were read; older ones are not whole any more.
            tx.run("remember_roll_up", (tx.now,))
        if part is Part.FOLLOWERS:
            record_changes(tx)
        _mark(tx, {part: bookmark.after})
        return True

    @writes
    def mark(self, tx: Transaction, changes: Mapping[str, str | None]) -> None:
        """Write or remove what is known about a move."""
        _mark(tx, changes)

    @writes
    def clear(self, tx: Transaction) -> None:
        """Delete everything."""
        tx.run("clear")
        record_changes(tx)
        tx.run("clear_marks")

    def read_in_order(self, tx: Transaction) -> None:
        """Have the next page read by its index, where the dialect needs to be asked."""

    def insert(self, tx: Transaction, part: Part, rows: Sequence[Values]) -> None:
        """Insert rows as the queries take them."""
        tx.many(f"adopt_{_named(part)}", (tuple(row) for row in rows))


def _marks(tx: Transaction) -> dict[str, str]:
    return dict(tx.rows("marks"))


def _mark(tx: Transaction, changes: Mapping[str, str | None]) -> None:
    for name, value in changes.items():
        if value is None:
            tx.run("drop_mark", (str(name),))
        else:
            tx.run("set_mark", (str(name), value))


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
