"""The server: single and bulk enqueues over HTTP, the dashboard, and what it all costs."""

from functools import partial

import psutil

from proof.bench.processes import ask_probe, probe, server_process, worker_process
from proof.bench.stages.stage import Bench, Stage

WORKER_CONCURRENCY = 100
BATCH = 1_000


def posts(bench: Bench) -> Stage:
    """Single jobs at a steady rate, beside a busy worker."""
    return Stage("POST /api/jobs", [partial(_posts, bench)])


def bulk_posts(bench: Bench) -> Stage:
    """Batches by the library and over HTTP, in turn."""
    steps = []
    for _ in range(bench.scale.repetitions):
        steps += [partial(_library, bench), partial(_bulk, bench)]
    return Stage("bulk over HTTP", steps)


def dashboard(bench: Bench) -> Stage:
    """An idle tab, then pages and lists, on a file with a long history."""
    return Stage("dashboard", [partial(_tab, bench), partial(_fill, bench), partial(_look, bench)])


def _posts(bench: Bench) -> None:
    scale = bench.scale
    with bench.fresh_file() as path:
        probe("raw.fill", path, jobs=scale.drained_beside)
        headers = probe("server.admit", path)
        with server_process(path) as (server, address):
            with worker_process(path, WORKER_CONCURRENCY):
                taken = probe(
                    "server.posts",
                    path,
                    address=address,
                    headers=headers,
                    requests=scale.requests,
                    rate=scale.request_rate,
                )
            _note_memory(bench, server)
    bench.readings.extend("post ms", taken)


def _library(bench: Bench) -> None:
    with bench.fresh_file() as path:
        rate = probe("client.enqueue_many", path, jobs=bench.scale.jobs, batch=BATCH)
    bench.readings.add("library by 1000/s", rate)


def _bulk(bench: Bench) -> None:
    with bench.fresh_file() as path:
        asked = {"headers": probe("server.admit", path), "jobs": bench.scale.jobs, "batch": BATCH}
        with server_process(path) as (server, address):
            rate = ask_probe("server.batches", {"address": address, **asked})
            _note_memory(bench, server)
    bench.readings.add("posted by 1000/s", rate)


def _tab(bench: Bench) -> None:
    path = bench.history_file
    asked = {"headers": probe("server.admit", path), "seconds": bench.scale.idle_seconds}
    with worker_process(path, WORKER_CONCURRENCY), server_process(path) as (server, address):
        used = ask_probe("server.tab", {"address": address, "pid": server.pid, **asked})
    bench.readings.add("server without a tab %", used["without"])
    bench.readings.add("server with a tab %", used["with"])


def _fill(bench: Bench) -> None:
    probe("server.cancel_some", bench.history_file)
    probe("raw.fill", bench.history_file, jobs=bench.scale.backlog)


def _look(bench: Bench) -> None:
    path = bench.history_file
    asked = {"headers": probe("server.admit", path), "times": bench.scale.looks}
    with server_process(path) as (server, address):
        found = ask_probe("server.looks", {"address": address, **asked})
        _note_memory(bench, server)
    for name, taken in found.items():
        bench.readings.extend(name, taken)


def _note_memory(bench: Bench, server: psutil.Process) -> None:
    bench.readings.add("server MB", server.memory_info().rss / 1e6)
