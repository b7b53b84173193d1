"""`/api/stats`: figures over a window, step by step, and the objectives."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from httpx import AsyncClient

from penstock import Penstock
from penstock.config import Settings
from penstock.server.app import create_server
from penstock.server.stats import MOST_STEPS, steps_over
from penstock.testing import FakeClock, drain
from tests.server.conftest import TokenMaker

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000


pytestmark = pytest.mark.usefixtures("always_fresh")


async def read(http: AsyncClient, window: str = "1h") -> dict[str, Any]:
    answer = await http.get("/api/stats", params={"window": window})
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


async def test_executions_are_told_per_type_and_queue_and_in_all(
    app: Penstock, http: AsyncClient
) -> None:
    for number in range(3):
        await app.find_type("add").enqueue(number)
    await app.find_type("send_mail").enqueue("ann")
    await app.find_type("fail").enqueue()
    await drain(app)
    found = await read(http)
    assert found["window_ms"] == HOUR
    assert (found["total"]["completed"], found["total"]["dead"]) == (4, 1)
    assert {(row["type"], row["queue"], row["completed"]) for row in found["types"]} == {
        ("add", "default", 3),
        ("send_mail", "mail", 1),
        ("fail", "default", 0),
    }
    assert found["dead_letters"] == 1
    assert all(
        row[f"{what}_{percentile}_ms"] is not None
        for row in found["types"]
        for what in ("duration", "wait")
        for percentile in ("p50", "p95", "p99")
    )


@pytest.mark.every_store
async def test_durations_and_jobs_are_told_in_all(app: Penstock, http: AsyncClient) -> None:
    for number in range(2):
        await app.find_type("add").enqueue(number)
    await drain(app)
    await app.find_type("send_mail").options(delay=60).enqueue("ann")
    found = await read(http)
    assert found["total_jobs"] == 3
    for row in (found["total"], *found["types"]):
        assert 0 <= row["duration_avg_ms"] <= row["duration_max_ms"]


@pytest.mark.every_store
async def test_a_tenants_token_reads_the_figures_of_its_own_jobs_and_of_no_others(
    app: Penstock, http: AsyncClient, make_token: TokenMaker
) -> None:
    for tenant in ("acme", "other", "other", ""):
        await app.find_type("add").options(tenant=tenant).enqueue(1)
    await app.find_type("fail").options(tenant="acme").enqueue()
    await app.find_type("fail").options(tenant="other").enqueue()
    await drain(app)
    await app.find_type("send_mail").options(tenant="acme", queue="post").enqueue("ann")
    await app.find_type("send_mail").options(tenant="other", queue="secret").enqueue("ann")
    header = await make_token("read", tenant="acme")
    for window in ("1h", "7d"):
        answer = await http.get("/api/stats", params={"window": window}, headers=header)
        found = answer.json()
        assert (found["total"]["completed"], found["total"]["dead"]) == (1, 1)
        assert (found["total_jobs"], found["dead_letters"]) == (3, 1)
        assert [depth["queue"] for depth in found["queues"]] == ["post"]
        assert sum(point["completed"] for point in found["series"]) <= 1
        assert {slo["key"] for slo in found["slos"]} == {
            "start_latency",
            "completion_rate",
            "dead_letter_rate",
        }
        assert "secret" not in answer.text
    queues = (await http.get("/api/queues", headers=header)).json()["queues"]
    assert [(queue["queue"], queue["queued"]) for queue in queues] == [("post", 1)]
    assert (queues[0]["limits"], queues[0]["pause"]) == ([], None)
    whole = await make_token("read")
    named = await http.get("/api/stats", params={"tenant": "other"}, headers=whole)
    assert (named.json()["total"]["completed"], named.json()["total_jobs"]) == (2, 4)
    assert (await http.get("/api/stats", headers=whole)).json()["total"]["completed"] == 4


async def test_an_empty_installation_has_steps_without_anything_in_them(
    http: AsyncClient,
) -> None:
    found = await read(http)
    assert found["types"] == []
    assert len(found["series"]) == MOST_STEPS
    assert {point["completed"] for point in found["series"]} == {0}
    assert found["series"][0]["duration_p95_ms"] is None


async def test_a_series_tells_when_it_happened(tmp_path: Path) -> None:
    clock = FakeClock()
    app = Penstock(settings=Settings(url=f"sqlite:///{tmp_path}/jobs.db"), clock=clock)

    @app.job
    async def add() -> None: ...

    server = create_server(app, trusts_callers=True)
    async with (
        server.router.lifespan_context(server),
        AsyncClient(transport=httpx.ASGITransport(server), base_url="http://localhost") as http,
    ):
        await add.enqueue()
        await drain(app)
        clock.advance(seconds=600)
        found = await read(http, "1h")
        (point,) = [point for point in found["series"] if point["completed"]]
        assert found["step_ms"] == 30_000
        assert found["series"].index(point) == MOST_STEPS - 20
        assert (await read(http, "5m"))["total"]["completed"] == 0
        assert (await read(http, "7d"))["total"]["completed"] == 1


@pytest.mark.parametrize("window", ["9s", "1001d", "0m", "1w", "", "-1h", "1h ", "x"])
async def test_a_window_that_cannot_be_looked_through_is_refused(
    http: AsyncClient, window: str
) -> None:
    answer = await http.get("/api/stats", params={"window": window})
    assert answer.status_code == 422
    assert answer.json()["field"].endswith("window")


@pytest.mark.parametrize("span_ms", [10_000, MINUTE, HOUR, DAY, 7 * DAY, 30 * DAY, 1_000 * DAY])
def test_there_are_never_more_steps_than_a_chart_can_show(span_ms: int) -> None:
    width, steps = steps_over([], span_ms, now=1_800_000_000_000)
    assert 1 <= len(steps) <= MOST_STEPS
    assert width * len(steps) <= max(span_ms, width)
    assert steps[-1][0] + width <= 1_800_000_000_000
