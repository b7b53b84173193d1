"""Archived sessions: in a file that others read, verified, brought back, and erased from it."""

from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from msgspec.structs import replace

from penstock import Penstock
from penstock.apps.agents.files import folder_of
from penstock.apps.agents.sessions.archive import ArchiveDamaged, erase
from penstock.apps.agents.sessions.records import NewTurn
from penstock.extension import Erasing
from penstock.testing import FakeClock, drain
from tests.apps.agents.killing import Play, Stage, twice_and_killed
from tests.apps.agents.learning.tasks import BY_HAND, asked, close_session, days_ago, run
from tests.apps.agents.raw import rows

pytestmark = pytest.mark.thorough("postgres")

WEEK = 7 * 86_400


async def archived(app: Penstock, **data: Any) -> dict[str, Any]:
    """Run the job, and return its result."""
    return await run(app, "session-archive", data)


async def give(app: Penstock, clock: FakeClock) -> None:
    """Four sessions of two tenants: one still open, the others closed a week ago."""
    for name, tenant, user in (
        ("s1", "north", "ada"),
        ("s2", "north", "bob"),
        ("s3", "south", "ada"),
    ):
        turns = asked(f"Deploy {name}", "deploy", succeeded=True, said="thanks")
        await close_session(app, name, *turns, tenant=tenant, user=user)
    await app.agents.sessions.open(session_id="open", tenant="north")
    await drain(app)
    clock.advance(WEEK + 1)


@pytest.mark.quick("postgres")
async def test_sessions_that_are_over_are_in_a_file_for_each_tenant(
    agents: Penstock, clock: FakeClock
) -> None:
    await give(agents, clock)
    result = await archived(agents)
    assert (result["archived"], result["turns"], len(result["files"])) == (3, 12, 2)
    tables = [pyarrow.parquet.read_table(folder_of(agents) / file) for file in result["files"]]
    held = {row["id"]: row for table in tables for row in table.to_pylist()}
    assert {name: row["tenant_id"] for name, row in held.items()} == {
        "s1": "north",
        "s2": "north",
        "s3": "south",
    }
    first = held["s1"]["turns"][1]
    assert (first["role"], first["skill_id"], first["succeeded"]) == ("tool", "deploy", True)
    assert rows(agents, "SELECT DISTINCT status FROM agents_sessions ORDER BY 1") == [
        ("active",),
        ("archived",),
    ]
    assert rows(agents, "SELECT count(*) FROM agents_turns") == [(0,)]
    file = folder_of(agents) / result["files"][0]
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


async def test_an_archived_session_comes_back_as_it_was(agents: Penstock, clock: FakeClock) -> None:
    await give(agents, clock)
    sessions = agents.agents.sessions
    before = await sessions.get("s1")
    turns = await sessions.turns("s1")
    await archived(agents)
    assert (await sessions.get("s1")).status == "archived"
    assert await sessions.turns("s1") == turns, "its turns are read from the file"
    restored = (await sessions.restore(["s1"]))[0]
    assert restored == replace(before, restored_at=clock.now())
    assert await sessions.turns("s1") == turns
    assert rows(agents, "SELECT count(*) FROM agents_turns") == [(4,)]
    assert (await archived(agents))["archived"] == 0, "what was brought back stays for a week"
    clock.advance(WEEK + 1)
    assert (await archived(agents))["archived"] == 1


async def test_named_sessions_are_archived_whenever_they_ended(agents: Penstock) -> None:
    await close_session(agents, "s1", NewTurn(role="user", content="Hello"))
    await agents.agents.sessions.open(session_id="open")
    await drain(agents)
    result = await archived(agents, sessionIds=["s1", "open", "unknown"])
    assert result["archived"] == 1
    assert rows(agents, "SELECT id, status FROM agents_sessions ORDER BY id") == [
        ("open", "active"),
        ("s1", "archived"),
    ]


async def test_files_are_of_as_many_sessions_as_a_batch(agents: Penstock, clock: FakeClock) -> None:
    await give(agents, clock)
    assert len((await archived(agents, batchSize=1))["files"]) == 3
    found = rows(agents, "SELECT state, sessions FROM agents_archives")
    assert found == [("whole", 1)] * 3


async def test_a_file_that_was_changed_or_lost_brings_nothing_back(
    agents: Penstock, clock: FakeClock
) -> None:
    await give(agents, clock)
    await archived(agents)
    of_north = rows(agents, "SELECT file FROM agents_archives WHERE tenant_id = 'north'")
    file = folder_of(agents) / of_north[0][0]
    held = file.read_bytes()
    file.write_bytes(held[:-1] + b"?")
    with pytest.raises(ArchiveDamaged, match="SHA-256 differs"):
        await agents.agents.sessions.restore(["s1"])
    file.unlink()
    with pytest.raises(ArchiveDamaged, match="it is not there"):
        await agents.agents.sessions.restore(["s1"])
    assert (await agents.agents.sessions.get("s1")).status == "archived"
    file.write_bytes(held)
    assert (await agents.agents.sessions.restore(["s1"]))[0].status == "closed"


async def test_a_file_that_does_not_read_back_removes_no_row(
    agents: Penstock, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await give(agents, clock)
    whole = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: whole(path)[:-8] + b"PAR1PAR1")
    handle = await agents.agents.enqueue("session-archive", {}, max_retries=0)
    await drain(agents)
    monkeypatch.undo()
    assert (await agents.get(handle.id)).status == "dead_letter"
    assert rows(agents, "SELECT count(*) FROM agents_turns") == [(12,)]
    assert (await archived(agents))["archived"] == 3, "and the next job does it"


