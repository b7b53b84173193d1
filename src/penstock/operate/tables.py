"""Rows of extensions as a whole: copied with a move, whatever the extension does with them."""

from collections.abc import Callable, Mapping, Sequence

from penstock.extension import Extension, Table, Tables
from penstock.model.redact import without_password
from penstock.model.transfer import MoveIncomplete, TablesUnknown, TargetInUse
from penstock.store.contract.tables import TableStore

PAGE = 1_000

Show = Callable[[str, int, int], None]
"""Hears of a table how many rows have been copied, and of how many."""


async def tables_of(
    url: str, store: TableStore | None, known: Mapping[str, Extension]
) -> list[Tables]:
    """The tables that extensions have in a store; one that is not installed here is refused."""
    if store is None:
        return []
    found = []
    for name in await store.versions():
        extension = known.get(name)
        if extension is None or extension.tables is None:
            raise TablesUnknown(without_password(url), name)
        found.append(extension.tables)
    return found


async def refuse_taken(url: str, target: TableStore, wanted: Sequence[Tables]) -> None:
    """Refuse to copy over rows that are there already."""
    there = await target.versions()
    for tables in wanted:
        for table in tables.tables if tables.extension in there else ():
            rows = await target.count(table)
            if rows:
                raise TargetInUse(url, [f"{rows:,} rows of {table.name}"])


async def copy_tables(
    url: str, source: TableStore, target: TableStore, wanted: Sequence[Tables], show: Show
) -> int:
    """Copy all rows and compare them; how many. What a broken copy left is replaced."""
    copied = 0
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
    await target.delete(table)
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
