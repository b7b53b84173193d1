"""The same is told whatever the store is."""

import httpx
import pytest
from httpx import AsyncClient
from prometheus_client.parser import text_string_to_metric_families

from penstock import Context, Penstock
from penstock.config import Settings
from penstock.server.app import create_server
from penstock.testing import drain
from tests.support.places import Place


@pytest.mark.every_store
async def test_metrics_figures_and_health_are_told_of_every_store(place: Place) -> None:
    app = Penstock(settings=Settings(**place.settings, min_workers=0, requests_per_minute=0))
    seen: list[dict[str, int]] = []

    @app.job
    async def look(ctx: Context) -> None:
        seen.append(await app.store.workers.running_types())

    server = create_server(app, trusts_callers=True)
    async with (
        server.router.lifespan_context(server),
        AsyncClient(transport=httpx.ASGITransport(server), base_url="http://localhost") as http,
    ):
        await look.enqueue()
        await drain(app)
        text = (await http.get("/metrics")).text
        stats = (await http.get("/api/stats")).json()
        health = await http.get("/api/health")
        ready = await http.get("/readyz")
    assert seen == [{"look": 1}]
    values = {
        (sample.name, sample.labels.get("status"), sample.labels.get("le")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert values["penstock_store_up", None, None] == 1
    assert values["penstock_jobs_total", "completed", None] == 1
    assert values["penstock_job_duration_seconds_bucket", None, "+Inf"] == 1
    assert values["penstock_job_duration_max_seconds", None, None] >= 0
    assert values["penstock_job_attempts_sum", None, None] == 1
    assert stats["total"]["completed"] == 1
    assert (health.status_code, ready.status_code) == (200, 200)
