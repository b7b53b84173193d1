"""The health of the pipeline: alerts, checks, figures, and whether replays agree."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from penstock import Penstock
from penstock.alerts.alerts import Alerts
from penstock.alerts.judge import judge_all, rules_of
from penstock.config import Settings
from penstock.events import feed, health
from penstock.events.anew import consistency
from penstock.events.consumer import consumer_of
from penstock.events.event import NewEvent, Session
from penstock.events.extension import events
from penstock.events.health import pipeline_health
from penstock.events.pool import Care, Pool, catch_up
from penstock.events.pressure import check
from penstock.events.rules import METRICS, RULES
from penstock.model.alert import AlertState
from penstock.model.alert_rules import AlertSettings
from penstock.model.store_errors import StoreUnavailable
from penstock.operate.health import HealthStatus, extension_checks
from penstock.testing.clock import FakeClock
from proof.tally import Tally, name_of, tally
from tests.events.streams import Others, drain, envelope, fast_path, streaming
from tests.support.events import DAY, NOON, an_event
from tests.support.places import Place, find_place

SMALL = {"green": 10, "yellow": 40, "orange": 80, "red": 160}


class Compared(Tally):
    """Says what it derived from a session."""

    def digest(self, tx: Any, session: Session) -> Any:
        return tx.tally.row("row", (self.name, name_of(session)))


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def kind() -> str:
    return "sqlite"


@pytest.fixture
async def app(
    kind: str, request: pytest.FixtureRequest, clock: FakeClock
) -> AsyncIterator[Penstock]:
    settings = Settings(extension={"events": {"pressure": SMALL}})
    place = find_place(kind, request)
    async with Penstock(
        place.url, settings=settings, extensions=[tally, events], clock=clock
    ) as made:
        made.consumer.add(consumer_of(Compared(), name="tally"))
        await feed.declare(made, made.consumer.get("tally"))
        yield made


async def append(app: Penstock, count: int, session: str = "") -> None:
    await app.events.append_many(
        [NewEvent(event_type="tool_use", session_id=session or f"s{n}") for n in range(count)]
    )


async def firing(app: Penstock) -> set[str]:
    await judge_all(app)
    return {alert.name for alert in await Alerts(app).list() if alert.state is AlertState.FIRING}


def by_name(app: Penstock) -> dict[str, Any]:
    return {rule.name: rule for rule in rules_of(app)}


def test_the_rules_are_those_of_the_seed() -> None:
    told = {each.name: (each.threshold, each.duration, each.severity, each.route) for each in RULES}
    assert told["events_fast_path_down"] == (30, 0, "critical", "page")
    assert told["events_depth_high"] == (50_000, 300, "warning", "email")
    assert told["events_lag_high"] == (30, 600, "warning", "slack")
    assert told["events_write_errors"] == (0, 60, "critical", "page")


def test_a_rule_goes_its_own_way_if_there_is_one_and_else_the_usual(app: Penstock) -> None:
    told: dict[str, str | tuple[str, ...]] = {
        "ops": "json://ops",
        "pager": "json://pager",
        "email": "json://mail",
    }
    app.settings = app.settings.replace(
        alerts=AlertSettings(routes=told, route="ops", critical_route="pager")
    )
    rules = by_name(app)
    assert rules["events_depth_high"].route == "email"
    assert rules["events_lag_high"].route == "ops"
    assert rules["events_write_errors"].route == "pager"


async def test_lag_is_told_after_ten_minutes(app: Penstock, clock: FakeClock) -> None:
    await append(app, 1)
    clock.advance(31)
    assert await firing(app) == set()
    clock.advance(599)
    assert "events_lag_high" not in await firing(app)
    clock.advance(1)
    assert "events_lag_high" in await firing(app)
    await catch_up(app)
    assert "events_lag_high" not in await firing(app)


async def test_the_user_is_told_from_orange_on_and_somebody_paged_in_red(
    app: Penstock, clock: FakeClock
) -> None:
    levels = []
    for count in (79, 1, 80):
        await append(app, count)
        clock.advance(0.1)
        await check(app)
        levels.append(await firing(app))
    assert levels == [set(), {"events_under_pressure"}, {"events_under_pressure", "events_shed"}]
    found = await Alerts(app).get("events_shed")
    assert "red, as tally is 160 events behind" in found.text


async def test_writes_that_fail_for_a_minute_are_told(
    app: Penstock, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(work: Any) -> Any:
        raise StoreUnavailable("here", "gone")

    for _ in range(8):
        with monkeypatch.context() as patched:
            patched.setattr(app, "transact", away)
            with pytest.raises(StoreUnavailable):
                await append(app, 1)
        await app.series.flush()
        told = await firing(app)
        clock.advance(10)
    assert "events_write_errors" in told
    clock.advance(120)
    assert "events_write_errors" not in await firing(app)


async def test_a_log_that_does_not_answer_is_a_write_that_fails(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(question: Any) -> Any:
        raise StoreUnavailable("here", "gone")

    monkeypatch.setattr(app, "read", away)
    found = await health.write_errors(app, by_name(app)["events_write_errors"])
    assert found.value == 1
    assert "gone" in found.about


async def test_checks_say_what_is_wrong(app: Penstock, clock: FakeClock) -> None:
    assert {each.status for each in (await extension_checks(app)).values()} == {"healthy"}
    await append(app, 200)
    clock.advance(0.1)
    await check(app)
    found = await extension_checks(app)
    assert found["events.pressure"].status is HealthStatus.UNHEALTHY
    assert found["events.pressure"].detail == (
        "The level is red: tally is 200 events behind. tally put off events of low priority."
    )
    assert found["events.consumers"].detail.startswith("Nobody runs tally, for which events wait")
    assert found["events.ingest"].status is HealthStatus.HEALTHY


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_the_figures_of_the_pipeline(app: Penstock) -> None:
    await append(app, 3)
    await catch_up(app)
    await app.series.flush()
    await see_workers(app, 1)
    found = await pipeline_health(app)
    assert {each.stage for each in found.timings} == {"fetch", "prepare", "apply", "whole"}
    assert all(0 < each.p50 <= each.p95 <= each.p99 < 60_000 for each in found.timings)
    assert 0 < found.utilisation["tally"] <= 1
    assert found.sizes["log"] > 0
    assert found.sizes["archive"] == 0
    assert ("wal" in found.sizes) == (app.store.url.startswith("sqlite"))
    assert (found.unread, found.stalled_ms, found.write_errors) == (0, 0, 0)


async def see_workers(app: Penstock, count: int) -> None:
    def work(tx: Any) -> None:
        tx.events.queries.run("see_member", ("tally", "here", count, tx.now))

    await app.transact(work)


async def test_every_metric_is_read(app: Penstock) -> None:
    await append(app, 3)
    for metric in events.metrics:
        module, _, name = str(metric.read).partition(":")
        assert module == health.__name__
        found = await getattr(health, name)(app)
        if metric.labels:
            assert all(len(key) == len(metric.labels) for key in found), metric.name
        else:
            assert found >= 0, metric.name
    assert len({name for name, *_ in METRICS}) == len(METRICS)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_derived_rows_that_are_not_what_a_replay_derives_are_found(app: Penstock) -> None:
    await append(app, 4, session="s")
    await catch_up(app)
    consumer = app.consumer.get("tally")
    assert await consistency(app, consumer) == 1
    await app.transact(lambda tx: tx.tally.run("put", ("tally", "//s", 7, 100, "forged")))
    assert await consistency(app, consumer) == 0
    assert await consistency(app, consumer) == 0, "and nothing was changed by looking"
    await app.transact(lambda tx: tx.events.queries.run("shed", (1, "tally")))
    await append(app, 1, session="s")
    await catch_up(app)
    assert await consistency(app, consumer) is None, "a session that is behind says nothing"


async def test_one_process_of_a_consumer_looks_after_its_sessions(app: Penstock) -> None:
    await append(app, 4, session="s")
    await catch_up(app)
    await app.transact(lambda tx: tx.tally.run("put", ("tally", "//s", 7, 100, "forged")))
    await app.transact(lambda tx: tx.events.queries.run("shed", (1, "tally")))
    await append(app, 2, session="t")
    await catch_up(app)
    await app.transact(lambda tx: tx.events.queries.run("shed", (None, "tally")))
    pool = Pool(app, app.consumer.get("tally"), "here")
    care = Care(app, pool)
    await care.run_once()
    [lag] = (await pipeline_health(app)).consumers
    assert lag.behind == 1, "another process leads"
    pool.leads = True
    await care.run_once()
    await app.series.flush()
    [found] = await app.series.read("events.consistency")
    assert found.last is not None
    assert found.last < 1
    assert (await extension_checks(app))["events.consistency"].status is HealthStatus.DEGRADED
    [lag] = (await pipeline_health(app)).consumers
    assert lag.behind == 0


async def test_a_fast_path_that_writes_nothing_though_entries_wait_is_told_after_30_seconds(
    place: Place, valkey_url: str, tmp_path: Path
) -> None:
    others = Others(valkey_url)
    async with streaming(place, valkey_url, tmp_path) as app:
        app.extensions.enable(events)
        rule = by_name(app)["events_fast_path_down"]
        assert (await health.stalled(app, rule)).value == 0
        long_ago = app.store.clock.now() - 31_000
        others.client.xadd(others.key("telemetry:events"), envelope(1), id=f"{long_ago}-0")
        found = await health.stalled(app, rule)
        assert found.value is not None
        assert rule.breached(found.value)
        assert found.about == "unread: 1"
        check = await health.check_ingest(app)
        assert check.status is HealthStatus.UNHEALTHY
        await progress(app, app.store.clock.now())
        found = await health.stalled(app, rule)
        assert found.value is not None
        assert found.value < 30, "it does its work, though there is much"
        async with fast_path(app) as path:
            await drain(path)
        assert (await health.stalled(app, rule)).value == 0


async def progress(app: Penstock, at: int) -> None:
    told = ("fast-path-1", "here", at, at, 1, 0, None, '{"write": [1.0, 2.0, 3.0]}')
    await app.transact(lambda tx: tx.events.queries.run("tell_ingest", told))


async def test_the_stages_of_ingest_are_among_the_timings(app: Penstock) -> None:
    await progress(app, app.store.clock.now())
    [found] = (await pipeline_health(app)).timings
    assert (found.of, found.stage, found.p50, found.p95, found.p99) == ("ingest", "write", 1, 2, 3)
    assert (await health.stage_seconds(app))[("ingest", "write", "0.99")] == 0.003


@pytest.mark.parametrize(
    ("told", "status", "words"),
    [
        ({}, HealthStatus.HEALTHY, "off"),
        ({"archive": "."}, HealthStatus.HEALTHY, "0 files"),
        ({"jobs_archive_days": 30}, HealthStatus.UNHEALTHY, "has no folder"),
        ({"archive_days": 30, "archive": "/dev/null/x"}, HealthStatus.UNHEALTHY, "/dev/null/x"),
    ],
)
async def test_doctor_says_whether_what_is_to_be_archived_can_be(
    tmp_path: Path, told: dict[str, Any], status: HealthStatus, words: str
) -> None:
    folder = {name: str(tmp_path) if value == "." else value for name, value in told.items()}
    settings = Settings(extension={"events": folder})
    async with Penstock(f"sqlite:///{tmp_path}/work.db", settings=settings) as made:
        check = await health.check_archive(made)
    assert (check.status, words in check.detail) == (status, True), check.detail


async def test_doctor_names_files_of_the_archive_that_cannot_be_read_here(tmp_path: Path) -> None:
    url, here, there = f"sqlite:///{tmp_path}/work.db", tmp_path / "here", tmp_path / "there"

    def made(folder: Path | None) -> Penstock:
        told = {"archive": str(folder)} if folder else {}
        return Penstock(url, settings=Settings(extension={"events": told}), extensions=["events"])

    async with made(here) as app:
        await app.events.append_many([an_event(timestamp=NOON), an_event()])
        [file] = await app.events.archive(NOON + 40 * DAY)
        check = await health.check_archive(app)
        assert (check.status, "1 file" in check.detail) == (HealthStatus.HEALTHY, True)
    async with made(there) as app:
        check = await health.check_archive(app)
        assert check.status is HealthStatus.UNHEALTHY
        assert f"1 of 1 file cannot be read in {there}, the first is {file.file}" in check.detail
        shutil.copytree(here, there, dirs_exist_ok=True)
        assert (await health.check_archive(app)).status is HealthStatus.HEALTHY
    async with made(None) as app:
        assert (await health.check_archive(app)).status is HealthStatus.UNHEALTHY
