"""The files of usearch: shared by processes, never believed when they are not of these rows."""

# ruff: noqa: ASYNC240 - looking at the files is what these tests do.

import asyncio
import os
import stat
from pathlib import Path

import pytest
from usearch.index import Index as Searched

from penstock import Penstock
from penstock.apps.agents.vectors import graph as graphs
from penstock.apps.agents.vectors import usearch_store
from penstock.apps.agents.vectors.graph import Graph, files_in, path_of, read_about, try_lock
from penstock.apps.agents.vectors.store import vectors_of
from penstock.apps.agents.vectors.usearch_store import UsearchStore
from penstock.operate.backup import backup, restore
from penstock.testing import FakeClock
from tests.apps.agents.vectors.conftest import Make
from tests.apps.agents.vectors.given import put, remove, store_of, table, unit


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs of a few vectors are searched as graphs, and written."""
    monkeypatch.setattr(graphs, "FEW", 0)
    monkeypatch.setattr(usearch_store, "WORTH_SAVING", 5)


def file_of(app: Penstock) -> Path:
    """The one file there is."""
    [path] = files_in(Path(app.extensions.settings("agents").folder))
    return path


def numbers_in(path: Path) -> set[int]:
    """What usearch itself reads in a file."""
    searched = Searched.restore(str(path))
    assert searched is not None
    return {int(key) for key in searched.keys}


async def ids(app: Penstock, k: int = 3) -> list[str]:
    hits = await vectors_of(app).search("docs", unit(1)[0], k, tenant="acme")
    return [hit.id for hit in hits]


async def test_a_graph_is_written_once_it_is_worth_it_and_nobody_else_may_read_it(
    file_app: Penstock,
) -> None:
    await put(file_app, unit(4))
    await ids(file_app)
    assert not Path(file_app.extensions.settings("agents").folder).exists()
    await put(file_app, unit(20))
    await ids(file_app)
    path = file_of(file_app)
    assert len(numbers_in(path)) == 20
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert "acme" not in path.name


async def test_another_process_reads_the_file_and_what_came_after_it(
    file_app: Penstock, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(file_app, unit(20))
    expected = await ids(file_app)
    taken: list[int] = []
    take_in = Graph.take_in

    def counted(self: Graph, rows: list[graphs.Row]) -> None:
        taken.extend(row.number for row in rows)
        take_in(self, rows)

    monkeypatch.setattr(Graph, "take_in", counted)
    async with make("sqlite", "usearch") as other:
        assert await ids(other) == expected
        assert taken == []
        await put(file_app, unit(21))
        await remove(file_app, expected[1])
        assert await ids(other, 2) == [expected[0], expected[2]]
        assert len(taken) == 2


@pytest.mark.parametrize("damage", ["cut short", "a bit turned", "empty", "something else"])
async def test_a_damaged_file_is_not_believed_and_written_anew(
    file_app: Penstock, make: Make, damage: str
) -> None:
    await put(file_app, unit(20))
    expected = await ids(file_app)
    path = file_of(file_app)
    whole = path.read_bytes()
    broken = {
        "cut short": whole[:-100],
        "a bit turned": whole[:500] + bytes([whole[500] ^ 1]) + whole[501:],
        "empty": b"",
        "something else": b"{}",
    }
    path.write_bytes(broken[damage])
    async with make("sqlite", "usearch") as other:
        assert await ids(other) == expected
    assert numbers_in(path) == set(range(1, 21))


async def test_a_restored_store_does_not_believe_the_file_of_what_was_lost(
    file_app: Penstock, make: Make, tmp_path: Path, clock: FakeClock
) -> None:
    await put(file_app, unit(6))
    await ids(file_app)
    copy = tmp_path / "copy.db"
    await backup(file_app.store, copy, clock=clock)
    await put(file_app, unit(20))
    await ids(file_app)
    lost = numbers_in(file_of(file_app))
    url = f"sqlite:///{tmp_path}/again.db"
    await restore(copy, url, clock=clock)
    clock.advance(60)
    folder = file_app.extensions.settings("agents").folder
    settings = file_app.settings.replace(url=url)
    async with Penstock(extensions=["agents"], settings=settings, clock=clock) as again:
        assert again.extensions.settings("agents").folder == folder
        others = unit(20, seed=2)
        for _ in range(2):  # up to the revision of the file, and beyond
            await put(again, others[6:])
        assert len(lost) == 20
        for vector in others[6:]:
            [hit] = await vectors_of(again).search("docs", vector, 1, tenant="acme")
            assert hit.score == pytest.approx(1, abs=1e-6)


async def test_a_new_generation_replaces_what_other_processes_hold(
    file_app: Penstock, make: Make
) -> None:
    await put(file_app, unit(20))
    async with make("sqlite", "usearch") as other:
        await ids(other)
        await remove(file_app, *[f"n{n}" for n in range(8)])
        assert await vectors_of(file_app).optimise("docs", "acme")
        assert numbers_in(file_of(file_app)) == set(range(9, 21))
        found = await ids(other, 20)
        assert len(found) == 12
        about = read_about(file_of(file_app))
        assert about is not None
        assert about.generation == 2


async def test_erased_rows_leave_nothing_in_files(file_app: Penstock) -> None:
    tables = file_app.table_store("agents")
    await put(file_app, unit(20), tenant="south")
    await put(file_app, unit(20), user_id="ada")
    await put(file_app, unit(8), user_id="bob")
    for tenant in ("acme", "south"):
        await vectors_of(file_app).search("docs", unit(1)[0], tenant=tenant)
    folder = Path(file_app.extensions.settings("agents").folder)
    assert len(files_in(folder)) == 2
    await tables.delete(table("agents_vectors"), {"user_id": "ada"})
    assert await vectors_of(file_app).forget(person="ada") == 1
    index = await store_of(file_app).find("docs", "acme")
    assert index is not None
    assert len(numbers_in(path_of(folder, index))) == 8
    assert await vectors_of(file_app).forget() == 0
    for name in ("agents_vectors", "agents_indexes"):
        await tables.delete(table(name), {"tenant_id": "acme"})
    assert await vectors_of(file_app).forget(tenant="acme") == 1
    assert not path_of(folder, index).exists()
    assert len(files_in(folder)) == 1


async def test_a_process_that_holds_erased_vectors_does_not_write_them_again(
    file_app: Penstock, make: Make
) -> None:
    await put(file_app, unit(20))
    async with make("sqlite", "usearch") as other:
        await ids(other)
        await vectors_of(file_app).rebuild("docs", "acme")
        held = store_of(other)
        assert isinstance(held, UsearchStore)
        [graph] = held.graphs.values()
        graph.revision += 100
        await held.keep(graph)
        about = read_about(file_of(file_app))
        assert about is not None
        assert (about.generation, about.revision) == (2, 20)


async def test_only_one_builds_a_graph_and_others_wait_for_it(
    file_app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(file_app, unit(20))
    index = await store_of(file_app).find("docs", "acme")
    assert index is not None
    path = path_of(Path(file_app.extensions.settings("agents").folder), index)
    held = try_lock(path)
    assert held is not None
    waits = asyncio.Event()

    def told(path: Path) -> int | None:
        found = try_lock(path)
        if found is None:
            waits.set()
        return found

    monkeypatch.setattr(usearch_store, "try_lock", told)
    searching = asyncio.ensure_future(ids(file_app))
    await waits.wait()
    assert not searching.done()
    os.close(held)
    assert len(await searching) == 3
    assert len(numbers_in(path)) == 20


async def test_without_a_folder_graphs_are_in_memory(make: Make) -> None:
    async with make("postgres", "usearch", folder="") as app:
        await put(app, unit(20))
        assert (await ids(app))[0] == "n0"


async def test_a_lost_graph_is_let_go_and_found_again(
    file_app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usearch_store, "MOST_GRAPHS", 1)
    await put(file_app, unit(20))
    await put(file_app, unit(20), tenant="south")
    for tenant in ("acme", "south", "acme"):
        found = await vectors_of(file_app).search("docs", unit(1)[0], 1, tenant=tenant)
        assert [(hit.id, hit.tenant_id) for hit in found] == [("n0", tenant)]
        store = store_of(file_app)
        assert isinstance(store, UsearchStore)
        assert len(store.graphs) == 1
