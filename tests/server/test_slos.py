"""Objectives: the figures of the seed, and what counts as met, missed and unknown."""

from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient
from msgspec.structs import replace

from penstock import Penstock
from penstock.operate.stats import Point, Slo, Stats
from penstock.server.requests import Recent, Traffic
from penstock.server.stats import slos
from penstock.server.uptime import Uptime
from penstock.store.contract import QueueDepth
from penstock.store.contract.metrics import Figure, windows
from penstock.store.contract.records import Record
from penstock.testing import FakeClock, drain, in_memory

HOUR = 3_600_000


def some_stats(figures: list[Figure], *, queued: int = 0) -> Stats:
    total, *types = windows(figures, HOUR)
    depth = QueueDepth(
        queue="default", pending=0, queued=queued, in_progress=0, failed=0, oldest_queued_ms=None
    )
    return Stats(
        at=0,
        window_ms=HOUR,
        step_ms=30_000,
        total_jobs=queued,
        total=total,
        types=types,
        queues=[depth],
        dead_letters=0,
        series=[],
    )


@pytest.fixture
def uptime() -> Uptime:
    with in_memory(clock=FakeClock()) as app:
        return Uptime(app.store, 1)


def judged(found: list[Slo]) -> dict[str, str]:
    return {slo.key: slo.state.value for slo in found}


def test_the_targets_are_those_of_the_seed(uptime: Uptime) -> None:
    found = slos(some_stats([]), Traffic(), uptime)
    assert [(slo.name, slo.target) for slo in found] == [
        ("Job submission latency", "< 100 ms p95"),
        ("Job execution start", "< 5 s p95"),
        ("Job completion rate", "> 95 %"),
        ("Worker uptime", "> 99.5 %"),
        ("Dead letter rate", "< 1 %"),
        ("System throughput", "> 100 jobs/min"),
    ]


def test_what_was_not_measured_is_unknown(uptime: Uptime) -> None:
    assert set(judged(slos(some_stats([]), Traffic(), uptime)).values()) == {"unknown"}


def test_all_are_met_by_a_busy_installation_that_is_well(uptime: Uptime) -> None:
    traffic = Traffic()
    traffic.note("POST", "/api/jobs", 201, 0.004)
    uptime.note(uptime._store.clock.now(), enough=True)
    figures: list[Figure] = [
        ("add", "default", "completed", 7_000),
        ("add", "default", "wait:10", 7_000),
    ]
    found = slos(some_stats(figures), traffic, uptime)
    assert set(judged(found).values()) == {"met"}
    assert [slo.measured for slo in found][2:] == ["100 %", "100 %", "0 %", "117 jobs/min"]


def test_all_are_missed_by_one_that_is_not(uptime: Uptime) -> None:
    traffic = Traffic()
    traffic.note("POST", "/api/jobs", 201, 0.4)
    uptime.note(uptime._store.clock.now(), enough=False)
    figures: list[Figure] = [
        ("add", "default", "completed", 90),
        ("add", "default", "dead", 10),
        ("add", "default", "wait:60", 100),
    ]
    found = slos(some_stats(figures, queued=100), traffic, uptime)
    assert set(judged(found).values()) == {"missed"}


@pytest.mark.parametrize(("queued", "state"), [(0, "unknown"), (99, "unknown"), (100, "missed")])
def test_throughput_is_missed_only_where_a_minutes_work_waits(
    uptime: Uptime, queued: int, state: str
) -> None:
    figures: list[Figure] = [("add", "default", "completed", 60)]
    found = judged(slos(some_stats(figures, queued=queued), Traffic(), uptime))
    assert found["throughput"] == state


