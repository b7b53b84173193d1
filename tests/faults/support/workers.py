"""Real worker processes, bare or supervised, and what they left behind."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import msgspec
import psutil

from penstock.worker.process import WorkerSpec
from tests.faults.support.facts import query
from tests.faults.support.work import settings_of
from tests.support.fork_server import PATHS, ROOT, ForkedProcess, run_module

STEP_SECONDS = 0.01
TARGET = "tests.faults.support.jobs:app"


class Effect(NamedTuple):
    """One line a handler left."""

    word: str
    job_id: str
    attempt: int
    fence: int
    pid: int


class Bench:
    """A folder with a store, a file of effects and a gate that handlers wait for.

    Where a URL names the store, what needs a file of SQLite is not to be asked for.
    """

    def __init__(self, folder: Path, url: str | None = None) -> None:
        self.path = folder / "work.db"
        self.url = url or f"sqlite:///{self.path}"
        self.effects_path = folder / "effects"
        self.gate_path = folder / "gate"
        self.log_path = folder / "workers.log"
        self.effects_path.touch()

    @property
    def where(self) -> str:
        return str(self.effects_path)

    @property
    def gate(self) -> str:
        return str(self.gate_path)

    def open_gate(self, which: str = "") -> None:
        Path(self.gate + which).touch()

    def effects(self, word: str = "done") -> list[Effect]:
        lines = self.effects_path.read_text().splitlines()
        effects = [Effect(w, i, int(a), int(f), int(p)) for w, i, a, f, p in map(str.split, lines)]
        return [effect for effect in effects if effect.word == word]

    def counts(self) -> dict[str, int]:
        return dict(query(self.path, "SELECT status, count(*) FROM jobs GROUP BY status"))

    def figure(self, sql: str, *bindings: object) -> Any:
        return query(self.path, sql, *bindings)[0][0]

    def log(self) -> str:
        return self.log_path.read_text() if self.log_path.exists() else ""

    def events(self, *names: str) -> list[dict[str, Any]]:
        """The lines of the log that tell of these events."""
        return [line for line in self.log_lines() if line["event"] in names]

    def log_lines(self) -> list[dict[str, Any]]:
        """All whole lines of the log."""
        whole, _, _ = self.log().rpartition("\n")
        return [json.loads(line) for line in whole.splitlines() if line.startswith("{")]

    @contextmanager
    def worker(self, **spec: Any) -> "Iterator[WorkerProcess]":
        """A bare worker process."""
        described = self._described(spec)
        with self.log_path.open("ab") as log, open(os.devnull, "rb") as nothing:
            process = run_module(
                "penstock.worker.process",
                [described],
                stdin=nothing.fileno(),
                stdout=log.fileno(),
                stderr=log.fileno(),
                env=self._environment(),
            )
        with ended(WorkerProcess(process)) as worker:
            yield worker

    @contextmanager
    def supervisor(self, **spec: Any) -> "Iterator[WorkerProcess]":
        """A supervisor with worker processes of its own."""
        described = self._described(spec)
        with self.log_path.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.faults.support.supervisor", described],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=ROOT,
                env=self._environment(),
                start_new_session=True,
            )
        with ended(WorkerProcess(process)) as worker:
            yield worker

    def _described(self, spec: dict[str, Any]) -> str:
        """Return the specification of a worker as JSON."""
        store = settings_of(spec.pop("url", self.url))
        settings = {**spec.pop("settings", {}), **store}
        defaults = {"target": TARGET, "log_json": True, "owner": "test:1", "settings": settings}
        return msgspec.json.encode(WorkerSpec(**defaults | spec)).decode()

    def _environment(self) -> dict[str, str]:
        return os.environ | {"PYTHONPATH": os.pathsep.join(PATHS)}


class WorkerProcess:
    """A process and all its descendants, which end with the test."""

    def __init__(self, process: "ForkedProcess | subprocess.Popen[bytes]") -> None:
        self._process = process
        self._psutil = psutil.Process(process.pid)
        self._family: set[psutil.Process] = set()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        return self._process.poll()

    def signal(self, number: signal.Signals) -> None:
        self.children()
        self._process.send_signal(number)

    def terminate_twice(self) -> None:
        """Send SIGTERM twice; two that wait to be noticed would be one."""
        self.signal(signal.SIGTERM)
        wait_until(lambda: not is_pending(self.pid, signal.SIGTERM))
        self.signal(signal.SIGTERM)

    def wait(self, seconds: float = 30) -> int:
        return self._process.wait(seconds)

    def children(self) -> list[psutil.Process]:
        """Its living children, remembered so that none outlives the test."""
        with suppress(psutil.NoSuchProcess):
            found = self._psutil.children(recursive=True)
            self._family |= set(found)
            return found
        return []

    def end(self) -> None:
        self.children()
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGCONT)
        self._process.kill()
        self._process.wait()
        for process in self._family:
            with suppress(psutil.NoSuchProcess):
                process.kill()


@contextmanager
def ended(worker: WorkerProcess) -> Iterator[WorkerProcess]:
    """End a worker process and its descendants after the block."""
    try:
        yield worker
    finally:
        worker.end()


def freeze(worker: WorkerProcess, path: Path) -> None:
    """Stop a worker, but not in the middle of a write: its lock would stop everybody."""

    def frozen() -> bool:
        worker.signal(signal.SIGSTOP)
        if is_free(path):
            return True
        worker.signal(signal.SIGCONT)
        wait_until(lambda: is_free(path))
        return False

    wait_until(frozen)


def is_free(path: Path) -> bool:
    """Whether nobody holds the lock of a store's file."""
    connection = apsw.Connection(str(path))
    try:
        connection.set_busy_timeout(200)
        connection.execute("BEGIN IMMEDIATE; ROLLBACK")
        return True
    except apsw.BusyError:
        return False
    finally:
        connection.close()


def wait_until(true: Callable[[], Any], seconds: float = 30) -> Any:
    """Wait for something to become true, and return it; fail when it does not."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := true():
            return found
        time.sleep(STEP_SECONDS)
    raise AssertionError(f"not within {seconds} s: {getattr(true, '__name__', true)}")


def gone(pid: int) -> bool:
    """Whether a process has ended (a zombie has)."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def is_pending(pid: int, number: signal.Signals) -> bool:
    """Whether a process has not noticed a signal yet."""
    status = Path(f"/proc/{pid}/status").read_text()
    masks = [line.split()[1] for line in status.splitlines() if line[:6] in ("SigPnd", "ShdPnd")]
    return any(int(mask, 16) >> (number - 1) & 1 for mask in masks)
