"""How long a batch takes in each stage on its way into the log and out of it."""

import time
from collections import deque

LATEST = 1_000
"""So many batches are remembered."""


class Stages:
    """How long each stage took for the latest batches."""

    def __init__(self) -> None:
        self._seconds: dict[str, deque[float]] = {}

    def add(self, stage: str, began: float, batches: float = 1) -> None:
        """Take in batches that began a stage then, and have just ended it together."""
        seconds = (time.perf_counter() - began) / batches
        self._seconds.setdefault(stage, deque(maxlen=LATEST)).append(seconds)

    def add_work(self, stage: str, began: float, worked: float) -> None:
        """Take in a batch that this thread alone has taken through a stage.

        `worked` is its `time.thread_time()` then: beside how long it took stands, as `STAGE_cpu`,
        how long it worked and did not wait for Python's lock or for a processor.
        """
        cpu = time.thread_time() - worked  # first: it is never more than the time that passed
        self.add(stage, began)
        self._seconds.setdefault(f"{stage}_cpu", deque(maxlen=LATEST)).append(cpu)

    def percentiles(self) -> dict[str, list[float]]:
        """Milliseconds at p50, p95 and p99 of every stage."""
        return {stage: _percentiles(list(kept)) for stage, kept in self._seconds.items()}


def _percentiles(seconds: list[float]) -> list[float]:
    ordered = sorted(seconds)
    return [
        round(1_000 * ordered[min(len(ordered) - 1, len(ordered) * n // 100)], 3)
        for n in (50, 95, 99)
    ]
