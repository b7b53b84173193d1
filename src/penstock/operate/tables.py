"""Rows of extensions as a whole: copied with a move, whatever the extension does with them."""

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager

from msgspec import Struct

from penstock.extension import Extension, Table, Tables
from penstock.model.clock import Clock
from penstock.model.errors import InvalidOption
from penstock.model.ids import new_id
from penstock.model.redact import without_password
from penstock.model.transfer import (
    TABLES,
    TABLES_AT,
    MoveIncomplete,
    OutboxWaiting,
    TablesStay,
    TablesUnknown,
    TargetInUse,
)
from penstock.outbox.extension import TABLES as OUTBOX
from penstock.store.contract import Store
from penstock.store.contract.tables import TableStore
from penstock.store.open import lasting_name, open_store

PAGE = 1_000
_PROBE = "probe"

Show = Callable[[str, int, int], None]
"""Hears of a table how many rows have been copied, and of how many."""


class Places(Struct, frozen=True, kw_only=True):
    """Where tables of extensions are, if not in the stores themselves, and which there may be."""

    source: str | None = None
    target: str | None = None
    known: Mapping[str, Extension] = {}


class Copying(Struct, frozen=True):
    """The tables of extensions that a move takes along, and the stores they are in.

    Those of a target with tables `beside` it are nowhere said to have been moved away.
    """

    source: Store
    target: Store
    wanted: Sequence[Tables]
    beside: bool = False

    @property
    def marks(self) -> dict[str, str]:
        """What a target says of them while it is filled, for whoever gives the move up."""
        names = " ".join(tables.extension for tables in self.wanted)
        return {TABLES: names, TABLES_AT: lasting_name(self.target.url)}

    async def refuse_taken(self, *, left: bool, replace: bool) -> None:
        """Refuse to copy over rows, but for those `left` behind by a move that is to be undone."""
        left = left and not self.beside
        if left and replace:
            return
        store = tables_in(self.target)
        for table in await _made(store, self.wanted):
            rows = await store.count(table)
            if rows:
                advice = "empty it first with --replace, or " if left else ""
                raise TargetInUse(self.target.url, [f"{rows:,} rows of {table.name}"], advice)

    async def copy(self, show: Show) -> int:
        """Copy all rows and compare them; how many."""
        stores = tables_in(self.source), tables_in(self.target)
        return await copy_tables(self.target.url, *stores, self.wanted, show)

    async def clear(self) -> None:
        """Delete what was copied."""
        await clear_tables(tables_in(self.target), self.wanted)


def tables_in(store: Store) -> TableStore:
    """The tables of a store that has a place for them."""
    if store.tables is None:
        raise TablesStay(store.url, ["extensions"])
    return store.tables


async def tables_of(
    url: str, store: TableStore | None, known: Mapping[str, Extension]
) -> list[Tables]:
    """The tables that extensions have in a store; one that is not installed here is refused."""
    if store is None:
        return []
    return [_known(url, name, known) for name in await store.versions()]


def _known(url: str, name: str, known: Mapping[str, Extension]) -> Tables:
    extension = known.get(name)
    if extension is None or extension.tables is None:
        raise TablesUnknown(without_password(url), name)
    return extension.tables


async def without_outbox(
    url: str, store: TableStore | None, found: Iterable[Tables], advice: str = ""
) -> list[Tables]:
    """All but the outbox, which is refused while jobs are in it: elsewhere nobody delivers them."""
    wanted = list(found)
    if store is None or OUTBOX not in wanted:
        return wanted
    jobs = sum([await store.count(table) for table in OUTBOX.tables])
    if jobs:
        raise OutboxWaiting(url, jobs, advice)
    return [tables for tables in wanted if tables is not OUTBOX]


async def is_same(one: Store, other: Store) -> bool:
    """Tell whether two stores are one, however their URLs are spelled."""
    mine = new_id()
    await one.transfer.mark({_PROBE: mine})
    seen = (await other.transfer.marks()).get(_PROBE)
    await one.transfer.mark({_PROBE: None})
    return seen == mine


async def forget_copied(
    target: Store, marks: Mapping[str, str], places: Places, clock: Clock | None
) -> None:
    """Delete the rows that a move which is given up has copied."""
    names = marks.get(TABLES, "").split()
    if not names:
        return
    if target.tables is None and places.target is None:
        raise TablesStay(target.url, names)
    wanted = [_known(target.url, name, places.known) for name in names]
    url = places.target or target.url
    if lasting_name(url) != marks[TABLES_AT]:
        raise InvalidOption("tables_to", without_password(url), marks[TABLES_AT])
    async with opened_beside(places.target, clock) as ours:
        await clear_tables(tables_in(ours or target), wanted)


async def clear_tables(store: TableStore, wanted: Sequence[Tables]) -> None:
    """Delete all rows of some extensions, those that may point at others first."""
    for table in reversed(await _made(store, wanted)):
        await store.delete(table)


async def _made(store: TableStore, wanted: Sequence[Tables]) -> list[Table]:
    """Those tables of some extensions that are there; a later version may make others."""
    declared = [table for tables in wanted for table in tables.tables]
    return [table for table in declared if await store.columns(table)]


@asynccontextmanager
async def opened_store(url: str, clock: Clock | None) -> AsyncGenerator[Store, None]:
    """One that is opened whatever a move has written in it."""
    store = open_store(url, clock)
    await store.open(moving=True)
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def opened_beside(url: str | None, clock: Clock | None) -> AsyncGenerator[Store | None, None]:
    """The store of tables beside one of jobs, if there is one."""
    if url is None:
        yield None
    else:
        async with opened_store(url, clock) as opened:
            yield opened


async def copy_tables(
    url: str, source: TableStore, target: TableStore, wanted: Sequence[Tables], show: Show
) -> int:
    """Copy all rows and compare them; how many. What a broken copy left is replaced."""
    copied = 0
    await clear_tables(target, wanted)
    for tables in wanted:
        await source.make(tables)
        await target.make(tables, version=(await source.versions())[tables.extension])
        for table in tables.tables:
            if not await source.columns(table):
                continue  # a version later than the source's makes it
            copied += await _copy(url, source, target, table, show)
    return copied


async def _copy(url: str, source: TableStore, target: TableStore, table: Table, show: Show) -> int:
    total, done, after = await source.count(table), 0, None
    show(table.name, 0, total)
    while rows := await source.page(table, after, PAGE):
        await target.put(table, rows)
        done += len(rows)
        after = [rows[-1][column] for column in table.key]
        show(table.name, done, total)
    compared = await _compared(source, target, table)
    if await source.digest(table, compared) != await target.digest(table, compared):
        raise MoveIncomplete(url, [f"the rows of {table.name}"])
    return done


async def _compared(source: TableStore, target: TableStore, table: Table) -> list[str]:
    """All columns, or between dialects those whose values both read alike, and the key."""
    here, there = await source.columns(table), await target.columns(table)
    if source.dialect == target.dialect:
        return list(here)
    return [
        name for name, alike in here.items() if name in table.key or (alike and there.get(name))
    ]
