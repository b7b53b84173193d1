"""Drains: by bare statements, by a worker, with a long history in the file, by a peer."""

from functools import partial
from pathlib import Path

from proof.bench.before import Before
from proof.bench.peer import Huey
from proof.bench.processes import probe
from proof.bench.stages.stage import Bench, Stage

CONCURRENCY = 100
LOW_CONCURRENCY = 10


def memory(bench: Bench) -> Stage:
    """One worker drains twenty times the jobs; the file it leaves is the history of `drain`."""
    path = bench.history_file
    return Stage(
        "memory",
        [
            lambda: probe("raw.fill", path, jobs=bench.scale.history),
            partial(_drain_noting_memory, bench, path),
        ],
    )


def drain(bench: Bench, huey: Huey | None, before: Before | None) -> Stage:
    """The same jobs drained in turn by everything that is compared."""
    steps = [partial(huey.try_threads, bench, threads) for threads in huey.THREADS] if huey else []
    for _ in range(bench.scale.repetitions):
        steps += [
            partial(_raw, bench),
            partial(_worker, bench, CONCURRENCY, "drain/s"),
            partial(_with_history, bench),
            partial(_worker, bench, LOW_CONCURRENCY, "drain by 10/s"),
        ]
        if before:
            steps.append(partial(before.drain, bench, CONCURRENCY))
        if huey:
            steps += [partial(huey.drain, bench), partial(huey.drain_without_fsync, bench)]
    return Stage("drain", steps)


def _raw(bench: Bench) -> None:
    with bench.fresh_file() as path:
        probe("raw.fill", path, jobs=bench.scale.jobs)
        bench.readings.add("raw drain/s", probe("raw.drain", path))


def _worker(bench: Bench, concurrency: int, name: str) -> None:
    with bench.fresh_file() as path:
        _fill_and_drain(bench, path, concurrency, name)


def _with_history(bench: Bench) -> None:
    _fill_and_drain(bench, bench.history_file, CONCURRENCY, "drain with history/s")


def _fill_and_drain(bench: Bench, path: Path, concurrency: int, name: str) -> None:
    probe("raw.fill", path, jobs=bench.scale.jobs)
    answer = probe("worker.drain", path, jobs=bench.scale.jobs, concurrency=concurrency)
    bench.readings.add(name, answer["rate"])


def _drain_noting_memory(bench: Bench, path: Path) -> None:
    scale = bench.scale
    answer = probe(
        "worker.drain",
        path,
        jobs=scale.history,
        concurrency=CONCURRENCY,
        mark=scale.memory_mark,
    )
    bench.readings.add("memory at mark MB", answer["mark_mb"])
    bench.readings.add("memory at end MB", answer["end_mb"])
