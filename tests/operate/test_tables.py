"""Rows of extensions go along with a move and a copy, and go when somebody is erased."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from examples.links import add, extension
from penstock import Penstock, Settings
from penstock.extension import Erasing, Extension, Table, Tables
from penstock.model.errors import InvalidOption, JobsRunning
from penstock.model.states import Status
from penstock.model.transfer import (
    OutboxWaiting,
    SourceChanged,
    TablesStay,
    TablesUnknown,
    TargetInUse,
)
from penstock.operate.backup import backup, restore
from penstock.operate.erase import erase, erase_jobs
from penstock.operate.move import abandon, move
from penstock.operate.tables import Places, opened_store
from penstock.outbox.extension import TABLES as OUTBOX
from penstock.outbox.extension import deliver, outbox, write
from penstock.store.contract import Claim, Retention
from penstock.testing import FakeClock
from proof.conformance.build import enqueue
from tests.support.places import Place

pytestmark = pytest.mark.thorough("postgres", "valkey")

KNOWN = {"links": extension, "outbox": outbox}
URL = "http://127.0.0.1:1/"


def opened(url: str, clock: FakeClock, tables: str | None = None) -> Penstock:
    return Penstock(settings=Settings(url=url, tables=tables), extensions=[extension], clock=clock)


async def urls(app: Penstock) -> list[str]:
    rows = await app.read(lambda tx: tx.links.rows("all", {"tenant": None}))
    return [row[0] for row in rows]


async def test_rows_go_along_from_sqlite_to_postgres_and_back(
    tmp_path: Path, postgres_store_url: str, clock: FakeClock
) -> None:
    old, new = f"sqlite:///{tmp_path}/old.db", f"sqlite:///{tmp_path}/new.db"
    async with opened(old, clock) as app:
        for number in range(3):
            await add(app, f"{URL}{number}", "ada", "acme")
    places = Places(known=KNOWN)
    assert (await move(old, postgres_store_url, tables=places, clock=clock)).rows == 3
    async with opened(postgres_store_url, clock) as app:
        assert await urls(app) == [f"{URL}{number}" for number in range(3)]
        await add(app, URL + "3", "bob", "acme")
    assert (await move(postgres_store_url, new, tables=places, clock=clock)).rows == 4
    async with opened(new, clock) as app:
        assert len(await urls(app)) == 4


async def test_a_store_without_tables_takes_them_elsewhere(
    tmp_path: Path, valkey_url: str, clock: FakeClock
) -> None:
    old, beside = f"sqlite:///{tmp_path}/old.db", f"sqlite:///{tmp_path}/tables.db"
    async with opened(old, clock) as app:
        await add(app, URL)
    with pytest.raises(TablesStay, match="--tables-to"):
        await move(old, valkey_url, tables=Places(known=KNOWN), clock=clock)
    await move(old, valkey_url, tables=Places(target=beside, known=KNOWN), clock=clock)
    async with opened(valkey_url, clock, beside) as app:
        assert await urls(app) == [URL]
        assert len(await app.find(type="links.check")) == 1


async def test_tables_that_nobody_knows_refuse_a_move(tmp_path: Path, clock: FakeClock) -> None:
    old, new = f"sqlite:///{tmp_path}/old.db", tmp_path / "new.db"
    async with opened(old, clock) as app:
        await add(app, URL)
    with pytest.raises(TablesUnknown, match="'links'"):
        await move(old, f"sqlite:///{new}", clock=clock)
    assert not new.exists()


async def test_rows_that_are_there_already_are_not_copied_over(
    tmp_path: Path, clock: FakeClock
) -> None:
    old, new = f"sqlite:///{tmp_path}/old.db", f"sqlite:///{tmp_path}/new.db"
    for url in (old, new):
        async with opened(url, clock) as app:
            await app.transact(lambda tx: tx.links.run("add", ("", URL, "ada")))
    with pytest.raises(TargetInUse, match="rows of links_links"):
        await move(old, new, tables=Places(known=KNOWN), clock=clock)
    async with opened(old, clock) as app:
        assert await urls(app) == [URL]


async def test_a_copy_of_postgres_holds_the_rows_and_gives_them_back(
    tmp_path: Path, postgres_store_url: str, postgres_url: str, clock: FakeClock
) -> None:
    async with opened(postgres_store_url, clock) as app:
        await add(app, URL)
        copy = tmp_path / "copy.db"
        await backup(app.store, copy, extensions=KNOWN, clock=clock)
    await restore(copy, postgres_url, extensions=KNOWN, clock=clock)
    async with opened(postgres_url, clock) as app:
        assert await urls(app) == [URL]


async def test_tables_that_stay_where_they_are_are_left_alone(
    tmp_path: Path, valkey_url: str, postgres_store_url: str, clock: FakeClock
) -> None:
    beside = f"sqlite:///{tmp_path}/tables.db"
    async with opened(valkey_url, clock, beside) as app:
        await add(app, URL)
    same = Places(source=beside, target=f"sqlite:///{tmp_path}/./tables.db", known=KNOWN)
    assert (await move(valkey_url, postgres_store_url, tables=same, clock=clock)).rows == 0
    assert (await move(postgres_store_url, valkey_url, replace=True, clock=clock)).rows == 0
    async with opened(valkey_url, clock, beside) as app:
        assert await urls(app) == [URL]
    into = Places(source=beside, known=KNOWN)
    assert (await move(valkey_url, beside, tables=into, clock=clock)).rows == 0
    async with opened(beside, clock) as app:
        assert await urls(app) == [URL]
        assert len(await app.find(type="links.check")) == 1


class Stopped(Exception):
    """The process was killed."""


def stop_at(name: str) -> Any:
    def show(part: str, done: int, total: int) -> None:
        if part == name and done:
            raise Stopped

    return show


async def test_a_move_that_is_given_up_leaves_no_rows_behind(
    tmp_path: Path, postgres_store_url: str, clock: FakeClock
) -> None:
    old = f"sqlite:///{tmp_path}/old.db"
    async with opened(old, clock) as app:
        await add(app, URL)
    places = Places(known=KNOWN)
    with pytest.raises(Stopped):
        await move(old, postgres_store_url, tables=places, clock=clock, show=stop_at("links_links"))
    await abandon(old, postgres_store_url, tables=places, clock=clock)
    async with opened(postgres_store_url, clock) as app:
        assert await urls(app) == []
    assert (await move(old, postgres_store_url, tables=places, clock=clock)).rows == 1


async def test_a_move_that_starts_over_leaves_no_rows_behind(
    tmp_path: Path, postgres_store_url: str, clock: FakeClock
) -> None:
    old, places = f"sqlite:///{tmp_path}/old.db", Places(known=KNOWN)
    async with opened(old, clock) as app:
        await add(app, URL)
    with pytest.raises(Stopped):
        await move(old, postgres_store_url, tables=places, clock=clock, show=stop_at("links_links"))
    async with opened_store(old, clock) as store:
        await enqueue(store)
    with pytest.raises(SourceChanged):
        await move(old, postgres_store_url, tables=places, clock=clock)
    assert (await move(old, postgres_store_url, tables=places, clock=clock)).rows == 1


async def test_a_move_that_is_given_up_asks_where_its_rows_went(
    tmp_path: Path, valkey_url: str, clock: FakeClock
) -> None:
    old, beside = f"sqlite:///{tmp_path}/old.db", f"sqlite:///{tmp_path}/tables.db"
    async with opened(old, clock) as app:
        await add(app, URL)
    places = Places(target=beside, known=KNOWN)
    with pytest.raises(Stopped):
        await move(old, valkey_url, tables=places, clock=clock, show=stop_at("links_links"))
    with pytest.raises(TablesStay, match="--tables-to"):
        await abandon(old, valkey_url, tables=Places(known=KNOWN), clock=clock)
    other = Places(target=f"sqlite:///{tmp_path}/other.db", known=KNOWN)
    with pytest.raises(InvalidOption, match=r"tables\.db"):
        await abandon(old, valkey_url, tables=other, clock=clock)
    await abandon(old, valkey_url, tables=places, clock=clock)
    assert (await move(old, valkey_url, tables=places, clock=clock)).rows == 1


async def test_a_move_back_replaces_the_rows_that_were_left_behind(
    tmp_path: Path, postgres_store_url: str, clock: FakeClock
) -> None:
    old, places = f"sqlite:///{tmp_path}/old.db", Places(known=KNOWN)
    async with opened(old, clock) as app:
        await add(app, URL)
    await move(old, postgres_store_url, tables=places, clock=clock)
    async with opened(postgres_store_url, clock) as app:
        await app.transact(lambda tx: tx.links.run("add", ("", URL + "b", "ada")))
        await app.transact(lambda tx: tx.links.run("add", ("", URL + "c", "ada")))
    with pytest.raises(TargetInUse, match="--replace"):
        await move(postgres_store_url, old, tables=places, clock=clock)
    assert (await move(postgres_store_url, old, replace=True, tables=places, clock=clock)).rows == 3
    async with opened(old, clock) as app:
        assert await urls(app) == [URL, URL + "b", URL + "c"]


async def test_replace_does_not_delete_rows_of_a_store_that_was_not_moved(
    tmp_path: Path, clock: FakeClock
) -> None:
    old, new = f"sqlite:///{tmp_path}/old.db", f"sqlite:///{tmp_path}/new.db"
    for url in (old, new):
        async with opened(url, clock) as app:
            await app.transact(lambda tx: tx.links.run("add", ("", URL, "ada")))
    with pytest.raises(TargetInUse, match="rows of links_links"):
        await move(old, new, replace=True, tables=Places(known=KNOWN), clock=clock)


async def test_a_copy_is_not_restored_over_rows_that_are_there(
    tmp_path: Path, postgres_store_url: str, clock: FakeClock
) -> None:
    copy = tmp_path / "copy.db"
    async with opened(f"sqlite:///{tmp_path}/old.db", clock) as app:
        await app.transact(lambda tx: tx.links.run("add", ("", URL, "ada")))
        await backup(app.store, copy, extensions=KNOWN, clock=clock)
    async with opened(postgres_store_url, clock) as app:
        await app.transact(lambda tx: tx.links.run("add", ("", URL + "mine", "ada")))
    with pytest.raises(TargetInUse, match="rows of links_links"):
        await restore(copy, postgres_store_url, extensions=KNOWN, clock=clock)
    async with opened(postgres_store_url, clock) as app:
        assert await urls(app) == [URL + "mine"]


async def fill_outbox(app: Penstock, **options: Any) -> None:
    """Put a job where it waits for its delivery, as a process that dies after its commit does."""
    call = app.find_type("links.check").options(**options).new("", URL)
    store = app.table_store("outbox")
    await store.make(OUTBOX)
    await store.write(lambda tx: write(tx.of(OUTBOX), [call.job], tx.now))


async def test_a_move_waits_until_the_outbox_is_empty(
    tmp_path: Path, valkey_url: str, postgres_store_url: str, clock: FakeClock
) -> None:
    beside = f"sqlite:///{tmp_path}/tables.db"
    places = Places(source=beside, known=KNOWN)
    async with opened(valkey_url, clock, beside) as app:
        await add(app, URL)
        await fill_outbox(app)
    with pytest.raises(OutboxWaiting, match="holds 1 job in its outbox; let a worker"):
        await move(valkey_url, postgres_store_url, tables=places, clock=clock)
    async with opened(valkey_url, clock, beside) as app:
        await deliver(app)
    assert (await move(valkey_url, postgres_store_url, tables=places, clock=clock)).rows == 1
    async with opened(postgres_store_url, clock) as app:
        assert len(await app.find(type="links.check")) == 2
        assert "outbox" not in await app.table_store("links").versions()


async def test_a_copy_holds_the_tables_beside_a_store_that_has_none(
    tmp_path: Path, valkey_url: str, postgres_store_url: str, postgres_url: str, clock: FakeClock
) -> None:
    copy = tmp_path / "copy.db"
    async with opened(valkey_url, clock, postgres_store_url) as app:
        await add(app, URL)
        await fill_outbox(app)
        await backup(app.store, copy, beside=app.beside, extensions=KNOWN, clock=clock)
        await app.store.transfer.clear()
    for url in (valkey_url, postgres_url):
        with pytest.raises(OutboxWaiting, match="restore it where"):
            await restore(copy, url, extensions=KNOWN, clock=clock)
    new = f"sqlite:///{tmp_path}/tables.db"
    await restore(copy, valkey_url, tables=new, extensions=KNOWN, clock=clock)
    async with opened(valkey_url, clock, new) as app:
        assert await urls(app) == [URL]
        assert len(await app.find(type="links.check")) == 1
        assert await deliver(app) == 1


@pytest.fixture
def tables(place: Place, tmp_path: Path) -> str | None:
    return f"sqlite:///{tmp_path}/tables.db" if "redis" in place.url else None


@pytest.mark.quick("postgres", "valkey")
async def test_a_tenant_is_erased_everywhere_and_others_stay(
    place: Place, tables: str | None, clock: FakeClock
) -> None:
    async with opened(place.url, clock, tables) as app:
        for tenant in ("acme", "beta"):
            await add(app, URL, "ada", tenant)
            await app.find_type("links.check").options(tenant=tenant, key="k").enqueue("", URL)
            sweep = app.find_type("links.sweep").options(tenant=tenant)
            await app.schedule("often", sweep.new(), every=60)
        erased = await erase(app, tenant="acme")
        assert erased.parts == {"jobs": 2, "schedules": 1, "links_links": 1}
        assert {job.tenant_id for job in await app.find(limit=100)} == {"beta"}
        assert await app.read(lambda tx: tx.links.rows("all", {"tenant": "acme"})) == []
        assert len(await app.read(lambda tx: tx.links.rows("all", {"tenant": "beta"}))) == 1
        assert (await erase(app, tenant="acme")).parts == {}
        again = await app.find_type("links.check").options(tenant="acme", key="k").enqueue("", URL)
        assert again.created


async def test_a_person_is_erased_from_tables_and_jobs(
    place: Place, tables: str | None, clock: FakeClock
) -> None:
    async with opened(place.url, clock, tables) as app:
        await app.transact(lambda tx: tx.links.run("add", ("acme", URL, "ada")))
        await app.transact(lambda tx: tx.links.run("add", ("acme", URL + "b", "bob")))
        await app.find_type("links.check").options(created_by="ada").enqueue("", URL)
        assert (await erase(app, person="ada")).parts == {"jobs": 1, "links_links": 1}
        assert await urls(app) == [URL + "b"]


async def test_jobs_that_run_are_asked_to_stop_and_refuse_the_erasure(
    place: Place, tables: str | None, clock: FakeClock
) -> None:
    async with opened(place.url, clock, tables) as app:
        handle = await app.find_type("links.check").options(tenant="acme").enqueue("", URL)
        claim = Claim(owner="w:1", types=["links.check"], limit=1, start=1, lease_ms=60_000)
        assert (await app.store.jobs.claim(claim)).leases
        with pytest.raises(JobsRunning, match="1 still run"):
            await erase(app, tenant="acme")
        assert (await app.get(handle.id)).cancel_requested_at is not None


async def test_an_erasure_of_nobody_is_refused(place: Place, clock: FakeClock) -> None:
    async with Penstock(settings=Settings(**place.settings), clock=clock) as app:
        with pytest.raises(InvalidOption, match="tenant= or person="):
            await erase(app)


async def test_what_an_extension_keeps_elsewhere_is_its_own_to_erase(
    place: Place, clock: FakeClock
) -> None:
    asked: list[Erasing] = []

    async def forget(_: Penstock, whose: Erasing) -> int:
        asked.append(whose)
        return 7

    settings = Settings(**place.settings)
    owner = replace(extension, erase=forget)
    async with Penstock(settings=settings, extensions=[owner], clock=clock) as app:
        assert (await erase(app, tenant="acme")).parts == {"links": 7}
    assert asked == [Erasing(tenant="acme")]


@pytest.mark.parametrize("whose", [{"person": ""}, {"tenant": ""}, {"tenant": "a", "person": ""}])
async def test_an_empty_name_erases_nothing(
    place: Place, clock: FakeClock, whose: dict[str, str]
) -> None:
    async with Penstock(settings=Settings(**place.settings), clock=clock) as app:
        with pytest.raises(InvalidOption, match="a name, not an empty text"):
            await erase(app, **whose)


async def test_all_that_a_job_made_is_erased_however_many_there_are(
    place: Place, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.operate.erase.PAGE", 2)
    async with opened(place.url, clock) as app:
        parent, other = await enqueue(app.store), await enqueue(app.store)
        for _ in range(5):
            await enqueue(app.store, parent_job_id=parent)
        assert await erase_jobs(app, [parent]) == 6
        assert [job.id for job in await app.find(limit=9)] == [other]


async def test_keys_that_outlive_their_jobs_are_erased_with_their_tenant(
    place: Place, tables: str | None, clock: FakeClock
) -> None:
    async with opened(place.url, clock, tables) as app:
        for tenant in ("acme", "beta"):
            kept = app.find_type("links.check").options(tenant=tenant, key="k", key_scope="forever")
            handle = await kept.enqueue("", URL)
            await app.cancel(handle.id)
        clock.advance(seconds=1_000_000)
        await app.store.upkeep.prune(Retention(keep_ms=dict.fromkeys(Status, 1)))
        assert await app.find(limit=9) == []
        assert (await erase(app, tenant="acme")).parts == {"unique keys": 1}
        made = {}
        for tenant in ("acme", "beta"):
            kept = app.find_type("links.check").options(tenant=tenant, key="k", key_scope="forever")
            made[tenant] = (await kept.enqueue("", URL)).created
        assert made == {"acme": True, "beta": False}


async def test_what_waits_in_the_outbox_is_erased_before_it_becomes_a_job(
    tmp_path: Path, valkey_url: str, clock: FakeClock
) -> None:
    async with opened(valkey_url, clock, f"sqlite:///{tmp_path}/tables.db") as app:
        await fill_outbox(app, tenant="acme", created_by="ada")
        await fill_outbox(app, tenant="acme", created_by="bob")
        assert (await erase(app, person="ada")).parts == {"outbox_jobs": 1}
        assert (await erase(app, tenant="acme")).parts == {"outbox_jobs": 1}
        assert await deliver(app) == 0


async def test_what_came_while_it_was_erased_goes_too(
    place: Place, tables: str | None, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(place.url, clock, tables) as app:
        await add(app, URL, "ada", "acme")
        take = app.store.upkeep.erase

        async def slow(ids: list[str]) -> int:
            monkeypatch.undo()
            await add(app, URL + "late", "ada", "acme")
            return await take(ids)

        monkeypatch.setattr(app.store.upkeep, "erase", slow)
        assert (await erase(app, tenant="acme")).parts == {"jobs": 2, "links_links": 2}
        assert await urls(app) == []


@pytest.fixture
def family(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Extension:
    """An extension whose second table points at its first."""
    folder = tmp_path / "family_of_tables" / "sql"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").touch()
    (folder / "0001_begin.sql").write_text(
        "CREATE TABLE family_parents (id text PRIMARY KEY, tenant text NOT NULL);\n"
        "CREATE TABLE family_children (id text PRIMARY KEY, tenant text NOT NULL,"
        " parent text NOT NULL REFERENCES family_parents (id));\n"
    )
    (folder / "queries.sql").write_text(
        "-- name: add_parent\nINSERT INTO family_parents VALUES (?, ?);\n"
        "-- name: add_child\nINSERT INTO family_children VALUES (?, ?, ?);\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    names = ("family_parents", "family_children")
    tables = tuple(Table(name, key=("id",), tenant="tenant") for name in names)
    return Extension(
        name="family",
        tables=Tables(extension="family", package="family_of_tables", tables=tables),
    )


async def test_rows_that_point_at_others_go_before_them(
    postgres_store_url: str, postgres_url: str, tmp_path: Path, clock: FakeClock, family: Extension
) -> None:
    settings = Settings(url=postgres_store_url)
    places = Places(known={"family": family})

    def fill(tx: Any) -> None:
        tx.family.run("add_parent", ("p", "acme"))
        tx.family.run("add_child", ("c", "acme", "p"))

    async with Penstock(settings=settings, extensions=[family], clock=clock) as app:
        await app.transact(fill)
    moving = move(
        postgres_store_url,
        postgres_url,
        tables=places,
        clock=clock,
        show=stop_at("family_children"),
        keep=True,
    )
    with pytest.raises(Stopped):
        await moving
    assert (await move(postgres_store_url, postgres_url, tables=places, clock=clock)).rows == 2
    settings = Settings(url=postgres_url)
    async with Penstock(settings=settings, extensions=[family], clock=clock) as app:
        assert (await erase(app, tenant="acme")).parts == {
            "family_children": 1,
            "family_parents": 1,
        }
