from itertools import pairwise
from typing import Any

import pytest

from penstock import Penstock, Status
from penstock.apps.agents.jobs import WORKERS
from penstock.apps.agents.options import OPTIONS
from penstock.config import Settings
from penstock.testing import FakeClock, drain, in_memory

HOUR = 3_600
DATA: dict[str, dict[str, Any]] = {
    "memory-consolidation": {"memoryIds": ["a", "b"]},
    "embedding-batch": {"items": [{"sourceId": "1", "text": "x"}], "namespace": "n"},
    "webhook-dispatch": {"webhookId": "w", "payload": {}},
    "pattern-training": {},
    "session-cleanup": {},
}
SEEN = {
    # type: priority, timeout in seconds, and the seconds between its executions
    "memory-consolidation": (4, 300, [5, 10]),
    "embedding-batch": (2, 60, [2, 4, 8, 16]),
    "webhook-dispatch": (1, 30, [1, 2, 4, 8, 16, 32, 64, 128, 256]),
    "pattern-training": (8, 3_600, [60]),
    "session-cleanup": (6, 120, [10, 20]),
}


@pytest.mark.parametrize("name", SEEN)
async def test_a_type_that_always_fails_is_run_as_often_and_as_far_apart_as_its_options_say(
    name: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts: list[int] = []

    async def fail(self: Any, data: Any, ctx: Any) -> None:
        starts.append(clock.now())
        raise RuntimeError("it always does")

    [worker] = [each for each in WORKERS if each.name == name]
    monkeypatch.setattr(worker, "process", fail)
    settings = Settings(extension={"agents": {"schedules": False}})
    app = Penstock("sqlite:///:memory:", extensions=["agents"], settings=settings)
    with in_memory(app, clock):
        job = await app.agents.enqueue(name, DATA[name])
        await drain(app, clock=clock, through=HOUR)
        dead = await job.get()
    priority, timeout, delays = SEEN[name]
    assert (dead.status, dead.priority) == (Status.DEAD_LETTER, priority)
    assert dead.timeout_ms == timeout * 1_000
    waits = [(later - earlier) / 1000 for earlier, later in pairwise(starts)]
    assert len(waits) == len(delays)
    for waited, delay in zip(waits, delays, strict=True):
        assert delay <= waited <= delay * 1.2 + 0.01


def test_all_eighteen_types_have_options_and_a_worker() -> None:
    assert {worker.name for worker in WORKERS} == set(OPTIONS)
    assert len(WORKERS) == len(OPTIONS) == 18


@pytest.mark.parametrize(
    ("name", "at_once", "rate"),
    [
        ("memory-consolidation", 5, (10, 1_000)),
        ("embedding-batch", 3, (5, 1_000)),
        ("webhook-dispatch", 20, (100, 1_000)),
    ],
)
def test_limits_of_a_type_hold_for_each_worker(
    name: str, at_once: int, rate: tuple[int, int]
) -> None:
    type_ = Penstock("sqlite:///:memory:", extensions=["agents"]).types[name]
    assert (type_.per_worker, type_.rate_per_worker) == (at_once, rate)
    assert type_.retry_cap_ms == HOUR * 1_000
