"""How long a batch takes in each stage on its way into the log and out of it."""

import time
from collections import deque
from typing import NamedTuple

LATEST = 1_000
"""So many batches are remembered."""


class Work(NamedTuple):
    """How long one thread took a batch through a stage, and how long of that it worked.

    The rest it waited, for Python's lock or for a processor. Both are in seconds.
    """

    stage: str
    seconds: float
    cpu: float


class Stopwatch:
    """Measures the work of the thread that made it."""

    def __init__(self) -> None:
        self._began, self._worked = time.perf_counter(), time.thread_time()

    def work(self, stage: str) -> Work:
        """What was done since it was made."""
        cpu = time.thread_time() - self._worked  # first: it is never more than the time that passed
        return Work(stage, time.perf_counter() - self._began, cpu)


class Stages:
    """How long each stage took for the latest batches."""

    def __init__(self) -> None:
        self._seconds: dict[str, deque[float]] = {}

    def add(self, stage: str, began: float, batches: float = 1) -> None:
        """Take in batches that began a stage then, and have just ended it together."""
        self._add(stage, (time.perf_counter() - began) / batches)

    def add_work(self, work: Work) -> None:
        """Take in a batch; how long a thread worked on it stands beside, as `STAGE_cpu`."""
        self._add(work.stage, work.seconds)
        self._add(f"{work.stage}_cpu", work.cpu)

    def percentiles(self) -> dict[str, list[float]]:
        """Milliseconds at p50, p95 and p99 of every stage."""
        return {stage: _percentiles(list(kept)) for stage, kept in self._seconds.items()}

    def _add(self, stage: str, seconds: float) -> None:
        self._seconds.setdefault(stage, deque(maxlen=LATEST)).append(seconds)


def _percentiles(seconds: list[float]) -> list[float]:
    ordered = sorted(seconds)
    return [
        round(1_000 * ordered[min(len(ordered) - 1, len(ordered) * n // 100)], 3)
        for n in (50, 95, 99)
    ]
