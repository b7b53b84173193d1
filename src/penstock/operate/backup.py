"""Copying an installation into one file while it runs, and filling a store from such a copy.

The file is a SQLite store whatever it was copied from: it can be looked at, opened, and restored
into a store of any kind.
"""

import asyncio
import re
from collections.abc import Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from urllib.parse import quote

from penstock.extension import Extension
from penstock.model.clock import Clock
from penstock.model.ids import new_id
from penstock.model.transfer import (
    CAME_BY,
    DONE,
    MOVE,
    MOVED_TO,
    CopyIncomplete,
    TablesStay,
    refuse_half,
)
from penstock.operate.move import PAGE, Mover, Show, differences, silently
from penstock.operate.tables import (
    Copying,
    copy_tables,
    opened_beside,
    tables_of,
    without_outbox,
)
from penstock.store.contract import Bookmark, Part, Snapshot, Store, Tally
from penstock.store.open import lasting_name, open_store
from penstock.store.sqlite.backup import copy_file, forget_the_day, new_file, restore_file, seal
from penstock.store.sqlite.store import SqliteStore

_ELSEWHERE = "restore it where an outbox is used, a Redis store with the setting tables"
_SETTING = "the setting tables"
_DATED = re.compile(r"penstock-\d{8}T\d{6}Z\.db")


async def backup(
    store: Store,
    target: Path,
    *,
    beside: Store | None = None,
    extensions: Mapping[str, Extension] = MappingProxyType({}),
    show: Show | None = None,
    clock: Clock | None = None,
) -> int:
    """Copy an open store as it is at one moment into a new file; return the number of jobs in it.

    What is committed while the copy is made is not in it. A SQLite store is copied page by page,
    with the tables that its application may keep in the same file; from another one the tables of
    `extensions` are copied, and those of one that is not among them refuse the copy. A store that
    has no tables may have one `beside` it that does.
    """
    if isinstance(store, SqliteStore):
        return await asyncio.to_thread(copy_file, store.path, target)
    if MOVED_TO not in await store.transfer.marks():
        # Steps that were folded are whole in the copy, too.
        await store.metrics.roll_up()
    with new_file(target) as part:
        copy = SqliteStore(lasting_name(store.url), part, clock)
        await copy.open(moving=True)
        try:
            async with AsyncExitStack() as held:
                # Tables first: a job that leaves the outbox in between is in both, not in neither.
                theirs = await held.enter_async_context((beside or store).snapshot())
                moment = theirs
                if beside is not None:
                    moment = await held.enter_async_context(store.snapshot())
                tables = theirs.tables
                wanted = await tables_of((beside or store).url, tables, extensions)
                tally = await _copy(moment, copy, show or silently)
                if tables is not None:
                    where = tables, copy.tables
                    await copy_tables(str(target), *where, wanted, show or silently)
            differing = differences(tally, await copy.transfer.tally())
        finally:
            await copy.close()
        if differing:
            raise CopyIncomplete(str(target), differing)
        return await asyncio.to_thread(seal, part, target)


def dated(folder: Path, now: int) -> Path:
    """Return the name of a copy that is made now: `penstock-20260131T040000Z.db`."""
    moment = datetime.fromtimestamp(now / 1000, UTC)
    return folder / f"penstock-{moment:%Y%m%dT%H%M%SZ}.db"


def delete_old(folder: Path, keep: int) -> list[Path]:
    """Delete all but the newest copies that have a dated name; return those that went."""
    copies = sorted(file for file in folder.iterdir() if _DATED.fullmatch(file.name))
    old = copies[:-keep]
    for file in old:
        file.unlink()
    return old


async def restore(
    copy: Path,
    url: str,
    *,
    tables: str | None = None,
    extensions: Mapping[str, Extension] = MappingProxyType({}),
    show: Show | None = None,
    clock: Clock | None = None,
) -> int:
    """Put a copy in the place of a SQLite file, or into an empty store of another kind.

    The copy is verified first, and stays as it is. Interrupted, run it again and it goes on. Where
    the store has no tables, those of extensions go into the one that `tables` names.
    Return the number of jobs.
    """
    target = open_store(url, clock)
    if isinstance(target, SqliteStore):
        return await asyncio.to_thread(restore_file, copy, target.path)
    with TemporaryDirectory(prefix="penstock-") as folder:
        twin = Path(folder) / "copy.db"
        jobs = await asyncio.to_thread(copy_file, copy, twin)
        await asyncio.to_thread(forget_the_day, twin)
        source = SqliteStore(lasting_name(f"sqlite:///{quote(str(copy))}"), twin, clock)
        await source.open(moving=True)
        try:
            wanted = await tables_of(source.url, source.tables, extensions)
            beside = tables if target.tables is None else None
            if beside is None:
                wanted = await without_outbox(source.url, source.tables, wanted, _ELSEWHERE)
            if wanted and beside is None and target.tables is None:
                raise TablesStay(target.url, [each.extension for each in wanted], _SETTING)
            await target.open(moving=True)
            async with opened_beside(beside, clock) as ours:
                mover = Mover(source, target, keep=True, replace=True, show=show)
                if wanted:
                    taking = ours or target
                    mover.tables = Copying(source, taking, wanted, beside=ours is not None)
                await mover.run()
        finally:
            await target.close()
            await source.close()
    return jobs


async def _copy(moment: Snapshot, copy: SqliteStore, show: Show) -> Tally:
    """Write everything into the copy; return what there was to write."""
    marks = await moment.marks()
    refuse_half(copy.url, marks)
    tally = await moment.tally()
    copying = new_id()
    await copy.transfer.mark({MOVE: copying})
    for part in Part:
        before: str | None = None
        done, total = 0, tally.parts[part]
        while before != DONE:
            page = await moment.page(part, before, PAGE)
            after = page.after or DONE
            await copy.transfer.adopt(part, page.rows, Bookmark(copying, before, after))
            before, done = after, done + len(page.rows)
            show(part, min(done, total), total)
    forgotten = dict.fromkeys(await copy.transfer.marks())
    kept = {name: marks[name] for name in (MOVE, MOVED_TO, CAME_BY) if name in marks}
    await copy.transfer.mark({**forgotten, **kept})
    return tally
