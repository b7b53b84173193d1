"""Rows of extensions go along with a move and a copy, and go when somebody is erased."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from examples.links import add, extension
from penstock import Penstock, Settings
from penstock.extension import Erasing
from penstock.model.errors import InvalidOption, JobsRunning
from penstock.model.transfer import TablesStay, TablesUnknown, TargetInUse
from penstock.operate.backup import backup, restore
from penstock.operate.erase import erase
from penstock.operate.move import Places, move
from penstock.store.contract import Claim
from penstock.testing import FakeClock
from tests.support.places import Place

KNOWN = {"links": extension}
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


@pytest.fixture
def tables(place: Place, tmp_path: Path) -> str | None:
    return f"sqlite:///{tmp_path}/tables.db" if "redis" in place.url else None


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
        assert erased.parts == {"jobs": 1, "schedules": 1, "links_links": 1}
        assert {job.tenant_id for job in await app.find(limit=100)} == {"", "beta"}
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