def test_the_throughput_of_a_new_installation_is_that_since_its_first_job(uptime: Uptime) -> None:
    none = dict.fromkeys(Point.__struct_fields__, 0)
    series = [Point(**none | {"at": n * 10_000, "completed": n // 350 * 20}) for n in range(360)]  # type: ignore[arg-type]
    stats = replace(some_stats([], queued=5), step_ms=10_000, series=series)
    [slo] = [slo for slo in slos(stats, Traffic(), uptime) if slo.key == "throughput"]
    assert (slo.measured, slo.state.value) == ("120 jobs/min", "met")


def test_only_submissions_that_were_taken_count_as_such() -> None:
    traffic = Traffic()
    traffic.note("GET", "/api/jobs", 200, 9.0)
    traffic.note("POST", "/api/jobs", 422, 9.0)
    assert traffic.submission_p95_ms(HOUR) is None
    traffic.note("POST", "/api/jobs", 201, 0.010)
    found = traffic.submission_p95_ms(HOUR)
    assert found is not None
    assert 9 < found < 11


def test_what_happened_before_the_window_is_forgotten() -> None:
    recent = Recent()
    recent.add(0.9, now=100.0)
    recent.add(0.1, now=1_000.0)
    assert recent.percentile(0.95, 60_000, now=1_005.0) == pytest.approx(100, rel=0.1)
    assert recent.percentile(0.95, HOUR, now=1_005.0) == pytest.approx(900, rel=0.1)
    for step in range(500):
        recent.add(0.1, now=1_010.0 + 10 * step)
    assert len(recent._steps) == 360


async def test_workers_that_start_with_the_server_have_time_until_they_are_missed() -> None:
    clock = FakeClock()
    with in_memory(clock=clock) as app:
        async with app:
            uptime = Uptime(app.store, 1)
            await uptime.run_once()
            clock.advance(seconds=29)
            await uptime.run_once()
            assert uptime.share(HOUR) is None
            clock.advance(seconds=1)
            await uptime.run_once()
            assert uptime.share(HOUR) == 0.0


async def test_uptime_is_the_share_of_looks_that_found_enough_workers() -> None:
    clock = FakeClock()
    with in_memory(clock=clock) as app:
        async with app:
            uptime = Uptime(app.store, 1)
            assert uptime.share(HOUR) is None
            uptime.note(clock.now(), enough=False)
            assert uptime.share(HOUR) == 0.0
            clock.advance(seconds=600)
            for _ in range(3):
                uptime.note(clock.now(), enough=True)
            assert uptime.share(HOUR) == 0.75
            assert uptime.share(60_000) == 1.0


async def test_uptime_outlives_the_server_that_saw_it_and_servers_add_to_the_same_hours() -> None:
    clock = FakeClock()
    with in_memory(clock=clock) as app:
        async with app:
            one, other = Uptime(app.store, 0), Uptime(app.store, 1)
            await one.run_once()
            other.note(clock.now(), enough=False)
            await other.keep()
            clock.advance(seconds=3 * 3600)
            after = Uptime(app.store, 0)
            await after.run_once()
            assert after.share(HOUR) == 1.0
            assert after.share(24 * HOUR) == pytest.approx(2 / 3)
            clock.advance(seconds=9 * 86_400)
            await after.run_once()
            assert after.share(24 * HOUR) == 1.0


async def test_what_another_server_wrote_meanwhile_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    with in_memory(clock=FakeClock()) as app:
        async with app:
            one, other = Uptime(app.store, 0), Uptime(app.store, 1)
            one.note(app.store.clock.now(), enough=True)
            get = app.store.records.get

            async def get_then_lose(kind: str, name: str) -> Record | None:
                found = await get(kind, name)
                monkeypatch.undo()
                other.note(app.store.clock.now(), enough=False)
                await other.keep()
                return found

            monkeypatch.setattr(app.store.records, "get", get_then_lose)
            await one.keep()
            await one.keep()
            assert one.share(24 * HOUR) == 0.5


async def test_the_server_measures_submissions_itself(
    app: Penstock, server: FastAPI, http: AsyncClient
) -> None:
    sent = {"type": "add", "payload": {"a": 1}}
    assert (await http.post("/api/jobs", json=sent)).status_code == 201
    await drain(app)
    found: list[dict[str, Any]] = (await http.get("/api/stats")).json()["slos"]
    by_key = {slo["key"]: slo for slo in found}
    assert by_key["submission_latency"]["value"] > 0
    assert by_key["completion_rate"]["state"] == "met"
    assert by_key["worker_uptime"]["state"] == "unknown"
