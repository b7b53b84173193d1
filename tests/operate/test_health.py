"""Health: each check from well to unwell."""

from pathlib import Path
from typing import Any

import pytest

from penstock import Penstock
from penstock.config import Settings
from penstock.model.controls import DepthLimits, Limit, LimitKind, LimitScope, LimitState
from penstock.operate import health
from penstock.operate.health import (
    HealthStatus,
    check_health,
    dead_check,
    queue_check,
    store_check,
    worker_check,
    worst,
)
from penstock.store.contract import QueueDepth, WorkerInfo
from penstock.testing import FakeClock, drain, in_memory
from proof.conformance.build import dead_job
from tests.support.workers import a_worker

HOUR_MS = 3_600_000


def a_depth(queue: str = "mail", **changes: Any) -> QueueDepth:
    return QueueDepth(queue=queue, **changes)


def at_most(queue: str, depth: int) -> LimitState:
    limit = Limit(scope=LimitScope.QUEUE, name=queue, kind=LimitKind.DEPTH, capacity=depth)
    return LimitState(limit=limit, used=0)


@pytest.mark.parametrize(
    ("ping_ms", "status"),
    [(0.2, HealthStatus.HEALTHY), (99.9, HealthStatus.HEALTHY), (100, HealthStatus.DEGRADED)],
)
def test_a_store_is_well_while_it_answers_within_a_tenth_of_a_second(
    ping_ms: float, status: HealthStatus
) -> None:
    assert store_check(ping_ms).status is status


@pytest.mark.parametrize(
    ("workers", "minimum", "status"),
    [
        ([a_worker()], 1, HealthStatus.HEALTHY),
        ([], 0, HealthStatus.HEALTHY),
        ([], 1, HealthStatus.UNHEALTHY),
        ([a_worker(heartbeat_age_ms=30_000)], 1, HealthStatus.UNHEALTHY),
        ([a_worker()], 2, HealthStatus.DEGRADED),
        ([a_worker("a"), a_worker("b", heartbeat_age_ms=60_000)], 1, HealthStatus.HEALTHY),
        ([a_worker(poll_age_ms=10_001)], 1, HealthStatus.DEGRADED),
        ([a_worker(poll_age_ms=10_001, state="draining")], 1, HealthStatus.HEALTHY),
        ([a_worker(state="degraded")], 1, HealthStatus.DEGRADED),
    ],
)
def test_workers_are_well_while_enough_of_them_live_and_poll(
    workers: list[WorkerInfo], minimum: int, status: HealthStatus
) -> None:
    assert worker_check(workers, minimum).status is status


def test_the_age_of_each_workers_last_poll_is_told() -> None:
    found = worker_check([a_worker("a", poll_age_ms=7), a_worker("b", poll_age_ms=9)], 1)
    assert found.figures["poll_age_ms"] == {"node:a": 7, "node:b": 9}


@pytest.mark.parametrize(
    ("depth", "paused", "status", "words"),
    [
        (a_depth(queued=9), set(), HealthStatus.HEALTHY, "None is full"),
        (a_depth(queued=10), set(), HealthStatus.DEGRADED, "Full: mail"),
        (a_depth(queued=1), {"mail"}, HealthStatus.DEGRADED, "Paused while jobs wait: mail"),
        (a_depth(), {"mail"}, HealthStatus.HEALTHY, "None is full"),
        (a_depth(oldest_queued_ms=HOUR_MS), set(), HealthStatus.HEALTHY, "None is full"),
        (a_depth(oldest_queued_ms=HOUR_MS + 1), set(), HealthStatus.DEGRADED, "over an hour: mail"),
    ],
)
def test_queues_are_well_while_none_is_full_held_back_or_left_lying(
    depth: QueueDepth, paused: set[str], status: HealthStatus, words: str
) -> None:
    found = queue_check([depth], paused, DepthLimits((), 10))
    assert found.status is status
    assert words in found.detail


def test_a_queues_own_limit_goes_before_the_default() -> None:
    def status(queued: int, *limits: LimitState, default: int) -> HealthStatus:
        return queue_check([a_depth(queued=queued)], set(), DepthLimits(limits, default)).status

    assert status(10, at_most("mail", 11), default=10) is HealthStatus.HEALTHY
    assert status(5, at_most("*", 5), default=10) is HealthStatus.DEGRADED
    assert status(10, default=0) is HealthStatus.HEALTHY


@pytest.mark.parametrize(
    ("count", "status"),
    [
        (0, HealthStatus.HEALTHY),
        (1, HealthStatus.DEGRADED),
        (99, HealthStatus.DEGRADED),
        (100, HealthStatus.UNHEALTHY),
    ],
)
def test_some_dead_letters_are_a_warning_and_many_an_emergency(
    count: int, status: HealthStatus
) -> None:
    assert dead_check(count, 100).status is status


def test_everything_is_as_well_as_the_worst_of_it() -> None:
    assert worst([]) is HealthStatus.HEALTHY
    assert worst([HealthStatus.DEGRADED, HealthStatus.HEALTHY]) is HealthStatus.DEGRADED
    assert worst(list(HealthStatus)) is HealthStatus.UNHEALTHY


async def test_the_details_hold_the_figures_that_matter_most(tmp_path: Path) -> None:
    clock = FakeClock()
    chosen = Settings(url=f"sqlite:///{tmp_path}/jobs.db", min_workers=0)
    app = Penstock(settings=chosen, clock=clock)

    @app.job
    async def add() -> None: ...

    async with app:
        await add.enqueue()
        await drain(app)
        await add.enqueue()
        await dead_job(app.store)
        clock.advance(seconds=90)
        found = (await check_health(app.store, chosen)).document()
    assert found["status"] == "degraded"
    assert found["details"] == {
        "live_workers": 0,
        "queues": 1,
        "oldest_queued_ms": 90_000,
        "dead_letters": 1,
    }


async def test_a_slow_store_degrades_the_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def slow(_: object) -> float:
        return 0.25

    monkeypatch.setattr(health, "ping", slow)
    with in_memory() as app:
        found = await check_health(app.store, app.settings.replace(min_workers=0))
    assert found.status is HealthStatus.DEGRADED
    assert found.checks["store"].figures == {"ping_ms": 250.0}
