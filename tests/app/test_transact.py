"""A unit of work: rows of an extension and jobs in one commit, on every store."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from examples.links import check, extension
from penstock import Penstock, Settings
from penstock.model.errors import InvalidOption, NoTables, QueueFull
from penstock.model.states import Status
from penstock.outbox.extension import TABLES, deliver
from penstock.store.contract import Retention
from penstock.testing import FakeClock
from tests.support.places import Place

URL = "http://127.0.0.1:1/"


@pytest.fixture
async def app(place: Place, clock: FakeClock, tmp_path: Path) -> AsyncIterator[Penstock]:
    """One with tables: its own, or beside a store that has none."""
    beside = f"sqlite:///{tmp_path}/tables.db" if "redis" in place.url else None
    settings = Settings(**place.settings, tables=beside)
    async with Penstock(settings=settings, extensions=[extension], clock=clock) as opened:
        yield opened


def add(tx: Any, url: str = URL) -> Any:
    tx.links.run("add", ("", url, "ada"))
    return tx.enqueue(check.new("", url))


async def links(app: Penstock) -> list[tuple[Any, ...]]:
    return await app.read(lambda tx: tx.links.rows("all", {"tenant": None}))


async def test_rows_and_jobs_are_written_together(app: Penstock) -> None:
    handle = await app.transact(add)
    assert (await app.get(handle.id)).type == "links.check"
    assert [row[0] for row in await links(app)] == [URL]


async def test_what_fails_leaves_neither_row_nor_job(app: Penstock) -> None:
    ids: list[str] = []

    def work(tx: Any) -> None:
        ids.append(add(tx).id)
        raise LookupError("no")

    with pytest.raises(LookupError):
        await app.transact(work)
    assert not await links(app)
    assert not await app.store.reader.get(ids)
    if app.beside is not None:
        await deliver(app)
        assert not await app.store.reader.get(ids)


async def test_many_units_of_work_at_once_are_all_done(app: Penstock) -> None:
    urls = [f"{URL}{number}" for number in range(40)]
    await asyncio.gather(*(app.transact(lambda tx, url=url: add(tx, url)) for url in urls))  # type: ignore[misc]
    assert len(await links(app)) == 40
    assert len(await app.find(limit=100)) == 40


async def test_a_unit_of_work_that_awaits_is_refused(app: Penstock) -> None:
    async def work(tx: Any) -> None:
        add(tx)

    with pytest.raises(InvalidOption, match="a plain function"):
        await app.transact(work)
    assert not await links(app)


async def test_tables_are_made_at_first_use_and_not_before(app: Penstock) -> None:
    store = app.table_store("links")
    assert "links" not in await store.versions()
    await app.transact(add)
    assert (await store.versions())["links"] == 1


def empty(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()


async def test_tables_are_made_anew_in_a_file_that_was_deleted(tmp_path: Path) -> None:
    app = Penstock(f"sqlite:///{tmp_path}/work.db", extensions=[extension])
    for _ in range(2):
        async with app:
            await app.transact(add)
            assert len(await links(app)) == 1
        empty(tmp_path)


async def test_a_full_queue_refuses_the_whole_unit_of_work(app: Penstock) -> None:
    await app.controls.set_limit(queue="links", depth=1)
    await app.transact(add)
    app.admission.forget()
    with pytest.raises(QueueFull):
        await app.transact(lambda tx: add(tx, URL + "b"))
    assert len(await links(app)) == 1


async def test_a_store_without_tables_says_where_they_could_be(valkey_url: str) -> None:
    async with Penstock(valkey_url, extensions=[extension]) as app:
        with pytest.raises(NoTables, match="tables="):
            await app.transact(add)


async def test_a_kill_between_delivery_and_its_confirmation_enqueues_once(
    valkey_url: str, tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(url=valkey_url, tables=f"sqlite:///{tmp_path}/tables.db")
    async with Penstock(settings=settings, extensions=[extension], clock=clock) as app:
        store = app.table_store("outbox")
        await store.make(TABLES)
        write = store.write

        async def killed(work: Any) -> Any:
            if work.__name__ == "confirm":
                raise KeyboardInterrupt
            return await write(work)

        monkeypatch.setattr(store, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            await app.transact(add)
        [job] = await app.find(limit=10)
        await app.cancel(job.id)
        retention = Retention(keep_ms={Status.CANCELLED: 0})
        clock.advance(1)
        assert (await app.store.upkeep.prune(retention)).jobs == 1
        monkeypatch.undo()
        assert await deliver(app) == 1
        assert not await app.find(limit=10)
        assert await deliver(app) == 0
