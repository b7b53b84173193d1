"""`/metrics`: what Prometheus reads, and that it is true of all processes together."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from httpx import AsyncClient
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as open_metrics_families,
)
from prometheus_client.parser import text_string_to_metric_families

from penstock import Penstock, Worker
from penstock.alerts.judge import judge_all
from penstock.config import Settings
from penstock.model.states import TERMINAL
from penstock.server.app import create_server
from penstock.server.prometheus import scrape
from penstock.store.contract import Retention
from penstock.testing import FakeClock, drain
from proof.conformance.build import dead_job

Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]

OPEN_METRICS = {"Accept": "application/openmetrics-text; version=1.0.0"}
FROM_THE_SEED = {
    "penstock_jobs",
    "penstock_jobs_active",
    "penstock_job_duration_seconds",
    "penstock_job_attempts",
    "penstock_queue_wait_seconds",
    "penstock_queue_depth",
    "penstock_workers",
    "penstock_lease_expiries",
    "penstock_dead_letters",
    "penstock_backpressure_level",
    "penstock_alerts_firing",
    "penstock_store_ping_seconds",
    "penstock_build_info",
    "penstock_http_requests",
}


pytestmark = pytest.mark.usefixtures("always_fresh")


async def scraped(http: AsyncClient) -> Series:
    answer = await http.get("/metrics")
    assert answer.status_code == 200
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def value(series: Series, name: str, **labels: str) -> float:
    return series[name, tuple(sorted(labels.items()))]


def counters(series: Series) -> Series:
    """What may only grow."""
    endings = ("_total", "_bucket", "_count", "_sum")
    return {k: v for k, v in series.items() if k[0].endswith(endings) and "http" not in k[0]}


def an_app(folder: Path, clock: FakeClock | None = None) -> Penstock:
    chosen = Settings(url=f"sqlite:///{folder}/jobs.db", requests_per_minute=0, queue_limit=100)
    made = Penstock(settings=chosen, clock=clock)

    @made.job
    async def add(a: int = 1) -> int:
        return a

    @made.job(max_retries=1, retry_delay=0)
    async def fail() -> None:
        raise ConnectionError("no")

    return made


async def client(server: FastAPI) -> AsyncClient:
    return AsyncClient(transport=httpx.ASGITransport(server), base_url="http://localhost")


async def test_a_real_parser_accepts_it_and_finds_every_name(
    app: Penstock, http: AsyncClient
) -> None:
    await app.find_type("add").enqueue(1)
    await drain(app)
    text = (await http.get("/metrics")).text
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert families.keys() >= FROM_THE_SEED
    assert all(family.documentation for family in families.values())
    buckets = {
        sample.labels["le"]
        for sample in families["penstock_job_duration_seconds"].samples
        if sample.name.endswith("_bucket")
    }
    assert buckets == {"0.1", "0.5", "1.0", "5.0", "10.0", "30.0", "60.0", "300.0", "+Inf"}


async def test_who_asks_for_open_metrics_gets_them(app: Penstock, http: AsyncClient) -> None:
    await app.find_type("add").enqueue(1)
    await drain(app)
    plain = await http.get("/metrics")
    assert plain.headers["content-type"].startswith("text/plain; version=0.0.4")
    answer = await http.get("/metrics", headers=OPEN_METRICS)
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    names = {family.name for family in open_metrics_families(answer.text)}
    assert names >= FROM_THE_SEED


async def test_jobs_are_counted_by_what_became_of_them(tmp_path: Path) -> None:
    app = an_app(tmp_path, FakeClock())
    server = create_server(app, trusts_callers=True)
    async with server.router.lifespan_context(server), await client(server) as http:
        await app.find_type("add").enqueue(1)
        await app.find_type("fail").enqueue()
        await drain(app, through=60)
        series = await scraped(http)
    assert value(series, "penstock_jobs_total", type="add", status="started") == 1
    assert value(series, "penstock_jobs_total", type="add", status="completed") == 1
    statuses = {
        status: value(series, "penstock_jobs_total", type="fail", status=status)
        for status in ("started", "completed", "failed", "retried", "dead_letter")
    }
    assert statuses == {
        "started": 2,
        "completed": 0,
        "failed": 2,
        "retried": 1,
        "dead_letter": 1,
    }
    assert value(series, "penstock_dead_letters") == 1
    assert value(series, "penstock_job_attempts_bucket", type="fail", le="1.0") == 0
    assert value(series, "penstock_job_attempts_bucket", type="fail", le="2.0") == 1
    assert value(series, "penstock_job_duration_seconds_count", type="fail") == 2
    assert value(series, "penstock_queue_wait_seconds_count", queue="default") == 3


async def test_depths_have_the_usual_words_and_the_colour_of_their_limit(
    tmp_path: Path,
) -> None:
    app = an_app(tmp_path)
    add = app.find_type("add")
    server = create_server(app, trusts_callers=True)
    async with server.router.lifespan_context(server), await client(server) as http:
        empty = await scraped(http)
        parent = await add.enqueue(1)
        await app.enqueue_many([add.new(n) for n in range(9)])
        await add.options(delay=60).enqueue()
        await add.options(after=[parent]).enqueue()
        held = await add.enqueue(3)
        await app.controls.pause(job=held.id)
        series = await scraped(http)
    assert value(empty, "penstock_queue_depth", queue="default", state="waiting") == 0
    states = {
        state: value(series, "penstock_queue_depth", queue="default", state=state)
        for state in ("waiting", "active", "delayed", "blocked", "paused")
    }
    assert states == {"waiting": 10, "active": 0, "delayed": 1, "blocked": 1, "paused": 1}
    assert value(empty, "penstock_backpressure_level", queue="default") == 0
    assert value(series, "penstock_backpressure_level", queue="default") == 1
    assert value(series, "penstock_queue_limit", queue="default") == 100


async def test_counters_only_grow_through_rollups_prunes_and_a_restart(tmp_path: Path) -> None:
    clock = FakeClock()
    before: Series = {}
    for round_ in range(6):
        app = an_app(tmp_path, clock)
        server = create_server(app, trusts_callers=True)
        async with server.router.lifespan_context(server), await client(server) as http:
            await app.find_type("add").enqueue(round_)
            await app.find_type("fail").enqueue()
            await drain(app)
            for step in (1, 11, 61, 3_601, 90_000):
                await app.store.metrics.roll_up()
                await app.store.upkeep.prune(Retention(keep_ms=dict.fromkeys(TERMINAL, 1)))
                after = counters(await scraped(http))
                shrunk = {k: (v, after.get(k)) for k, v in before.items() if after.get(k, -1) < v}
                assert shrunk == {}
                before = after
                clock.advance(seconds=step)
        completed = value(before, "penstock_jobs_total", type="add", status="completed")
        assert completed == round_ + 1


async def test_two_servers_tell_the_same_of_what_a_third_process_did(tmp_path: Path) -> None:
    told = []
    doing = an_app(tmp_path)
    async with doing:
        await doing.find_type("add").enqueue(1)
        await Worker(doing, burst=True).run()
    for _ in range(2):
        server = create_server(an_app(tmp_path), trusts_callers=True)
        async with server.router.lifespan_context(server), await client(server) as http:
            told.append(counters(await scraped(http)))
    assert told[0] == told[1]
    assert value(told[0], "penstock_jobs_total", type="add", status="completed") == 1


async def test_there_are_no_more_types_than_were_agreed_on(
    app: Penstock, server: FastAPI, http: AsyncClient
) -> None:
    def named(name: str) -> Any:
        async def work() -> None: ...

        work.__qualname__ = work.__name__ = name
        return app.job(work)

    for number in range(scrape.MOST_TYPES + 5):
        await named(f"type_{number:03}").enqueue()
    await drain(app)
    series = await scraped(http)
    started = {
        dict(labels)["type"]: count
        for (name, labels), count in series.items()
        if name == "penstock_jobs_total" and dict(labels)["status"] == "started"
    }
    assert len(started) == scrape.MOST_TYPES + 1
    assert sum(started.values()) == scrape.MOST_TYPES + 5
    assert started["other"] > 1


async def test_requests_are_counted_by_route_and_not_by_address(http: AsyncClient) -> None:
    for number in range(3):
        await http.get(f"/api/jobs/01JD3Z6K3V9M0Q2T4W6Y8A0C{number:02}")
        await http.get(f"/nowhere/{number}")
    series = await scraped(http)
    route = "/api/jobs/{job_id}"
    counted = value(series, "penstock_http_requests_total", method="GET", route=route, status="404")
    assert counted == 3
    timed = "penstock_http_request_duration_seconds_count"
    assert value(series, timed, method="GET", route=route) == 3
    routes = {dict(labels).get("route") for name, labels in series if "http_requests" in name}
    assert routes == {route, "unmatched"}


async def test_a_store_that_is_away_leaves_what_the_process_knows(
    app: Penstock, server: FastAPI, http: AsyncClient
) -> None:
    await http.get("/metrics")
    await app.store.transfer.mark({"moved_to": "sqlite:///elsewhere.db"})
    series = await scraped(http)
    assert value(series, "penstock_store_up") == 0
    assert not [name for name, _ in series if name.startswith("penstock_jobs")]


async def test_an_alert_that_fires_is_told_and_one_that_is_quiet_is_0(
    app: Penstock, http: AsyncClient
) -> None:
    async def told() -> float:
        labels = {"rule": "dead_letters", "severity": "warning"}
        return value(await scraped(http), "penstock_alerts_firing", **labels)

    assert await told() == 0
    dead = [await dead_job(app.store) for _ in range(11)]
    await judge_all(app)
    assert await told() == 1
    await app.store.dead.purge(dead)
    await judge_all(app)
    assert await told() == 0
