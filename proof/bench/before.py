"""The version of penstock before this one, from the checkout's own history."""

import subprocess
import sys
from pathlib import Path

import msgspec

from proof.bench.call import Call
from proof.bench.processes import answer
from proof.bench.stages.stage import Bench


class Before:
    """Drains with the code of the commit that `benchmarks/before` names."""

    def __init__(self, source: Path) -> None:
        self._source = source

    @classmethod
    def of(cls, checkout: Path, scratch: Path) -> "Before | None":
        """Unpack that commit; none where the history does not reach so far."""
        commit = (checkout / "benchmarks" / "before").read_text("utf-8").split()[0]
        target = scratch / "before"
        packed = subprocess.run(
            ["git", "-C", checkout, "archive", "--format=tar", commit, "src"],
            capture_output=True,
            check=False,
        )
        if packed.returncode != 0:
            return None
        target.mkdir()
        subprocess.run(["tar", "-x", "-C", target], input=packed.stdout, check=True)
        return cls(target / "src")

    def drain(self, bench: Bench, concurrency: int) -> None:
        """Measure it on the same jobs."""
        with bench.fresh_file() as path:
            self._probe("raw.fill", path, jobs=bench.scale.jobs)
            drained = self._probe(
                "worker.drain", path, jobs=bench.scale.jobs, concurrency=concurrency
            )
            bench.readings.add("drain before/s", drained["rate"])

    def _probe(self, name: str, path: Path, **arguments: int) -> dict[str, float]:
        call = msgspec.json.encode(Call(name, {"path": str(path), **arguments})).decode()
        command = [sys.executable, "-m", "penstock.bench.child", call]
        found: dict[str, float] = answer(name, command, {"PYTHONPATH": str(self._source)})
        return found
