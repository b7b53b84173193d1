"""The files of a store: nobody else may read them, and one that is lost is said to be lost."""

# ruff: noqa: ASYNC240 - looking at the files is what these tests do.

import os
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

import penstock.store.sqlite.lent  # noqa: F401 - before a test replaces what it is made of
from penstock.config import Settings
from penstock.model.job import NewJob
from penstock.model.store_errors import StoreUnavailable
from penstock.operate.health import HealthStatus, check_health
from penstock.store.contract import Store
from penstock.store.open import open_store
from penstock.store.sqlite.backup import copy_file as backup
from penstock.store.sqlite.backup import restore_file as restore
from penstock.store.sqlite.migrate import migrate
from penstock.testing.clock import FakeClock


@pytest.fixture(autouse=True)
def _open_mask() -> Iterator[None]:
    """The mask of a machine on which nobody thought about it."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "work.db"


async def filled(path: Path) -> Store:
    store = open_store(f"sqlite:///{path}")
    await store.open()
    await store.jobs.enqueue([NewJob(id="one", type="mail")])
    return store


def modes(folder: Path) -> dict[str, int]:
    return {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}


async def test_nobody_else_may_read_a_store_or_its_copies(path: Path, tmp_path: Path) -> None:
    store = await filled(path)
    assert modes(tmp_path) == dict.fromkeys(("work.db", "work.db-wal", "work.db-shm"), 0o600)
    copy = tmp_path / "copy.db"
    backup(path, copy)
    await store.close()
    restore(copy, tmp_path / "other.db")
    assert set(modes(tmp_path).values()) == {0o600}


async def test_a_file_is_private_from_its_first_byte(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    connection = apsw.Connection

    def looking(*given: Any) -> apsw.Connection:
        seen.extend(modes(tmp_path).values())
        made = connection(*given)
        seen.extend(modes(tmp_path).values())
        return made

    monkeypatch.setattr("penstock.store.sqlite.connect.apsw.Connection", looking)
    await (await filled(path)).close()
    assert set(seen) == {0o600}


async def test_a_store_behind_a_link_that_leads_nowhere_yet_is_private(
    path: Path, tmp_path: Path
) -> None:
    (tmp_path / "there").mkdir()
    path.symlink_to(tmp_path / "there" / "real.db")
    await (await filled(path)).close()
    assert modes(tmp_path / "there") == {"real.db": 0o600}


async def test_what_somebody_opened_to_a_group_stays_open_to_it(path: Path, tmp_path: Path) -> None:
    await (await filled(path)).close()
    path.chmod(0o660)
    store = await filled(tmp_path / "work.db")
    assert set(modes(tmp_path).values()) == {0o660}
    backup(path, tmp_path / "copy.db")
    await store.close()
    restore(tmp_path / "copy.db", path)
    assert modes(tmp_path) == {"work.db": 0o660, "copy.db": 0o600}


@pytest.mark.parametrize(("mode", "passed"), [(0o600, True), (0o660, True), (0o644, False)])
async def test_the_doctor_looks_who_may_read_a_store(path: Path, mode: int, passed: bool) -> None:
    await (await filled(path)).close()
    path.chmod(mode)
    store = await filled(path)
    checks = {name: (found, told) for name, found, told in (await store.inspect()).checks}
    await store.close()
    assert checks["private"][0] is passed
    assert ("chmod 600" in checks["private"][1]) is (mode != 0o600)


async def test_a_write_ahead_log_without_its_file_is_kept_and_told_of(
    path: Path, tmp_path: Path
) -> None:
    store = await filled(path)
    path.unlink()
    wal = tmp_path / "work.db-wal"
    before = wal.read_bytes()
    assert before
    with pytest.raises(StoreUnavailable, match=r"work\.db-wal.*penstock restore"):
        await open_store(f"sqlite:///{path}").exists()
    with pytest.raises(StoreUnavailable, match=r"work\.db-wal.*penstock restore"):
        await filled(path)
    assert not path.exists()
    assert wal.read_bytes() == before
    await store.close()


async def test_a_store_whose_file_was_deleted_is_not_healthy(path: Path) -> None:
    store = await filled(path)
    path.unlink()
    health = await check_health(store, Settings(url=f"sqlite:///{path}"))
    assert health.status is HealthStatus.UNHEALTHY
    assert "moved or deleted" in health.checks["store"].detail
    assert "penstock restore" in health.checks["store"].detail
    await store.close()


async def test_a_store_whose_file_was_replaced_is_not_healthy(path: Path, tmp_path: Path) -> None:
    store = await filled(path)
    path.rename(tmp_path / "away.db")
    path.write_bytes(b"")
    with pytest.raises(StoreUnavailable, match="moved or deleted"):
        await store.transfer.marks()
    path.unlink()
    (tmp_path / "away.db").rename(path)
    assert await store.transfer.marks() == {}
    await store.close()


async def test_a_file_of_another_program_is_no_store(path: Path, tmp_path: Path) -> None:
    with closing(apsw.Connection(str(path))) as other:
        other.execute("CREATE TABLE orders (id INTEGER)")
    before = path.read_bytes()
    assert not await open_store(f"sqlite:///{path}").exists()
    path.with_name("empty.db").touch()
    assert not await open_store(f"sqlite:///{tmp_path}/empty.db").exists()
    assert path.read_bytes() == before
    with closing(apsw.Connection(str(path))) as other:
        migrate(other, str(path), FakeClock())
    assert await open_store(f"sqlite:///{path}").exists()


async def test_a_copy_takes_no_file_away_that_somebody_else_made(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await filled(path)
    theirs = [tmp_path / name for name in ("copy.db.part", "other.db.restoring")]
    for file in theirs:
        file.write_text("precious")
    backup(path, tmp_path / "copy.db")
    restore(tmp_path / "copy.db", tmp_path / "other.db")
    assert [file.read_text() for file in theirs] == ["precious"] * 2

    late = tmp_path / "late.db"
    monkeypatch.setattr(
        "penstock.store.sqlite.backup.verify", lambda *_: late.write_text("precious") and 1
    )
    with pytest.raises(StoreUnavailable, match="exists already"):
        backup(path, late)
    assert late.read_text() == "precious"
    await store.close()
