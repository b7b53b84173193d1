"""How long a worker has been silent: what counts as a look for work, and what excuses it."""

import asyncio
import os
import socket
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock import Penstock, Worker
from penstock.model.store_errors import StoreUnavailable
from penstock.testing import FakeClock, Signals
from penstock.worker import health, pump, respawn
from penstock.worker.health import HealthFolder, kept_fresh, refresh, tell_systemd
from penstock.worker.process import WorkerSpec
from penstock.worker.supervisor import Supervisor
from tests.worker.running import working

HOUR = 3_600.0


class LaterTime:
    """The time as the pump sees it, which a test can put forward."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ahead = 0.0
        monkeypatch.setattr(pump, "time", SimpleNamespace(monotonic=self.monotonic))

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> LaterTime:
    return LaterTime(monkeypatch)


async def test_a_worker_that_polls_is_not_silent(app: Penstock, signals: Signals) -> None:
    @app.job
    async def task() -> None: ...

    async with working(app) as worker:
        began = time.monotonic()
        await (await task.enqueue()).result(timeout=30)
        assert worker.silent_seconds() <= time.monotonic() - began


async def test_a_worker_that_cannot_open_its_store_grows_silent(app: Penstock) -> None:
    @app.job
    async def task() -> None: ...

    async with app:
        worker = Worker(app, upkeep=False)
        before = worker.silent_seconds()
        assert worker.silent_seconds() > before


async def test_looks_that_a_store_refuses_are_signs_of_life(
    app: Penstock, signals: Signals, later: LaterTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.job
    async def task() -> None: ...

    async def refuse(*args: Any) -> None:
        signals.send("refused")
        raise StoreUnavailable("work.db", "its server is away")

    monkeypatch.setattr(pump, "RETRY_SECONDS", 0.001)
    async with working(app) as worker:
        with monkeypatch.context() as outage:
            outage.setattr(app.store.jobs, "claim", refuse)
            await task.enqueue()
            await signals.wait("refused")
            later.ahead = HOUR
            await signals.wait("refused", times=len(signals.values("refused")) + 3)
            assert worker.silent_seconds() < HOUR / 2


async def test_a_look_that_never_ends_is_silence(
    app: Penstock, signals: Signals, later: LaterTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.job
    async def task() -> None: ...

    async def hang(*args: Any) -> None:
        signals.send("asked")
        await asyncio.to_thread(signals.wait_in_thread, "go")
        raise StoreUnavailable("work.db", "its server is away")

    async with working(app) as worker:
        with monkeypatch.context() as outage:
            outage.setattr(app.store.jobs, "claim", hang)
            await task.enqueue()
            await signals.wait("asked")
            later.ahead = HOUR
            silent = worker.silent_seconds()
        signals.send("go")
    assert silent > HOUR / 2


async def test_a_worker_with_no_free_slot_need_not_look(
    app: Penstock, signals: Signals, later: LaterTime
) -> None:
    @app.job
    async def long() -> None:
        signals.send("started")
        await asyncio.to_thread(signals.wait_in_thread, "go")

    await long.enqueue()
    async with working(app, concurrency=1) as worker:
        await signals.wait("started")
        later.ahead = HOUR
        silent = worker.silent_seconds()
        signals.send("go")
    assert silent < HOUR / 2


async def test_a_blocked_event_loop_is_excused_until_its_handler_is_past_its_time(
    app: Penstock, clock: FakeClock, signals: Signals
) -> None:
    @app.job(timeout=60)
    async def blocking() -> None:
        # The event loop stands still in here, and the test looks from within.
        clock.advance(50)
        signals.send("within", worker.silent_seconds())
        clock.advance(50)
        signals.send("past", worker.silent_seconds())

    async with working(app) as worker:
        await (await blocking.enqueue()).result(timeout=30)
    assert signals.values("within")[0] < 50
    assert signals.values("past")[0] >= 50


def test_a_file_is_kept_as_fresh_as_its_process(
    tmp_path: Path, signals: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "REFRESH_SECONDS", 0.001)
    file = tmp_path / "worker-1"
    silences = [0.0, 500.0]

    def silent() -> float:
        found = silences.pop(0) if len(silences) > 1 else silences[0]
        signals.send("looked")
        return found

    with kept_fresh(str(file), silent):
        signals.wait_in_thread("looked", times=3)
    assert 490 < time.time() - file.stat().st_mtime < 600


def test_only_a_folder_with_a_supervisor_tells_anything(tmp_path: Path) -> None:
    folder = HealthFolder(tmp_path / "health")
    assert folder.read() == []
    folder.prepare()
    refresh(folder.file_of(0))
    assert folder.read() == []
    refresh(folder.file_of())
    assert [each.name for each in folder.read()] == ["supervisor", "worker-1"]
    assert folder.silent() == []
    refresh(folder.file_of(0), silent_seconds=HOUR)
    assert [each.name for each in folder.silent()] == ["worker-1"]
    folder.prepare()
    assert list(folder.folder.iterdir()) == []


async def test_a_worker_that_dies_whenever_it_starts_grows_silent(
    app: Penstock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = HealthFolder(tmp_path / "health")
    ages: list[float] = []

    async def die(self: Supervisor, index: int, owner: str) -> int:
        if len(ages) == 3:
            self.stop()
        file = folder.file_of(index)
        ages.append(time.time() - file.stat().st_mtime)
        refresh(file, silent_seconds=ages[-1] + 100)  # as if it had taken so long to die
        return 3

    monkeypatch.setattr(Supervisor, "_run_child", die)
    monkeypatch.setattr(respawn, "FIRST_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr("penstock.worker.supervisor.load_app", lambda *_: app)
    spec = WorkerSpec(target="shop:app", health=str(folder.folder))
    await Supervisor(spec, hears_signals=False).run()
    assert [round(age, -2) for age in ages] == [0, 100, 200, 300]
    assert list(folder.folder.iterdir()) == []


def test_a_folder_that_is_gone_ends_nobody(tmp_path: Path) -> None:
    refresh(tmp_path / "gone" / "worker-1")
    assert not (tmp_path / "gone").exists()


def test_the_service_manager_is_told_where_it_listens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    tell_systemd("READY=1")
    name = f"\0penstock-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(name)
        manager.settimeout(10)
        monkeypatch.setenv("NOTIFY_SOCKET", "@" + name[1:])
        tell_systemd("READY=1", "WATCHDOG=1")
        assert manager.recv(100) == b"READY=1\nWATCHDOG=1"
