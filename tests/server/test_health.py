"""What probes and monitors are told about health."""

import asyncio

import pytest
from httpx import AsyncClient

from penstock import Penstock
from penstock.operate import health
from penstock.operate.health import dispatch_check


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


@pytest.mark.parametrize(("answers", "status"), [(True, "healthy"), (False, "degraded")])
async def test_the_redis_beside_postgres_is_looked_at_where_there_is_one(
    app: Penstock, http: AsyncClient, monkeypatch: pytest.MonkeyPatch, answers: bool, status: str
) -> None:
    async def answer() -> bool:
        return answers

    monkeypatch.setattr(app.store, "dispatch_answers", answer)
    told = (await http.get("/api/health")).json()["checks"]
    assert told["dispatch"]["status"] == status
    assert told["dispatch"]["detail"] == dispatch_check(answers).detail


async def test_a_store_that_hangs_is_not_waited_for(
    app: Penstock, http: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang() -> dict[str, str]:
        await asyncio.Event().wait()
        return {}

    monkeypatch.setattr(health, "PING_SECONDS", 0.01)
    monkeypatch.setattr(app.store.transfer, "marks", hang)
    assert (await http.get("/readyz")).status_code == 503
    found = (await http.get("/api/health")).json()["checks"]["store"]
    assert found["status"] == "unhealthy"
    assert "no answer within" in found["detail"]
