"""PostgreSQL alone and with Redis beside it, under few and many workers: busy, idle, pickup.

There are at most two worker processes, because two cores can run no more of them; beyond that
each holds several workers, which share nothing but the interpreter.
"""

import os
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
import psutil

from penstock.bench.peers.workers import WorkerGroup, worker_group
from penstock.bench.processes import answer
from penstock.bench.stages.stage import Bench, Stage
from penstock.testing.servers import PostgresServer, RedisServer

WORKERS = (2, 8, 32)
PROCESSES = 2
SETTLING_SECONDS = 1.5
DATABASE = "fleet"


class Way(msgspec.Struct, frozen=True):
    """How work is found: with Redis or without, and with how many ready jobs of a lane in it."""

    name: str
    redis: bool
    window: int = 0


WAYS = (
    Way("PostgreSQL alone", redis=False),
    Way("wake-ups", redis=True),
    Way("wake-ups and window", redis=True, window=5_000),
)


class Fleet:
    """The servers, and the measurements on them."""

    def __init__(self, bench: Bench, checkout: Path) -> None:
        self._bench = bench
        self._peer = checkout / "benchmarks" / "peers" / "penstock_fleet_peer.py"
        self._postgres = PostgresServer(options={"max_connections": "400"})
        self._valkey = RedisServer()

    def __enter__(self) -> Self:
        self._postgres.start()
        self._valkey.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._valkey.stop()
        self._postgres.stop()

    def stages(self) -> list[Stage]:
        """The ways in turn, so that noise meets all of them."""
        drains = [
            partial(self._drain, way, workers)
            for workers in WORKERS
            for _ in range(self._bench.scale.rounds)
            for way in WAYS
        ]
        presences = [partial(self._presence, way, n) for n in WORKERS for way in WAYS]
        return [Stage("dispatch, busy", drains), Stage("dispatch, idle", presences)]

    def _drain(self, way: Way, workers: int) -> None:
        jobs = self._bench.scale.jobs
        with self._empty(way) as url:
            self._note(way, workers, "bulk/s", self._ask("enqueue", url, jobs))
            with self._working(url, workers) as group:
                began = group.release()
                ended = group.wait_for(jobs)
        self._note(way, workers, "drain/s", 1e9 * jobs / (ended - began))

    def _presence(self, way: Way, workers: int) -> None:
        count = self._bench.scale.peer_pickups
        with self._empty(way) as url, self._working(url, workers) as group:
            group.release()
            time.sleep(SETTLING_SECONDS)
            before, began = self._cpu_seconds(), time.perf_counter()
            time.sleep(self._bench.scale.idle_seconds)
            passed = time.perf_counter() - began
            for place, used in self._cpu_seconds().items():
                self._note(way, workers, f"idle {place} %", 100 * (used - before[place]) / passed)
            self._ask("singles", url, count)
            group.wait_for(count)
        self._bench.readings.extend(_name(way, workers, "pickup ms"), group.pickups)

    @contextmanager
    def _empty(self, way: Way) -> Generator[str, None, None]:
        self._postgres.drop_database(DATABASE)
        url = self._postgres.create_database(DATABASE)
        self._valkey.ask("FLUSHALL")
        if way.redis:
            url = f"{url} {self._valkey.url} {way.window}"
        self._ask("setup", url)
        yield url

    @contextmanager
    def _working(self, url: str, workers: int) -> Generator[WorkerGroup, None, None]:
        command = [*self._command("work", url), str(workers // PROCESSES)]
        log = self._bench.directory / "fleet.log"
        with worker_group("dispatch", command, dict(os.environ), PROCESSES, log) as group:
            yield group

    def _ask(self, *arguments: object) -> Any:
        return answer("dispatch", self._command(*map(str, arguments)))

    def _command(self, *arguments: str) -> list[str]:
        return [sys.executable, str(self._peer), *arguments]

    def _cpu_seconds(self) -> dict[str, float]:
        """What the servers and the workers have used so far."""
        peers = [p for p in psutil.Process().children() if str(self._peer) in p.cmdline()]
        postmaster = psutil.Process(self._postgres.pid)
        return {
            "PostgreSQL": _used(postmaster, *postmaster.children()),
            "Valkey": _used(psutil.Process(self._valkey.pid)),
            "workers": _used(*peers),
        }

    def _note(self, way: Way, workers: int, what: str, value: float) -> None:
        self._bench.readings.add(_name(way, workers, what), value)


def _name(way: Way, workers: int, what: str) -> str:
    return f"{way.name}, {workers} workers, {what}"


def _used(*processes: psutil.Process) -> float:
    total = 0.0
    for process in processes:
        times = process.cpu_times()
        total += times.user + times.system
    return total
