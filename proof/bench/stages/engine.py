"""Limits, tenants, flows, schedules and explain: what they cost beside plain draining."""

from functools import partial

from proof.bench.processes import cpu_percents, probe, worker_process
from proof.bench.stages.stage import Bench, Stage

CONCURRENCY = 100
LIMIT = 10
TENANTS = 10


def held_drain(bench: Bench) -> Stage:
    """Draining under a limit, for ten tenants and when all falls due at once, beside without."""
    steps = []
    for _ in range(bench.scale.repetitions):
        steps += [partial(_plain, bench), partial(_due, bench)]
        steps += [partial(_limited, bench), partial(_tenants, bench)]
    return Stage("limits, tenants and due times", steps)


def flows(bench: Bench) -> Stage:
    """One job after many, and many one after the other."""
    steps = []
    for _ in range(bench.scale.repetitions):
        steps += [partial(_fan_in, bench), partial(_chain, bench)]
    return Stage("flows", steps)


def schedules(bench: Bench) -> Stage:
    """The processor time of a worker that has schedules to mind, beside one that has none."""
    return Stage(
        "schedules", [partial(_mind, bench, 0), partial(_mind, bench, bench.scale.schedules)]
    )


def explain(bench: Bench) -> Stage:
    """Why does it not run? Asked of a file with a long history."""
    return Stage("explain", [partial(_explain, bench)])


def _plain(bench: Bench) -> None:
    with bench.fresh_file() as path:
        probe("raw.fill", path, jobs=bench.scale.jobs)
        _drain(bench, "plain drain/s")


def _due(bench: Bench) -> None:
    with bench.fresh_file() as path:
        probe("engine.put_off", path, jobs=bench.scale.jobs)
        _drain(bench, "due drain/s")


def _limited(bench: Bench) -> None:
    with bench.fresh_file() as path:
        probe("raw.fill", path, jobs=bench.scale.jobs)
        probe("engine.limit", path, concurrency=LIMIT)
        _drain(bench, "limited drain/s")


def _tenants(bench: Bench) -> None:
    with bench.fresh_file() as path:
        probe("raw.fill", path, jobs=bench.scale.jobs, tenants=TENANTS)
        _drain(bench, "tenants drain/s")


def _drain(bench: Bench, name: str) -> None:
    path = bench.step_file
    answer = probe("worker.drain", path, jobs=bench.scale.jobs, concurrency=CONCURRENCY)
    bench.readings.add(name, answer["rate"])


def _fan_in(bench: Bench) -> None:
    with bench.fresh_file() as path:
        seconds = probe("engine.fan_in", path, parents=bench.scale.parents)
    bench.readings.add("fan-in s", seconds)


def _chain(bench: Bench) -> None:
    with bench.fresh_file() as path:
        rate = probe("engine.chain", path, links=bench.scale.links)
    bench.readings.add("chain links/s", rate)


def _mind(bench: Bench, count: int) -> None:
    with bench.fresh_file() as path:
        probe("engine.schedule", path, count=count)
        with worker_process(path, CONCURRENCY) as worker:
            (used,) = cpu_percents(bench.scale.idle_seconds, worker)
    bench.readings.add("scheduling %" if count else "not scheduling %", used)


def _explain(bench: Bench) -> None:
    taken = probe("engine.explain", bench.history_file, times=bench.scale.singles)
    bench.readings.extend("explain ms", taken)
