import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
import structlog

from penstock import Penstock
from penstock.testing import FakeClock
from penstock.upkeep import upkeep_services
from penstock.upkeep.leader import Leader
from penstock.upkeep.schedules import FireSchedules, fire_due

MINUTE_MS = 60_000


@pytest.fixture(autouse=True)
def task(app: Penstock) -> Any:
    @app.job
    async def task(word: str = "") -> None: ...

    return task


async def times(app: Penstock) -> list[int]:
    return sorted(job.scheduled_at for job in await app.find(limit=1000))


async def edit(app: Penstock, sql: str) -> None:
    """Change the store behind its back."""
    store: Any = app.store
    await store._db.write(lambda tx: tx.connection.execute(sql))


async def test_every_tick_enqueues_one_job(app: Penstock, clock: FakeClock, task: Any) -> None:
    begin = clock.now()
    await app.schedule("often", task, every=60)
    assert await fire_due(app) == 0
    for _ in range(3):
        clock.advance(60)
        assert await fire_due(app) == 1
        assert await fire_due(app) == 0
    assert await times(app) == [begin + n * MINUTE_MS for n in (1, 2, 3)]
    view = await app.schedules.get("often")
    assert view.runs == 3
    assert view.schedule.last_run_at == begin + 3 * MINUTE_MS


async def test_a_job_knows_its_schedule(app: Penstock, clock: FakeClock, task: Any) -> None:
    view = await app.schedule("often", task, every=60)
    clock.advance(60)
    await fire_due(app)
    [job] = await app.find()
    assert job.schedule_id == view.schedule.id
    assert job.status == "queued"


async def test_the_leader_fires_at_once_and_the_others_after_two_seconds(
    app: Penstock, clock: FakeClock, leader: Leader, follower: Leader, task: Any
) -> None:
    await app.schedule("often", task, every=60)
    clock.advance(60)
    standby = FireSchedules(app, follower)
    await standby.run_once()
    clock.advance(1.999)
    await standby.run_once()
    assert await times(app) == []
    clock.advance(0.001)
    await standby.run_once()
    assert len(await times(app)) == 1
    clock.advance(58)
    await FireSchedules(app, leader).run_once()
    assert len(await times(app)) == 2


async def test_ten_passes_at_once_fire_each_tick_once(
    app: Penstock, clock: FakeClock, leader: Leader, task: Any
) -> None:
    for n in range(120):
        await app.schedule(f"schedule-{n}", task, every=60, misfire="all")
    clock.advance(185)
    await asyncio.gather(*(fire_due(app) for _ in range(10)))
    assert len(await times(app)) == 360
    assert {view.runs for view in await app.schedules.list()} == {3}


async def test_a_tick_that_is_fired_again_inserts_and_counts_nothing(
    app: Penstock, clock: FakeClock, task: Any
) -> None:
    await app.schedule("often", task, every=60)
    clock.advance(60)
    await fire_due(app)
    # As if somebody had put the schedule anew from what it was before the tick.
    await edit(app, f"UPDATE job_schedules SET next_run_at = {clock.now()}")
    await fire_due(app)
    assert len(await times(app)) == 1
    assert (await app.schedules.get("often")).runs == 1


async def test_a_pass_sleeps_until_the_next_tick_but_never_over_a_second(
    app: Penstock, clock: FakeClock, leader: Leader, task: Any
) -> None:
    service = FireSchedules(app, leader)
    await service.run_once()
    assert service.interval == 1.0
    await app.schedule("often", task, every=60)
    clock.advance(59.75)
    await service.run_once()
    assert service.interval == 0.25
    await app.schedule("seldom", task, cron="0 0 1 1 *")
    clock.advance(0.25)
    await service.run_once()
    assert service.interval == 1.0


async def test_more_than_a_thousand_missed_ticks_take_another_pass_at_once(
    app: Penstock, clock: FakeClock, leader: Leader, task: Any
) -> None:
    await app.schedule("often", task, every=1, misfire="all")
    clock.advance(1_500)
    service = FireSchedules(app, leader)
    await service.run_once()
    assert (await app.schedules.get("often")).runs == 1_000
    assert service.interval == 0
    await service.run_once()
    assert (await app.schedules.get("often")).runs == 1_500


async def test_a_paused_schedule_fires_nothing(app: Penstock, clock: FakeClock, task: Any) -> None:
    await app.schedule("often", task, every=60, misfire="all")
    await app.schedules.pause("often")
    clock.advance(600)
    assert await fire_due(app) == 0


