"""Health: each check from well to unwell, and what probes are told."""

from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from penstock import Penstock
from penstock.config import Settings
from penstock.server import health
from penstock.server.health import (
    Condition,
    check_health,
    dead_check,
    queue_check,
    store_check,
    worker_check,
    worst,
)
from penstock.store.contract import QueueDepth, WorkerInfo
from penstock.testing import FakeClock, drain
from penstock.testing.conformance.build import dead_job

HOUR_MS = 3_600_000


def a_worker(name: str = "w", **changes: Any) -> WorkerInfo:
    facts: dict[str, Any] = {
        "owner": f"node:{name}",
        "name": name,
        "node": "node",
        "pid": 1,
        "queues": None,
        "types": ("add",),
        "concurrency": 1,
        "running": 0,
        "completed": 0,
        "failed": 0,
        "cpu_percent": 0.0,
        "memory_mb": 1.0,
        "poll_age_ms": 50,
        "started_at": 0,
        "heartbeat_at": 0,
        "heartbeat_age_ms": 100,
    }
    return WorkerInfo(**facts | changes)


def a_depth(queue: str = "mail", **changes: Any) -> QueueDepth:
    facts: dict[str, Any] = {
        "queue": queue,
        "pending": 0,
        "queued": 0,
        "in_progress": 0,
        "failed": 0,
        "oldest_queued_ms": None,
    }
    return QueueDepth(**facts | changes)


@pytest.mark.parametrize(
    ("ping_ms", "condition"),
    [(0.2, Condition.HEALTHY), (99.9, Condition.HEALTHY), (100, Condition.DEGRADED)],
)
def test_a_store_is_well_while_it_answers_within_a_tenth_of_a_second(
    ping_ms: float, condition: Condition
) -> None:
    assert store_check(ping_ms).status is condition


@pytest.mark.parametrize(
    ("workers", "minimum", "condition"),
    [
        ([a_worker()], 1, Condition.HEALTHY),
        ([], 0, Condition.HEALTHY),
        ([], 1, Condition.UNHEALTHY),
        ([a_worker(heartbeat_age_ms=30_000)], 1, Condition.UNHEALTHY),
        ([a_worker()], 2, Condition.DEGRADED),
        ([a_worker("a"), a_worker("b", heartbeat_age_ms=60_000)], 1, Condition.HEALTHY),
        ([a_worker(poll_age_ms=10_001)], 1, Condition.DEGRADED),
        ([a_worker(poll_age_ms=10_001, state="draining")], 1, Condition.HEALTHY),
        ([a_worker(state="degraded")], 1, Condition.DEGRADED),
    ],
)
def test_workers_are_well_while_enough_of_them_live_and_poll(
    workers: list[WorkerInfo], minimum: int, condition: Condition
) -> None:
    assert worker_check(workers, minimum).status is condition


def test_the_age_of_each_workers_last_poll_is_told() -> None:
    found = worker_check([a_worker("a", poll_age_ms=7), a_worker("b", poll_age_ms=9)], 1)
    assert found.figures["poll_age_ms"] == {"node:a": 7, "node:b": 9}


@pytest.mark.parametrize(
    ("depth", "paused", "condition", "words"),
    [
        (a_depth(queued=9), set(), Condition.HEALTHY, "None is full"),
        (a_depth(queued=10), set(), Condition.DEGRADED, "Full: mail"),
        (a_depth(queued=1), {"mail"}, Condition.DEGRADED, "Paused while jobs wait: mail"),
        (a_depth(), {"mail"}, Condition.HEALTHY, "None is full"),
        (a_depth(oldest_queued_ms=HOUR_MS), set(), Condition.HEALTHY, "None is full"),
        (a_depth(oldest_queued_ms=HOUR_MS + 1), set(), Condition.DEGRADED, "over an hour: mail"),
    ],
)
def test_queues_are_well_while_none_is_full_held_back_or_left_lying(
    depth: QueueDepth, paused: set[str], condition: Condition, words: str
) -> None:
    found = queue_check([depth], paused, {}, default=10)
    assert found.status is condition
    assert words in found.detail


def test_a_queues_own_limit_goes_before_the_default() -> None:
    assert queue_check([a_depth(queued=10)], set(), {"mail": 11}, 10).status is Condition.HEALTHY
    assert queue_check([a_depth(queued=5)], set(), {"*": 5}, 10).status is Condition.DEGRADED
    assert queue_check([a_depth(queued=10)], set(), {}, 0).status is Condition.HEALTHY


@pytest.mark.parametrize(
    ("count", "condition"),
    [
        (0, Condition.HEALTHY),
        (1, Condition.DEGRADED),
        (99, Condition.DEGRADED),
        (100, Condition.UNHEALTHY),
    ],
)
def test_some_dead_letters_are_a_warning_and_many_an_emergency(
    count: int, condition: Condition
) -> None:
    assert dead_check(count, 100).status is condition


def test_everything_is_as_well_as_the_worst_of_it() -> None:
    assert worst([]) is Condition.HEALTHY
    assert worst([Condition.DEGRADED, Condition.HEALTHY]) is Condition.DEGRADED
    assert worst(list(Condition)) is Condition.UNHEALTHY


async def test_a_probe_learns_that_the_process_lives_and_nothing_else(http: AsyncClient) -> None:
    answer = await http.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "alive"})


async def test_a_server_is_ready_while_its_store_answers(http: AsyncClient) -> None:
    answer = await http.get("/readyz")
    assert answer.status_code == 200
    assert answer.json()["status"] == "ready"


async def test_a_server_whose_store_was_moved_away_is_not_ready_and_does_not_say_where(
    app: Penstock, http: AsyncClient
) -> None:
    await app.store.transfer.mark({"moved_to": "postgresql://db.internal/jobs"})
    answer = await http.get("/readyz")
    assert answer.status_code == 503
    assert answer.headers["content-type"] == "application/problem+json"
    assert "internal" not in answer.text
    assert (await http.get("/healthz")).status_code == 200
    told = await http.get("/api/health")
    assert told.status_code == 503
    assert told.json()["checks"].keys() == {"store"}
    assert told.json()["details"]["live_workers"] is None


async def test_an_installation_without_workers_is_unhealthy_and_says_so_by_its_status(
    http: AsyncClient,
) -> None:
    answer = await http.get("/api/health")
    assert answer.status_code == 503
    told = answer.json()
    assert told["status"] == "unhealthy"
    assert told["checks"]["workers"]["detail"] == "No worker is alive; start one."
    assert {name: check["status"] for name, check in told["checks"].items()} == {
        "store": "healthy",
        "workers": "unhealthy",
        "queues": "healthy",
        "dead_letters": "healthy",
    }


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
    server: FastAPI, app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slow(_: object) -> float:
        return 0.25

    monkeypatch.setattr(health, "ping", slow)
    found = await check_health(app.store, app.settings.replace(min_workers=0))
    assert found.status is Condition.DEGRADED
    assert found.checks["store"].figures == {"ping_ms": 250.0}
