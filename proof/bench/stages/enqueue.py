"""Bulk and single enqueues."""

from functools import partial

from proof.bench.processes import probe, worker_process
from proof.bench.stages.stage import Bench, Stage

LOAD_GAP_MS = 2.0
WORKER_CONCURRENCY = 100
JOBS_OF_A_TASK = 5


def bulk_enqueue(bench: Bench) -> Stage:
    """The raw limit and penstock in batches of 1,000 and of 100."""
    steps = []
    for _ in range(bench.scale.repetitions):
        steps.append(partial(_raw, bench))
        steps.extend(partial(_many, bench, batch) for batch in (1000, 100))
    return Stage("bulk enqueue", steps)


def single_enqueue(bench: Bench) -> Stage:
    """One job at a time: alone, from many tasks and processes at once, and beside a worker."""
    steps = []
    for _ in range(bench.scale.repetitions):
        steps += [partial(_singles, bench), partial(_concurrently, bench)]
    beside_others = [partial(_by_many_processes, bench), partial(_under_load, bench)]
    return Stage("single enqueue", [*steps, *beside_others])


def _raw(bench: Bench) -> None:
    with bench.fresh_file() as path:
        rate = probe("raw.enqueue", path, jobs=bench.scale.jobs)
    bench.readings.add("raw enqueue/s", rate)


def _many(bench: Bench, batch: int) -> None:
    with bench.fresh_file() as path:
        rate = probe("client.enqueue_many", path, jobs=bench.scale.jobs, batch=batch)
    bench.readings.add(f"enqueue by {batch}/s", rate)


def _singles(bench: Bench) -> None:
    with bench.fresh_file() as path:
        answer = probe("client.singles", path, jobs=bench.scale.singles)
    taken = answer["penstock"]
    bench.readings.extend("raw single ms", answer["bare"])
    bench.readings.extend("single ms", taken)
    bench.readings.add("sequential/s", 1000 * len(taken) / sum(taken))


def _concurrently(bench: Bench) -> None:
    scale = bench.scale
    with bench.fresh_file() as path:
        rate = probe(
            "client.concurrently", path, jobs=max(10 * scale.singles, 50), enqueuers=scale.enqueuers
        )
    bench.readings.add("concurrent/s", rate)


def _by_many_processes(bench: Bench) -> None:
    scale = bench.scale
    with bench.fresh_file() as path:
        probe("raw.fill", path, jobs=1)  # what is measured is not who makes the file
        taken = probe(
            "client.producers",
            path,
            processes=scale.producers,
            tasks=scale.enqueuers,
            jobs=JOBS_OF_A_TASK,
        )
    bench.readings.extend("crowded single ms", taken)


def _under_load(bench: Bench) -> None:
    with bench.fresh_file() as path:
        probe("raw.fill", path, jobs=bench.scale.backlog)
        with worker_process(path, WORKER_CONCURRENCY):
            taken = probe("client.under_load", path, jobs=bench.scale.singles, gap_ms=LOAD_GAP_MS)
    bench.readings.extend("loaded single ms", taken)