async def test_a_schedule_of_a_type_nobody_here_knows_still_fires(
    app: Penstock, clock: FakeClock, task: Any
) -> None:
    await app.schedule("often", task, every=60)
    await edit(app, "UPDATE job_schedules SET type = 'elsewhere'")
    clock.advance(60)
    assert await fire_due(app) == 1
    [job] = await app.find()
    assert job.type == "elsewhere"


@pytest.mark.parametrize(
    "change",
    [
        'payload_template = \'{"word": "{{ nonsense }}"}\'',
        "payload_template = '{{'",
        "payload_template = CAST(x'7b7bff' AS TEXT)",
        'options = \'{"priority": "high"}\'',
        "options = '{\"priority\": 99999999999999999999}'",
        "expression = 'whenever', kind = 'cron'",
        "zone = 'Mars/Phobos', kind = 'cron', expression = '* * * * *'",
        "starts_at = 999999999999999999, kind = 'cron', expression = '* * * * *'",
    ],
)
async def test_a_schedule_that_cannot_be_fired_is_paused_and_stops_no_other(
    app: Penstock, clock: FakeClock, task: Any, change: str
) -> None:
    await app.schedule("broken", task.new(word="{{ tick }}"), every=60)
    await edit(app, f"UPDATE job_schedules SET {change}")
    await app.schedule("sound", task, every=60)
    clock.advance(60)
    with structlog.testing.capture_logs() as logs:
        assert await fire_due(app) == 1
        assert await fire_due(app) == 0
    assert (await app.schedules.get("broken")).paused
    assert [log["event"] for log in logs] == ["schedule_paused"]


async def test_an_expired_schedule_fires_nothing_and_is_deleted_by_the_leader(
    app: Penstock, clock: FakeClock, leader: Leader, follower: Leader, task: Any
) -> None:
    await app.schedule("brief", task, every=60, expires=_at(clock, 90))
    clock.advance(90)
    await FireSchedules(app, follower).run_once()
    assert len(await app.schedules.list()) == 1
    await FireSchedules(app, leader).run_once()
    assert await app.schedules.list() == []
    assert await times(app) == []


async def test_max_runs_end_a_schedule(app: Penstock, clock: FakeClock, task: Any) -> None:
    await app.schedule("thrice", task, every=60, max_runs=3, misfire="all")
    clock.advance(600)
    assert await fire_due(app) == 3
    clock.advance(600)
    assert await fire_due(app) == 0
    assert (await app.schedules.get("thrice")).next_run is None


async def test_a_unique_key_keeps_ticks_from_piling_up(
    app: Penstock, clock: FakeClock, task: Any
) -> None:
    await app.schedule("often", task.options(key="one-at-a-time").new(), every=60)
    for _ in range(3):
        clock.advance(60)
        await fire_due(app)
    assert len(await times(app)) == 1


async def test_ten_thousand_schedules_that_are_not_due_cost_one_look_at_an_index(
    app: Penstock, clock: FakeClock, task: Any
) -> None:
    await app.schedule("seldom", task, every=3600)
    await edit(
        app,
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000) "
        "INSERT INTO job_schedules (id, name, type, kind, payload_template, options, zone, misfire,"
        " enabled, interval_ms, starts_at, next_run_at, created_at, updated_at) "
        "SELECT 'S' || i, 'schedule-' || i, type, kind, payload_template, options, zone, misfire,"
        " 1, interval_ms, starts_at + i, next_run_at + i, 0, 0 FROM job_schedules, n",
    )
    store: Any = app.store
    for name, bindings in (
        ("due_schedules", {"now": clock.now(), "limit": 100}),
        ("next_schedule", (clock.now(),)),
        ("any_expired_schedule", (clock.now(),)),
    ):
        plan = await store._db.write(lambda tx, n=name, b=bindings: _plan(tx, n, b))
        assert "USING" in plan
        assert "INDEX job_schedules_" in plan
        assert "SCAN" not in plan.replace("SCAN job_schedules USING INDEX", "")
        assert "TEMP B-TREE" not in plan
    due, next_in = await app.store.schedules.due()
    assert (due, next_in) == ([], 3_600_000)


def _plan(tx: Any, name: str, bindings: Any) -> str:
    sql = "EXPLAIN QUERY PLAN " + tx._queries[name]
    return " ".join(row[3] for row in tx.connection.execute(sql, bindings))


def _at(clock: FakeClock, seconds: float) -> datetime:
    return datetime.fromtimestamp(clock.now() / 1000 + seconds, UTC)


async def test_every_process_watches_for_ticks(app: Penstock) -> None:
    assert "schedules" in {service.name for service in upkeep_services(app, "one")}