async def test_a_turn_that_comes_while_the_file_is_written_is_not_lost(
    agents: Penstock, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await give(agents, clock)
    whole = Penstock.transact
    late = [{"session_id": "s1", "n": 5, "tenant_id": "north", "user_id": "ada", "role": "user"}]
    late[0] |= {"content": "One more", "skill_id": None, "succeeded": None, "at": 0}

    async def interrupted(app: Penstock, work: Any) -> Any:
        if getattr(work, "__name__", "") == "finish" and late:
            row = {**late.pop(), "metadata": "{}"}
            await whole(app, lambda tx: tx.agents.run("add_turn", row))
            told = {"id": "s1", "turns": 5, "at": 0}
            await whole(app, lambda tx: tx.agents.run("continue_session", told))
        return await whole(app, work)

    monkeypatch.setattr(Penstock, "transact", interrupted)
    assert (await archived(agents))["turns"] == 13
    turns = await agents.agents.sessions.turns("s1")
    assert [turn.content for turn in turns][-1:] == ["One more"]


async def test_a_tenant_is_erased_from_the_files(agents: Penstock, clock: FakeClock) -> None:
    await give(agents, clock)
    await archived(agents)
    overtaken = folder_of(agents) / "sessions" / "01KDVDNA00ZSD0EXHTCAQDWY77-0.parquet.77.part"
    overtaken.write_bytes(b"of whom it was is not known")
    assert await erase(agents, Erasing(tenant="north")) == 2
    assert not overtaken.exists()
    left = contents(agents)
    assert "south" in left
    assert "north" not in left
    assert rows(agents, "SELECT tenant_id FROM agents_archives") == [("south",)]


async def test_a_person_is_erased_from_the_files_and_the_others_stay(
    agents: Penstock, clock: FakeClock
) -> None:
    await give(agents, clock)
    await archived(agents)
    assert await erase(agents, Erasing(person="ada")) == 2
    assert await erase(agents, Erasing(person="ada")) == 0
    assert "Deploy s2" in contents(agents)
    assert "'ada'" not in contents(agents)
    assert (await agents.agents.sessions.restore(["s2"]))[0].turns == 4


async def test_what_a_job_left_that_never_came_back_is_removed(
    agents: Penstock, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await give(agents, clock)
    whole = Penstock.transact
    calls: list[Any] = []

    async def dies(app: Penstock, work: Any) -> Any:
        if getattr(work, "__name__", "") == "finish":
            calls.append(work)
            raise OSError("the disk is gone")
        return await whole(app, work)

    monkeypatch.setattr(Penstock, "transact", dies)
    await agents.agents.enqueue("session-archive", {}, max_retries=0)
    await drain(agents)
    monkeypatch.undo()
    assert calls
    assert rows(agents, "SELECT state FROM agents_archives") == [("writing",)]
    clock.advance(86_401)
    assert (await archived(agents))["archived"] == 3
    assert rows(agents, "SELECT DISTINCT state FROM agents_archives") == [("whole",)]
    known = {row[0] for row in rows(agents, "SELECT file FROM agents_archives")}
    assert {f"sessions/{path.name}" for path in files_of(agents)} == known


def files_of(app: Penstock) -> list[Path]:
    """All files of archived sessions."""
    return sorted((folder_of(app) / "sessions").iterdir())


def contents(app: Penstock) -> str:
    """All that is in the files, as text."""
    return "".join(str(pyarrow.parquet.read_table(path).to_pylist()) for path in files_of(app))


class Archiving(Play):
    """Sessions of two tenants go into three files."""

    settings = BY_HAND

    async def given(self, app: Penstock) -> None:
        days_ago(app, 8)
        for n, tenant in enumerate(("north", "north", "south")):
            turns = asked(f"Deploy {n}", "deploy", succeeded=True)
            await close_session(app, f"s{n}", *turns, tenant=tenant)
        days_ago(app, 0)

    async def enqueue(self, app: Penstock) -> None:
        await app.agents.enqueue("session-archive", {"batchSize": 1})

    async def state(self, app: Penstock) -> Any:
        held = [
            (row["id"], row["tenant_id"], len(row["turns"]), row["turns"][0]["content"])
            for path in files_of(app)
            for row in pyarrow.parquet.read_table(path).to_pylist()
        ]
        return [
            sorted(held),
            rows(app, "SELECT id, status FROM agents_sessions ORDER BY id"),
            rows(app, "SELECT count(*) FROM agents_turns"),
            rows(app, "SELECT state, sessions, turns FROM agents_archives ORDER BY id"),
        ]


@pytest.mark.thorough
async def test_an_archive_is_the_same_however_often_it_is_begun(stage: Stage) -> None:
    held, statuses, turns, archives = await twice_and_killed(stage, Archiving())
    assert held == [
        ("s0", "north", 3, "Deploy 0"),
        ("s1", "north", 3, "Deploy 1"),
        ("s2", "south", 3, "Deploy 2"),
    ]
    assert {status for _, status in statuses} == {"archived"}
    assert turns == [(0,)]
    assert archives == [("whole", 1, 3)] * 3
