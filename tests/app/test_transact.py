"""A unit of work: rows of an extension and jobs in one commit, on every store."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from examples.links import check, extension
from penstock import Penstock, Settings
from penstock.model.errors import InvalidOption, QueueFull
from penstock.model.states import Status
from penstock.model.store_errors import NoTables, StoreError, StoreUnavailable
from penstock.outbox.extension import TABLES, deliver, ls
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


async def add_one_by_one(app: Penstock, count: int) -> None:
    for number in range(count):
        await app.transact(lambda tx, url=f"{URL}{number}": add(tx, url))  # type: ignore[misc]


async def test_jobs_of_transactions_count_against_the_limit_of_their_queue(
    place: Place, tmp_path: Path
) -> None:
    beside = f"sqlite:///{tmp_path}/tables.db" if "redis" in place.url else None
    settings = Settings(**place.settings, tables=beside, queue_limit=10)
    async with Penstock(settings=settings, extensions=[extension]) as app:
        with pytest.raises(QueueFull):
            await add_one_by_one(app, 20)
        assert len(await links(app)) == 10


@pytest.mark.parametrize("ask", [Penstock.transact, Penstock.read])
async def test_what_would_go_on_after_its_transaction_is_refused(app: Penstock, ask: Any) -> None:
    async def later(tx: Any) -> None: ...

    for work in (later, lambda tx: (tx.links.rows("states") for _ in range(3))):
        with pytest.raises(InvalidOption, match="a plain function"):
            await ask(app, work)


async def test_a_place_for_tables_that_is_none_is_refused_before_anything_is_opened(
    place: Place, valkey_url: str
) -> None:
    app = Penstock(settings=Settings(**place.settings, tables=valkey_url))
    with pytest.raises(InvalidOption, match="'tables'"):
        await app.open()
    with pytest.raises(StoreError):
        await app.store.jobs.depth("default", 1)


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


@pytest.fixture
async def beside(valkey_url: str, tmp_path: Path, clock: FakeClock) -> AsyncIterator[Penstock]:
    """An application whose jobs live on Redis, and its tables elsewhere."""
    settings = Settings(url=valkey_url, tables=f"sqlite:///{tmp_path}/tables.db")
    async with Penstock(settings=settings, extensions=[extension], clock=clock) as opened:
        yield opened


async def test_work_that_is_committed_does_not_fail_because_its_jobs_are_delivered_later(
    beside: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> None:
        raise StoreUnavailable("redis", "gone")

    monkeypatch.setattr(beside.store.inbox, "deliver", away)
    handle = await beside.transact(add)
    monkeypatch.undo()
    assert not await beside.store.reader.get([handle.id])
    assert [each.id for each in await ls(beside)] == [handle.id]
    monkeypatch.setattr(beside.store.inbox, "confirm", away)
    other = await beside.transact(lambda tx: add(tx, URL + "b"))
    monkeypatch.undo()
    assert await deliver(beside) == 1
    assert len(await beside.store.reader.get([handle.id, other.id])) == 2


async def test_a_store_that_does_not_answer_is_asked_once(
    beside: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0

    async def away(*_: object) -> None:
        nonlocal asked
        asked += 1
        raise StoreUnavailable("redis", "gone")

    monkeypatch.setattr(beside.store.inbox, "deliver", away)
    calls = [check.new("", f"{URL}{number}") for number in range(250)]
    await beside.transact(lambda tx: tx.enqueue_many(calls))
    asked = 0
    assert await deliver(beside) == 0
    assert asked == 1


async def test_a_delivery_that_comes_late_finds_the_job_remembered(
    beside: Penstock, clock: FakeClock
) -> None:
    inbox = beside.store.inbox
    assert inbox is not None
    job = check.new("", URL).job
    assert (await inbox.deliver(job)).created
    await inbox.confirm([job.id])
    await beside.cancel(job.id)
    clock.advance(1)
    await beside.store.upkeep.prune(Retention(keep_ms={Status.CANCELLED: 0}))
    assert not (await inbox.deliver(job)).created
    assert not await beside.store.reader.get([job.id])
    clock.advance(seconds=86_401)
    await inbox.confirm([])
    await inbox.confirm([check.new("", URL).job.id])
    assert (await inbox.deliver(job)).created


async def test_a_job_that_is_refused_stays_in_the_outbox_and_is_told_of(beside: Penstock) -> None:
    from penstock.outbox.extension import concerns, drop

    nobody = "01JD3Z6K3V9M0Q2T4W6Y8A0C2E"
    handle = await beside.transact(lambda tx: tx.enqueue(check.options(after=nobody).new("", URL)))
    [waiting] = await ls(beside)
    assert waiting.id == handle.id
    assert nobody in (waiting.error or "")
    [concern] = await concerns(beside)
    assert concern.title == "Outbox"
    assert "Dropped" in await drop(beside, handle.id)
    assert await ls(beside) == []
    assert await concerns(beside) == []


async def test_a_call_past_the_unit_of_work_is_refused_and_hangs_nobody(app: Penstock) -> None:
    handle = await app.transact(lambda tx: tx.enqueue(check.new("", URL)))
    for call in (
        lambda: app.sync.enqueue(check.new("", URL)),
        lambda: app.sync.cancel(handle.id),
        lambda: app.sync.run(app.get(handle.id)),
    ):

        def work(tx: Any, call: Any = call) -> None:
            add(tx)
            call()

        with pytest.raises(InvalidOption, match="use its tx"):
            await app.transact(work)
        assert not await links(app)
    await app.transact(add)
    assert len(await links(app)) == 1


async def test_a_write_past_the_unit_of_work_is_refused_by_its_writer(tmp_path: Path) -> None:
    async with Penstock(f"sqlite:///{tmp_path}/work.db", extensions=[extension]) as app:

        def work(tx: Any) -> None:
            add(tx)
            app.store.jobs.enqueue_now([check.new("", URL).job])

        with pytest.raises(StoreError, match=r"tx\.enqueue"):
            await app.transact(work)
        assert not await links(app)
