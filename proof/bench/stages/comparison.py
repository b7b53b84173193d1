"""Every system in turn on the same servers: enqueues in bulk and singly, drains, pickup."""

import os
import subprocess
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import msgspec

from proof.bench.peers.environment import Environments, PeerMissing
from proof.bench.peers.stores import Stores
from proof.bench.peers.system import BOTH, POSTGRES, REDIS, SQLITE, System
from proof.bench.peers.workers import worker_group
from proof.bench.processes import ProbeFailed, answer, ask_probe
from proof.bench.stages.stage import Bench, Stage

LIMITS = {SQLITE: "raw", POSTGRES: "postgres", REDIS: "redis"}
SINGLES = ("single/s", "single by a plain function/s")
"""Enqueues one right after the other, by a coroutine and by a function that is none."""

SETTLING_SECONDS = 1.0
TRIAL_SHARE = 4
FAILURES = (PeerMissing, ProbeFailed, subprocess.SubprocessError, OSError, msgspec.MsgspecError)


def limit_of(store: str) -> str:
    """What the readings of a store's raw limit are called after."""
    return f"raw limit ({POSTGRES if store == BOTH else store})"


class Comparison:
    """Runs the systems, notes their readings, and keeps what went wrong with any of them."""

    def __init__(self, bench: Bench, environments: Environments, stores: Stores) -> None:
        self._bench = bench
        self._environments = environments
        self._stores = stores
        self._trials: dict[str, dict[int, float]] = {}
        self.failures: dict[str, str] = {}

    def stages(self, systems: Sequence[System]) -> list[Stage]:
        """All there is to do, in order."""
        trials = [
            self._step(system, partial(self._try, setting))
            for system in systems
            if len(system.settings) > 1
            for setting in system.settings
        ]
        turns: list[Callable[[], None]] = []
        for _ in range(self._bench.scale.rounds):
            turns += [partial(self._limit, store) for store in LIMITS]
            for processes in (1, 2):
                turns += [self._step(system, partial(self._drain, processes)) for system in systems]
            turns += [self._step(system, self._in_a_row) for system in systems]
        installs = [self._step(system, self._environments.install) for system in systems]
        stages = [
            Stage("the peers' environments", installs),
            Stage("the peers' settings", trials),
            Stage("comparison", turns),
            Stage("pickup of each", [self._step(system, self._pickup) for system in systems]),
        ]
        return [stage for stage in stages if stage.steps]

    def setting(self, system: System) -> int:
        """The best of the settings that were tried."""
        tried = self._trials.get(system.key)
        return max(tried, key=lambda value: tried[value]) if tried else system.settings[0]

    def _step(self, system: System, action: Callable[[System], None]) -> Callable[[], None]:
        def step() -> None:
            if system.key in self.failures:
                return
            try:
                action(system)
            except FAILURES as error:
                self.failures[system.key] = str(error)

        return step

    def _limit(self, store: str) -> None:
        group, key, jobs = LIMITS[store], limit_of(store), self._bench.scale.jobs
        with self._stores.empty(store) as url:
            place = {"path": url.removeprefix("sqlite:///")} if store == SQLITE else {"url": url}
            bulk = ask_probe(f"{group}.enqueue", {**place, "jobs": jobs})
            drained = ask_probe(f"{group}.drain", place)
        self._bench.readings.add(f"{key} bulk/s", bulk)
        self._bench.readings.add(f"{key} drain/s", drained)

    def _try(self, setting: int, system: System) -> None:
        _, rate = self._fill_and_drain(system, self._jobs(system) // TRIAL_SHARE, setting, 1)
        self._trials.setdefault(system.key, {})[setting] = rate

    def _drain(self, processes: int, system: System) -> None:
        setting = self.setting(system)
        bulk, rate = self._fill_and_drain(system, self._jobs(system), setting, processes)
        name = "drain/s" if processes == 1 else "drain by two/s"
        self._bench.readings.add(f"{system.key} {name}", rate)
        if processes == 1:
            self._bench.readings.add(f"{system.key} bulk/s", bulk)

    def _in_a_row(self, system: System) -> None:
        with self._empty(system) as url:
            rates = self._ask(system, "in_a_row", url, self._bench.scale.peer_singles)
        for name, rate in zip(SINGLES, rates, strict=True):
            if rate is not None:
                self._bench.readings.add(f"{system.key} {name}", float(rate))

    def _pickup(self, system: System) -> None:
        count = self._bench.scale.peer_pickups
        with self._empty(system) as url:
            with self._workers(system, url, self.setting(system), 1) as workers:
                workers.release()
                time.sleep(SETTLING_SECONDS)
                self._ask(system, "singles", url, count)
                workers.wait_for(count)
            self._bench.readings.extend(f"{system.key} pickup ms", workers.pickups)

    def _fill_and_drain(
        self, system: System, jobs: int, setting: int, processes: int
    ) -> tuple[float, float]:
        with self._empty(system) as url:
            bulk = float(self._ask(system, "enqueue", url, jobs))
            with self._workers(system, url, setting, processes) as workers:
                began = workers.release()
                ended = workers.wait_for(jobs)
        return bulk, 1e9 * jobs / (ended - began)

    @contextmanager
    def _empty(self, system: System) -> Generator[str, None, None]:
        with self._stores.empty(system.store) as url:
            if system.needs_setup:
                self._ask(system, "setup", url)
            yield url

    def _jobs(self, system: System) -> int:
        return max(100, system.jobs // self._bench.scale.peer_divisor)

    def _ask(self, system: System, *arguments: object) -> Any:
        command = [*self._environments.command(system), *map(str, arguments)]
        return answer(system.key, command, self._environments.variables(system))

    def _workers(self, system: System, url: str, setting: int, processes: int) -> Any:
        command = [*self._environments.command(system), "work", url, str(setting)]
        variables = {**os.environ, **self._environments.variables(system)}
        log = self._bench.directory / "worker.log"
        return worker_group(system.key, command, variables, processes, log)
