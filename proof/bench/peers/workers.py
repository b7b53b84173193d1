"""Worker processes of one system, started together and watched until their jobs have ended."""

import queue
import subprocess
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from proof.bench.processes import ProbeFailed

READY_SECONDS = 60.0
STALLED_SECONDS = 20.0


class Report(msgspec.Struct, frozen=True):
    """What a worker says of itself; times are CLOCK_MONOTONIC's, in ns, and pickups in ms."""

    ready: bool = False
    done: int = 0
    last_ns: int = 0
    pickups: tuple[float, ...] = ()


class WorkerGroup:
    """One or two running worker processes."""

    def __init__(self, name: str, processes: Sequence["subprocess.Popen[str]"], log: Path) -> None:
        self._name = name
        self._processes = processes
        self._log = log
        self._reports: queue.SimpleQueue[tuple[int, Report | None]] = queue.SimpleQueue()
        self._latest: dict[int, Report] = {}
        self.pickups: list[float] = []
        self._readers = [
            threading.Thread(target=self._read, args=(place,), daemon=True)
            for place in range(len(processes))
        ]
        for reader in self._readers:
            reader.start()

    def release(self) -> int:
        """Wait until all are about to run and let them; the time of it in ns."""
        waiting = set(range(len(self._processes)))
        while waiting:
            place, report = self._next(READY_SECONDS)
            if report.ready:
                waiting.discard(place)
        began = time.monotonic_ns()
        for process in self._processes:
            assert process.stdin
            process.stdin.write("go\n")
            process.stdin.flush()
        return began

    def wait_for(self, jobs: int) -> int:
        """Wait until so many handlers have ended; the time of the last in ns."""
        while self.done < jobs:
            self._note(*self._next(STALLED_SECONDS))
        return max(report.last_ns for report in self._latest.values())

    @property
    def done(self) -> int:
        """How many handlers have ended."""
        return sum(report.done for report in self._latest.values())

    def kill(self) -> None:
        """End the processes."""
        for process in self._processes:
            process.kill()
        for reader in self._readers:
            reader.join()

    def _note(self, place: int, report: Report) -> None:
        self._latest[place] = report
        self.pickups += report.pickups

    def _next(self, seconds: float) -> tuple[int, Report]:
        try:
            place, report = self._reports.get(timeout=seconds)
        except queue.Empty:
            text = f"nothing happened for {seconds:.0f} s with {self.done} jobs done"
            raise ProbeFailed(self._name, text) from None
        if report is None:
            raise ProbeFailed(self._name, self._log.read_text("utf-8") or "a worker ended early")
        return place, report

    def _read(self, place: int) -> None:
        output: Any = self._processes[place].stdout
        for line in output:
            # A library may print there, too.
            with suppress(msgspec.MsgspecError):
                self._reports.put((place, msgspec.json.decode(line, type=Report)))
        self._reports.put((place, None))


@contextmanager
def worker_group(
    name: str, command: list[str], environment: dict[str, str], count: int, log: Path
) -> Generator[WorkerGroup, None, None]:
    """So many processes of one command; killed at the end, since their store is thrown away."""
    with ExitStack() as opened:
        errors = opened.enter_context(log.open("w", encoding="utf-8"))
        processes: list[subprocess.Popen[str]] = []
        while len(processes) < count:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=environment,
            )
            processes.append(opened.enter_context(process))
            opened.callback(process.kill)
        group = WorkerGroup(name, processes, log)
        opened.callback(group.kill)
        yield group
