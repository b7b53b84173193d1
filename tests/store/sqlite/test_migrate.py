"""Migrations run under a lock, all or nothing, and never on a file that is not ours."""

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from penstock.model.clock import iso
from penstock.model.job import KeyScope, NewJob
from penstock.model.outcome import Completed
from penstock.model.store_errors import NotAPenstockStore, SchemaTooNew, StoreError
from penstock.store.contract import Claim
from penstock.store.open import open_store
from penstock.store.sqlite import migrate as migrating
from penstock.store.sqlite.connect import connect
from penstock.store.sqlite.migrate import latest, migrate, migrations
from penstock.testing.clock import FakeClock

GLOBAL_CONTEXT_NETWORK_COLUMNS = [
    *("id", "type", "status", "priority", "scheduled_at", "lease_owner", "lease_until"),
    *("payload", "idempotency_key", "attempts", "max_retries", "error"),
    *("created_at", "updated_at", "started_at", "completed_at", "result"),
]
OPEN_WHEN_TOLD = """
import asyncio, sys
from penstock.store.open import open_store
store = open_store(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
print(asyncio.run(store.migrate())[1])
asyncio.run(store.close())
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "work.db"


def _content(path: Path) -> bytes:
    return path.read_bytes()


def _schema(path: Path) -> list[tuple[object, ...]]:
    with closing(apsw.Connection(str(path), apsw.SQLITE_OPEN_READWRITE)) as connection:
        return list(connection.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY 1, 2"))


async def test_a_fresh_file_gets_the_newest_schema(path: Path) -> None:
    store = open_store(f"sqlite:///{path}")
    assert await store.migrate() == (0, latest())
    await store.close()


async def test_migrating_again_changes_nothing(path: Path) -> None:
    store = open_store(f"sqlite:///{path}", FakeClock())
    await store.open()
    await store.jobs.enqueue([NewJob(id="0", type="mail")])
    jobs = await store.reader.get(["0"])
    assert await store.migrate() == (latest(), latest())
    await store.close()
    schema = _schema(path)
    again = open_store(f"sqlite:///{path}", FakeClock())
    assert await again.migrate() == (latest(), latest())
    assert await again.reader.get(["0"]) == jobs
    await again.close()
    assert _schema(path) == schema


def test_several_processes_may_open_a_new_file_at_the_same_moment(path: Path) -> None:
    command = [sys.executable, "-c", OPEN_WHEN_TOLD, f"sqlite:///{path}"]
    openers = [
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for opener in openers:
        assert opener.stdout is not None
        assert opener.stdout.readline() == "ready\n"
    for opener in openers:
        assert opener.stdin is not None
        opener.stdin.write("go\n")
        opener.stdin.flush()
    answers = [opener.communicate(timeout=60) for opener in openers]
    assert answers == [(f"{latest()}\n", "")] * len(openers)


async def test_a_file_from_a_newer_penstock_is_refused_and_left_alone(path: Path) -> None:
    store = open_store(f"sqlite:///{path}")
    await store.open()
    await store.close()
    with closing(connect(path)) as connection:
        connection.execute("UPDATE penstock_meta SET value = 99 WHERE name = 'schema'")
    before = _content(path)
    with pytest.raises(SchemaTooNew, match="99"):
        await open_store(f"sqlite:///{path}").open()
    assert _content(path) == before


async def test_a_file_with_a_jobs_table_of_its_own_is_refused_and_left_alone(path: Path) -> None:
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("CREATE TABLE jobs (title TEXT); INSERT INTO jobs VALUES ('baker')")
    before = _content(path)
    with pytest.raises(NotAPenstockStore, match="jobs"):
        await open_store(f"sqlite:///{path}").open()
    assert _content(path) == before


async def test_a_file_with_other_tables_is_shared(path: Path) -> None:
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER)")
    store = open_store(f"sqlite:///{path}")
    assert await store.migrate() == (0, latest())
    await store.close()


async def test_a_migration_that_fails_leaves_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = migrations() | {latest() + 1: "CREATE TABLE half (id); CREATE TABLE jobs (id)"}
    monkeypatch.setattr(migrating, "migrations", lambda: broken)
    with pytest.raises(StoreError, match="jobs"):
        await open_store(f"sqlite:///{path}").open()
    assert _schema(path) == []
    monkeypatch.undo()
    store = open_store(f"sqlite:///{path}")
    assert await store.migrate() == (0, latest())
    await store.close()


async def test_an_upgrade_that_fails_leaves_the_old_version_and_its_jobs(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(f"sqlite:///{path}")
    await store.open()
    await store.jobs.enqueue([NewJob(id="0", type="mail")])
    await store.close()
    schema = _schema(path)
    broken = migrations() | {latest() + 1: "DELETE FROM jobs; CREATE TABLE half (id); nonsense"}
    monkeypatch.setattr(migrating, "migrations", lambda: broken)
    with pytest.raises(StoreError):
        await open_store(f"sqlite:///{path}").open()
    monkeypatch.undo()
    assert _schema(path) == schema
    await store.open()
    assert len(await store.reader.get(["0"])) == 1
    await store.close()


async def test_what_a_process_of_an_older_version_enqueues_meanwhile_holds_nothing_up(
    path: Path,
) -> None:
    store = open_store(f"sqlite:///{path}", FakeClock())
    await store.open()
    jobs = [NewJob(id=str(n), type="mail", payload="{}") for n in range(3)]
    keyed = NewJob(id="3", type="mail", payload="{}", limit_key="bank")
    await store.jobs.enqueue([*jobs, keyed])
    with closing(connect(path)) as older:
        older.execute("UPDATE jobs SET limit_key = NULL WHERE id IN ('0', '1')")
    claim = Claim(owner="host:1", types=["mail"], limit=9, start=9, lease_ms=30_000)
    leases = (await store.jobs.claim(claim)).leases
    assert {lease.id for lease in leases} == {"0", "1", "2", "3"}
    await store.close()


async def test_the_job_queue_view_speaks_the_global_context_network_s_names(path: Path) -> None:
    clock = FakeClock("2026-03-01T10:00:00.007Z")
    store = open_store(f"sqlite:///{path}", clock)
    await store.open()
    new = NewJob(
        id="0",
        type="mail",
        payload='{"to":"a"}',
        max_retries=3,
        key="k",
        key_scope=KeyScope.FOREVER,
    )
    await store.jobs.enqueue([new])
    clock.advance(1.5)
    claim = Claim(owner="host:1", types=["mail"], limit=1, start=1, lease_ms=30_000)
    [lease] = (await store.jobs.claim(claim)).leases
    running = _job_queue(path)
    assert list(running) == GLOBAL_CONTEXT_NETWORK_COLUMNS
    assert running == {
        "id": "0",
        "type": "mail",
        "status": "in_progress",
        "priority": 5,
        "scheduled_at": "2026-03-01T10:00:00.007Z",
        "lease_owner": "host:1",
        "lease_until": "2026-03-01T10:00:31.507Z",
        "payload": '{"to":"a"}',
        "idempotency_key": "k",
        "attempts": 0,
        "max_retries": 3,
        "error": None,
        "created_at": "2026-03-01T10:00:00.007Z",
        "updated_at": "2026-03-01T10:00:01.507Z",
        "started_at": "2026-03-01T10:00:01.507Z",
        "completed_at": None,
        "result": None,
    }
    done = Completed(
        id="0", fence=lease.fence, type="mail", queue="default", started_at=clock.now(), result="1"
    )
    clock.advance(0.25)
    await store.jobs.settle("host:1", [done])
    ended = _job_queue(path)
    assert ended["status"] == "completed"
    assert ended["lease_until"] is None
    assert ended["completed_at"] == "2026-03-01T10:00:01.757Z"
    assert ended["result"] == "1"
    await store.close()


def test_every_millisecond_of_the_view_is_spelt_as_penstock_spells_it() -> None:
    connection = connect(None)
    migrate(connection, ":memory:", FakeClock())
    first = FakeClock("2026-12-31T23:59:59Z").now()
    connection.executemany(
        "INSERT INTO jobs (id, type, queue, status, rank, priority, max_retries, timeout_ms, "
        "scheduled_at, created_at, updated_at, payload) "
        "VALUES (?1, 't', 'q', 'queued', 0, 5, 3, 1, ?1, ?1, ?1, '{}')",
        [(first + ms,) for ms in range(1_000)],
    )
    shown = [row[0] for row in connection.execute("SELECT created_at FROM job_queue ORDER BY 1")]
    assert shown == [iso(first + ms) for ms in range(1_000)]


def _job_queue(path: Path) -> dict[str, object]:
    with closing(connect(path, read_only=True)) as connection:
        cursor = connection.execute("SELECT * FROM job_queue")
        row = cursor.fetchone()
        assert row is not None
        names = [
            column[1]
            for column in connection.execute("SELECT * FROM pragma_table_info('job_queue')")
        ]
    return dict(zip(map(str, names), row, strict=True))
