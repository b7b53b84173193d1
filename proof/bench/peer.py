"""huey, the peer on SQLite, in an environment of the benchmark's own."""

from pathlib import Path
from typing import ClassVar

from proof.bench.peers.environment import Environments
from proof.bench.peers.system import PEERS
from proof.bench.processes import answer
from proof.bench.stages.stage import Bench


class Huey:
    """Runs `benchmarks/peers/huey_drain.py`; finds its best number of threads first."""

    THREADS: ClassVar = (1, 4, 8)

    def __init__(self, checkout: Path) -> None:
        self._environments = Environments(checkout)
        self._script = checkout / "benchmarks" / "peers" / "huey_drain.py"
        self._rates: dict[int, float] = {}

    @property
    def best_threads(self) -> int:
        """The setting with the highest rate of those tried."""
        return max(self._rates, key=lambda threads: self._rates[threads])

    def install(self) -> None:
        """Make its environment, unless it works already."""
        (huey,) = (peer for peer in PEERS if peer.name == "huey")
        self._environments.install(huey)

    def try_threads(self, bench: Bench, threads: int) -> None:
        """Measure one setting."""
        self._rates[threads] = self._run(bench, bench.scale.peer_trial_jobs, threads, "default")

    def drain(self, bench: Bench) -> None:
        """Measure the best setting, with the disk waited for as SQLite does by default."""
        rate = self._run(bench, bench.scale.peer_jobs, self.best_threads, "default")
        bench.readings.add("huey/s", rate)

    def drain_without_fsync(self, bench: Bench) -> None:
        """The same, never waiting for the disk."""
        rate = self._run(bench, bench.scale.peer_jobs, self.best_threads, "off")
        bench.readings.add("huey without fsync/s", rate)

    def _run(self, bench: Bench, jobs: int, threads: int, fsync: str) -> float:
        with bench.fresh_file() as path:
            command = [self._environments.python("huey"), self._script, path, jobs, threads, fsync]
            return float(answer("huey", [str(part) for part in command]))
