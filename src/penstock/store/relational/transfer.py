"""Moving a whole installation, in SQL: every part has one query to read it and one to write it.

Both are made from the columns that the contract lists.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from types import MappingProxyType
from typing import Any, NamedTuple, Self, TypeVar, cast

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


class Place(NamedTuple):
    """Where a part is kept: its table, and what its pages are ordered by.

    Every record comes after `begin` in that order.
    """

    table: str
    order: tuple[str, ...]
    begin: tuple[str | int, ...]


PLACES: Mapping[Part, Place] = MappingProxyType(
    {
        Part.JOBS: Place("jobs", ("seq",), (0,)),
        Part.EXECUTIONS: Place("job_executions", ("job_id", "fence"), ("", 0)),
        Part.LOGS: Place("job_logs", ("seq",), (0,)),
        Part.DEAD_LETTERS: Place("dead_letter_jobs", ("seq",), (0,)),
        Part.KEYS: Place("job_keys", ("tenant_id", "type", "key"), ("", "", "")),
        Part.DEPENDENCIES: Place(
            "job_dependencies", ("child_id", "parent_id", "kind", "argument"), ("", "", "", "")
        ),
        Part.LINES: Place("order_lines", ("last_id",), ("",)),
        Part.SCHEDULES: Place("job_schedules", ("id",), ("",)),
        Part.PAUSES: Place("pauses", ("scope", "name"), ("", "")),
        Part.LIMITS: Place("limits", ("scope", "name", "kind"), ("", "", "")),
        Part.RATES: Place("rate_starts", ("scope", "name"), ("", "")),
        Part.BREAKERS: Place("breakers", ("name",), ("",)),
        Part.METRICS: Place(
            "metrics",
            ("resolution_ms", "bucket", "type", "queue", "name"),
            (1, 0, "", "", ""),  # not the sum, which the target makes anew
        ),
        Part.RECORDS: Place("records", ("kind", "name"), ("", "")),
        Part.AUDIT: Place("audit_log", ("seq",), (0,)),
        Part.FOLLOWERS: Place("followers", ("name",), ("",)),
        Part.CHANGES: Place("job_changes", ("follower", "seq"), ("", 0)),
    }
)

_RENAMED = {
    (Part.JOBS, "lease_left_ms"): "lease_until",
    (Part.SCHEDULES, "payload"): "payload_template",
}
_LISTS = ("tags", "types", "statuses")
_FLAGS = ("enabled", "by_operator")
_BY_HAND = ("payload", "snapshot")
_LEASE = COLUMNS[Part.JOBS].index("lease_left_ms")


def columns_of(part: Part) -> list[str]:
    """The columns of a part as its table names them."""
    return [_RENAMED.get((part, name), name) for name in COLUMNS[part]]


class RelationalTransfer(StorePart, ABC):
    """`Transfer` in SQL, and `Snapshot` when it reads what one transaction sees."""

    places = PLACES
    tables: TableStore | None = None

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._made: dict[tuple[str, Part], Any] = {}

    @abstractmethod
    def page_query(self, tx: Transaction, part: Part) -> Any:
        """A query for the next records: the columns of the order, then those of the part."""

    @abstractmethod
    def adopt_query(self, tx: Transaction, part: Part) -> Any:
        """A query that writes records, and leaves out those that are there."""

    def query(self, tx: Transaction, what: str, part: Part) -> Transaction:
        """The transaction with one of these queries, made when it is first needed, as `one`."""
        made = self._made.get((what, part))
        if made is None:
            make = self.page_query if what == "page" else self.adopt_query
            made = self._made[what, part] = make(tx, part)
        return tx.using({"one": made})

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
        begin = self.places[part].begin if after is None else tuple(decode(after))
        width, size = len(begin), 0
        rows: list[Row] = []
        while len(rows) < limit and size < PAGE_BYTES:
            wanted = min(AT_ONCE, limit - len(rows))
            found = self.query(tx, "page", part).rows("one", (*begin, wanted))
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
        self.query(tx, "adopt", part).many("one", (tuple(row) for row in rows))


def _marks(tx: Transaction) -> dict[str, str]:
    return dict(tx.rows("marks"))


def _mark(tx: Transaction, changes: Mapping[str, str | None]) -> None:
    for name, value in changes.items():
        if value is None:
            tx.run("drop_mark", (str(name),))
        else:
            tx.run("set_mark", (str(name), value))


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
