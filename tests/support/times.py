"""Pytest plugin: record the wall and processor time of each case.

`PENSTOCK_TEST_TIMES` names the file; without it the plugin does nothing. Every process of a run
appends one JSON line per case, over setup, call and teardown. `tools/test_times.py` reads them.

Processor time is that of the test process, with all its threads, and of the children it has waited
for. It misses what still runs when the case ends. A shared fixture counts for the first case that
uses it. Servers of the session are waited for after the last case of a process: they have a line of
their own, whose tier is `session`. A child that another process reaps is never counted: a daemon,
or a browser that forks.
"""

import json
import os
import resource
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import NamedTuple

import pytest

VARIABLE = "PENSTOCK_TEST_TIMES"
SESSION = "session"


class Clocks(NamedTuple):
    """Wall and processor seconds, each since some fixed moment."""

    wall: float
    cpu: float


def read_clocks() -> Clocks:
    """Read both clocks of this process and the children it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Clocks(time.perf_counter(), time.process_time() + children.ru_utime + children.ru_stime)


class CaseTimes:
    """A recorder of the cases that one process runs."""

    def __init__(
        self,
        path: Path,
        tier_of: Callable[[pytest.Item], str],
        read: Callable[[], Clocks] = read_clocks,
    ) -> None:
        self._path = path
        self._tier_of = tier_of
        self._read = read
        self._last_teardown: Clocks | None = None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        """Measure one case."""
        start = self._read()
        outcome = yield
        end = self._read()
        case_end = self._last_teardown or end
        self._last_teardown = None
        self._append(item.nodeid, self._tier_of(item), start, case_end)
        if nextitem is None:
            self._append(SESSION, SESSION, case_end, end)
        return outcome

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(
        self, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        """End the last case here: its teardown stops the servers of the session."""
        if nextitem is None:
            self._last_teardown = self._read()
        return (yield)

    def _append(self, nodeid: str, tier: str, start: Clocks, end: Clocks) -> None:
        row = {
            "nodeid": nodeid,
            "tier": tier,
            "wall_s": round(end.wall - start.wall, 4),
            "cpu_s": round(end.cpu - start.cpu, 4),
        }
        # One write to a file opened for appending: lines of several processes do not mix.
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(file, json.dumps(row).encode() + b"\n")
        finally:
            os.close(file)


def pytest_configure(config: pytest.Config) -> None:
    """Start recording if the environment names a file."""
    path = os.environ.get(VARIABLE)
    if path:
        from tests.support.tiers import tier_of

        config.pluginmanager.register(CaseTimes(Path(path), tier_of), "penstock-case-times")
