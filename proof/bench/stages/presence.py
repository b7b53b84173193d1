"""What a worker costs and how quick it is while there is little to do, and what an import costs."""

import subprocess
import sys
import time
from functools import partial

from proof.bench.processes import cpu_percents, probe, supervised_worker, worker_process
from proof.bench.stages.stage import Bench, Stage

GAPS_MS = (5.0, 30.0)
WORKER_CONCURRENCY = 100


def pickup(bench: Bench) -> Stage:
    """From an enqueue in one process to the start of the handler in another."""
    return Stage("pickup", [partial(_pickup, bench)])


def idle(bench: Bench) -> Stage:
    """The processor time of a worker and its supervisor that have nothing to do."""
    return Stage("idle worker", [partial(_idle, bench)])


def import_time(bench: Bench) -> Stage:
    """The interpreter's start with and without `import penstock`, in turn."""
    steps = []
    for _ in range(bench.scale.imports):
        steps += [
            partial(_start, bench, "interpreter start ms", "pass"),
            partial(_start, bench, "import penstock ms", "import penstock"),
        ]
    return Stage("import", steps)


def _pickup(bench: Bench) -> None:
    with bench.fresh_file() as path, worker_process(path, WORKER_CONCURRENCY):
        taken = probe("client.pickups", path, jobs=bench.scale.pickups, gaps_ms=GAPS_MS)
    bench.readings.extend("pickup ms", taken)


def _idle(bench: Bench) -> None:
    with bench.fresh_file() as path, supervised_worker(path) as (supervisor, worker):
        used = cpu_percents(bench.scale.idle_seconds, worker, supervisor)
    bench.readings.add("idle worker %", used[0])
    bench.readings.add("idle supervisor %", used[1])


def _start(bench: Bench, name: str, code: str) -> None:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    bench.readings.add(name, (time.perf_counter() - began) * 1000)
