import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from penstock.worker.autoscale import Crew, Policy
from penstock.worker.process import WorkerSpec
from tests.worker.autoscale import yard

ROOT = Path(__file__).parents[3]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
QUICK = (
    *("--up-depth", "2", "--down-depth", "1", "--up-cpu", "1000"),
    *("--cool-down", "100ms", "--calm", "100ms", "--interval", "50ms", "--concurrency", "1"),
)


class Scaling:
    """A running `penstock autoscale`, and what it says."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        assert process.stderr is not None
        self.seen: Counter[str] = Counter()
        self.lines = self._read(process.stderr)

    def wait_for(self, event: str) -> dict[str, Any]:
        """The next line of this kind."""
        return next(line for line in self.lines if line["event"] == event)

    def wait_for_all(self, event: str, times: int) -> None:
        """Until so many lines of this kind were said, since the beginning."""
        while self.seen[event] < times:
            next(self.lines)

    def _read(self, said: IO[str]) -> Iterator[dict[str, Any]]:
        for line in said:
            if line.startswith("{"):
                found = json.loads(line)
                self.seen[found["event"]] += 1
                yield found

    def end(self) -> int:
        """Drain, and see it end."""
        self.process.send_signal(signal.SIGTERM)
        for _ in self.lines:
            pass
        return self.process.wait()


@contextmanager
def scaling(folder: Path, *words: str) -> Iterator[Scaling]:
    command = (sys.executable, "-m", "penstock.cli", "autoscale", "tests.worker.autoscale.yard:app")
    url = ("--url", f"sqlite:///{folder}/work.db", "--log-json")
    with subprocess.Popen(
        (*command, *url, *QUICK, *words),
        cwd=folder,
        env=ENVIRONMENT,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Scaling(process)
        finally:
            process.kill()


@pytest.mark.thorough
async def test_workers_come_with_the_load_and_go_when_it_is_over(tmp_path: Path) -> None:
    app = yard.app
    app.settings = app.settings.replace(url=f"sqlite:///{tmp_path}/work.db")
    gate = tmp_path / "gate"
    async with app:
        handles = [await yard.hold.enqueue(str(gate)) for _ in range(6)]
        with scaling(tmp_path, "--min", "1", "--max", "2") as running:
            first = running.wait_for("autoscale_up")
            assert (first["before"], first["workers"]) == (0, 1)
            more = running.wait_for("autoscale_up")
            assert (more["before"], more["workers"]) == (1, 2)
            assert "queued, more than 2" in more["reason"]
            # One that is told to stop while it still starts has nothing to say.
            running.wait_for_all("worker_started", 2)
            gate.touch()
            fewer = running.wait_for("autoscale_down")
            assert (fewer["workers"], fewer["reason"]) == (1, "0 queued, fewer than 1")
            running.wait_for("worker_stopped")
            assert running.end() == 0
        for handle in handles:
            job = await handle.get()
            assert (job.status, job.rescues, job.fence) == ("completed", 0, 1)


def test_a_store_that_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    with scaling(tmp_path, "--types", "hold", "--url", f"sqlite:///{tmp_path}/no/such/x.db") as no:
        assert no.process.wait() == 2


async def test_a_crew_begins_with_nobody() -> None:
    crew = Crew(WorkerSpec(target="tests.worker.autoscale.yard:app"), Policy(most=3))
    assert crew.workers == 0
