from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from penstock import Penstock
from penstock.app.declare import DeclaredSchedule
from penstock.app.schedules import times_of
from penstock.model.errors import InvalidArguments, InvalidOption, InvalidSchedule, ScheduleOver
from penstock.model.not_found import ScheduleNotFound
from penstock.testing import FakeClock, in_memory
from penstock.upkeep.schedules import fire_due
from tests.support.places import on_any_store


@pytest.fixture
def report(app: Penstock) -> Any:
    @app.job(queue="reports")
    async def report(kind: str = "full", day: date | None = None, run: int = 0) -> str:
        return f"{kind} {day} {run}"

    return report


def later(clock: FakeClock, **span: float) -> datetime:
    return datetime.fromtimestamp(clock.now() / 1000, UTC) + timedelta(**span)


async def test_a_schedule_shows_its_next_runs_in_its_zone(app: Penstock, report: Any) -> None:
    view = await app.schedule(
        "nightly", report.new(kind="full"), cron="0 3 * * *", zone="Europe/Berlin"
    )
    runs = view.next_runs(3)
    assert [run.isoformat() for run in runs] == [
        "2026-01-01T03:00:00+01:00",
        "2026-01-02T03:00:00+01:00",
        "2026-01-03T03:00:00+01:00",
    ]
    assert view.next_run == runs[0]
    assert len((await app.schedules.get("nightly")).next_runs()) == 5


async def test_an_interval_is_seconds_or_a_timedelta(
    app: Penstock, clock: FakeClock, report: Any
) -> None:
    one = await app.schedule("one", report, every=90)
    two = await app.schedule("two", report, every=timedelta(seconds=90))
    assert one.next_run == two.next_run == later(clock, seconds=90)


async def test_an_interval_with_a_start_first_runs_then(
    app: Penstock, clock: FakeClock, report: Any
) -> None:
    start = later(clock, hours=1)
    view = await app.schedule("hourly", report, every=60, start=start)
    assert view.next_runs(2) == [start, start + timedelta(minutes=1)]


async def test_a_moment_runs_once(app: Penstock, clock: FakeClock, report: Any) -> None:
    view = await app.schedule("launch", report, at=later(clock, hours=1))
    assert len(view.next_runs()) == 1
    clock.advance(7200)
    assert await fire_due(app) == 1
    clock.advance(7200)
    assert await fire_due(app) == 0
    assert (await app.schedules.get("launch")).next_runs() == []


async def test_jobs_have_the_options_of_the_call(
    app: Penstock, clock: FakeClock, report: Any
) -> None:
    call = report.options(priority=2, tags=("night",), tenant="acme").new(kind="brief")
    await app.schedule("nightly", call, every=60)
    clock.advance(60)
    await fire_due(app)
    [job] = await app.find(tag="night")
    assert (job.queue, job.priority, job.tenant_id) == ("reports", 2, "acme")
    assert job.payload == '{"kind":"brief"}'
    assert (await app.schedules.get("nightly", "acme")).runs == 1


async def test_placeholders_are_filled_in_at_each_tick(
    app: Penstock, clock: FakeClock, report: Any, drain: Any
) -> None:
    arguments = {"kind": "of {{ name }}", "day": "{{ tick.date }}", "run": "{{ run }}"}
    await app.schedule("nightly", report, arguments, cron="0 0 * * *", zone="Europe/Berlin")
    clock.advance(2 * 86_400)
    await fire_due(app)
    await drain()
    [job] = await app.find()
    assert job.result == '"of nightly 2026-01-03 1"'


async def test_arguments_add_to_those_of_the_call(
    app: Penstock, clock: FakeClock, report: Any
) -> None:
    await app.schedule("nightly", report.new(kind="brief"), {"run": "{{ run }}"}, every=60)
    clock.advance(60)
    await fire_due(app)
    [job] = await app.find()
    assert job.payload == '{"kind":"brief","run":1}'


@on_any_store
@pytest.mark.parametrize(
    ("times", "part"),
    [
        ({}, "one of cron, every and at"),
        ({"cron": "* * * * *", "every": 5}, "'cron and every'"),
        ({"cron": "99 * * * *"}, "minute is '99'"),
        ({"cron": "0 0 31 2 *"}, "a date that exists"),
        ({"cron": 7}, "5 or 6 fields"),
        ({"cron": "* * * * *", "zone": "Europe/Berlni"}, "did you mean Europe/Berlin?"),
        ({"every": 60, "zone": "Nowhere"}, "an IANA time zone"),
        ({"every": 0}, "above 0"),
        ({"every": -1}, "above 0"),
        ({"every": float("nan")}, "above 0"),
        ({"every": float("inf")}, "above 0"),
        ({"every": 1e300}, "above 0"),
        ({"every": True}, "above 0"),
        ({"every": "5m"}, "above 0"),
        ({"every": timedelta(0)}, "above 0"),
        ({"every": 5, "misfire": "maybe"}, "one of skip, one, all"),
        ({"every": 5, "max_runs": 0}, "above 0"),
        ({"every": 5, "max_runs": 1.5}, "above 0"),
        ({"at": datetime(2027, 1, 1)}, "with its zone"),  # noqa: DTZ001 - that is the point
        ({"at": "tomorrow"}, "with its zone"),
        ({"at": datetime(2020, 1, 1, tzinfo=UTC)}, "after now"),
        ({"at": datetime(1, 1, 1, tzinfo=UTC)}, "1970"),
        (
            {"at": datetime(2027, 1, 1, tzinfo=UTC), "start": datetime(2027, 1, 1, tzinfo=UTC)},
            "left out",
        ),
        ({"every": 5, "end": datetime(2025, 1, 1, tzinfo=UTC)}, "after its first run"),
        ({"every": 5, "expires": datetime(2025, 1, 1, tzinfo=UTC)}, "after its first run"),
        (
            {
                "every": 5,
                "start": datetime(2028, 1, 1, tzinfo=UTC),
                "end": datetime(2027, 1, 1, tzinfo=UTC),
            },
            "after its start, 2028",
        ),
        ({"corn": "* * * * *"}, "corn"),
    ],
)
async def test_times_that_make_no_sense_are_one_sentence_and_change_nothing(
    app: Penstock, report: Any, times: dict[str, Any], part: str
) -> None:
    with pytest.raises(InvalidSchedule) as refused:
        await app.schedule("bad", report, **times)
    assert part in str(refused.value)
    assert str(refused.value).count(".") >= 1
    assert await app.schedules.list() == []


@on_any_store
@pytest.mark.parametrize(
    ("arguments", "error", "part"),
    [
        ({"kind": "{{ user }}"}, InvalidSchedule, "one of tick, tick.date"),
        ({"day": "{{ tick }}"}, InvalidArguments, "'day'"),
        ({"run": "run {{ run }}"}, InvalidArguments, "'run'"),
        ({"kind": "{{ run }}"}, InvalidArguments, "expected str"),
        ({"kind": "{{ previous }}"}, InvalidArguments, "expected str"),
        ({"nobody": 1}, InvalidArguments, "'nobody'"),
        ({"kind": object()}, InvalidArguments, "JSON"),
    ],
)
async def test_a_template_that_does_not_fit_the_type_is_refused_at_the_call(
    app: Penstock, report: Any, arguments: dict[str, Any], error: type[Exception], part: str
) -> None:
    with pytest.raises(error, match=part):
        await app.schedule("bad", report, arguments, every=60)
    assert await app.schedules.list() == []


async def test_a_call_that_lacks_an_argument_is_refused(app: Penstock) -> None:
    @app.job
    async def send(to: str) -> None: ...

    with pytest.raises(InvalidArguments, match="'to'"):
        await app.schedule("bad", send, every=60)
    await app.schedule("good", send, {"to": "{{ name }}"}, every=60)


@pytest.mark.parametrize("options", [{"at": datetime(2027, 1, 1, tzinfo=UTC)}])
async def test_a_call_with_a_time_of_its_own_is_refused(
    app: Penstock, report: Any, options: dict[str, Any]
) -> None:
    with pytest.raises(InvalidSchedule, match="without the options at and after"):
        await app.schedule("bad", report.options(**options).new(), every=60)


async def test_a_name_that_a_shell_would_stumble_over_is_refused(
    app: Penstock, report: Any
) -> None:
    with pytest.raises(InvalidOption, match="'name'"):
        await app.schedule("two words", report, every=60)


async def test_the_same_call_again_changes_nothing(
    app: Penstock, clock: FakeClock, report: Any
) -> None:
    first = await app.schedule("hourly", report, every=3600)
    clock.advance(3000)
    again = await app.schedule("hourly", report, every=3600)
    assert again.schedule == first.schedule


async def test_another_call_reschedules_and_keeps_the_counts(
    app: Penstock, clock: FakeClock, report: Any
) -> None:
    await app.schedule("hourly", report, every=3600)
    clock.advance(3600)
    await fire_due(app)
    changed = await app.schedule("hourly", report, cron="0 0 * * *")
    assert changed.runs == 1
    assert changed.schedule.interval_ms is None
    assert changed.next_run == datetime(2026, 1, 2, tzinfo=UTC)
    assert len(await app.schedules.list()) == 1


async def test_other_arguments_at_the_same_times_lose_no_tick_that_is_due(
    app: Penstock, clock: FakeClock, report: Any
) -> None:
    await app.schedule("hourly", report, every=3600)
    clock.advance(3601)
    await app.schedule("hourly", report, {"kind": "brief"}, every=3600)
    assert await fire_due(app) == 1
    view = await app.schedules.get("hourly")
    assert view.next_run == datetime(2026, 1, 1, 2, tzinfo=UTC)


async def test_a_schedule_that_had_its_runs_takes_more_only_with_a_larger_bound(
    app: Penstock, clock: FakeClock, report: Any
) -> None:
    await app.schedule("twice", report, every=60, max_runs=2, misfire="all")
    clock.advance(600)
    await fire_due(app)
    with pytest.raises(ScheduleOver, match="above 2"):
        await app.schedule("twice", report, every=30, max_runs=2)
    more = await app.schedule("twice", report, every=60, max_runs=3)
    assert len(more.next_runs()) == 1


async def test_a_pause_lasts_until_it_is_resumed_and_nothing_is_made_up_for(
    app: Penstock, clock: FakeClock, report: Any
) -> None:
    await app.schedule("hourly", report, every=3600, misfire="all")
    assert (await app.schedules.pause("hourly")).paused
    clock.advance(5 * 3600 + 60)
    assert (await app.schedule("hourly", report, {"run": 1}, every=3600)).paused
    resumed = await app.schedules.resume("hourly")
    assert not resumed.paused
    assert resumed.next_run == datetime(2026, 1, 1, 6, tzinfo=UTC)
    assert await fire_due(app) == 0
    assert (await app.schedules.resume("hourly")).schedule == resumed.schedule


async def test_running_now_leaves_the_ticks_alone(
    app: Penstock, clock: FakeClock, report: Any
) -> None:
    before = await app.schedule("nightly", report, {"run": "{{ run }}"}, cron="0 3 * * *")
    ids = {await app.schedules.run("nightly") for _ in range(2)}
    assert len(ids) == 2
    job = await app.get(ids.pop())
    assert (job.status, job.schedule_id) == ("queued", before.schedule.id)
    assert (await app.schedules.get("nightly")).schedule == before.schedule


async def test_a_paused_schedule_can_be_run_now(app: Penstock, report: Any) -> None:
    await app.schedule("nightly", report, every=60)
    await app.schedules.pause("nightly")
    assert await app.schedules.run("nightly")


@pytest.mark.parametrize("act", ["get", "pause", "resume", "remove", "run"])
async def test_an_unknown_schedule_is_named_with_those_there_are(
    app: Penstock, report: Any, act: str
) -> None:
    await app.schedule("nightly", report, every=60)
    with pytest.raises(ScheduleNotFound, match=r"no schedule 'nigthly' \(it has nightly\)"):
        await getattr(app.schedules, act)("nigthly")


async def test_a_removed_schedule_fires_no_more(
    app: Penstock, clock: FakeClock, report: Any
) -> None:
    await app.schedule("nightly", report, every=60)
    await app.schedules.remove("nightly")
    clock.advance(60)
    assert await fire_due(app) == 0


async def test_a_declared_schedule_is_put_when_the_application_declares(
    app: Penstock, clock: FakeClock
) -> None:
    @app.scheduled(cron="0 3 * * *", arguments={"day": "{{ tick.date }}"})
    @app.job
    async def digest(day: date) -> None: ...

    assert await app.schedules.list() == []
    await app.declare()
    await app.declare()
    [view] = await app.schedules.list()
    assert view.name == "digest"
    clock.advance(86_400)
    assert await fire_due(app) == 1
    assert await digest(date(2026, 1, 1)) is None


async def test_a_type_may_have_several_schedules_under_different_names(app: Penstock) -> None:
    @app.scheduled(name="early", cron="0 3 * * *")
    @app.scheduled(name="late", cron="0 22 * * *")
    @app.job
    async def digest() -> None: ...

    await app.declare()
    assert [view.name for view in await app.schedules.list()] == ["early", "late"]


def test_two_schedules_of_one_name_are_refused(app: Penstock) -> None:
    with pytest.raises(InvalidOption, match="no other schedule"):

        @app.scheduled(cron="0 3 * * *")
        @app.scheduled(cron="0 22 * * *")
        @app.job
        async def digest() -> None: ...


def test_a_module_that_is_loaded_again_replaces_its_schedule(app: Penstock) -> None:
    async def digest() -> None: ...

    for cron in ("0 3 * * *", "0 4 * * *"):
        app.scheduled(cron=cron)(app.job(digest))
    declared = [one for one in app.declarations if isinstance(one, DeclaredSchedule)]
    assert len(declared) == 1


def test_the_decorator_under_the_job_is_refused(app: Penstock) -> None:
    async def digest() -> None: ...

    wrong: Any = digest
    with pytest.raises(InvalidOption, match=r"above @app\.job"):
        app.scheduled(cron="0 3 * * *")(wrong)


def test_a_wrong_time_is_refused_by_the_decorator(app: Penstock, report: Any) -> None:
    with pytest.raises(InvalidSchedule, match="minute"):
        app.scheduled(cron="99 * * * *")(report)


async def test_a_deploy_does_not_undo_what_an_operator_did(
    app: Penstock, clock: FakeClock, report: Any
) -> None:
    app.scheduled(name="nightly", cron="0 3 * * *")(report)
    await app.declare()
    await _by_operator(app, "nightly", report, "0 4 * * *")
    await app.schedules.pause("nightly")
    await app.declare()
    kept = await app.schedules.get("nightly")
    assert (kept.schedule.expression, kept.paused) == ("0 4 * * *", True)


async def test_a_changed_declaration_takes_the_times_back_but_not_the_pause(
    app: Penstock, clock: FakeClock, report: Any
) -> None:
    app.scheduled(name="nightly", cron="0 3 * * *")(report)
    await app.declare()
    await _by_operator(app, "nightly", report, "0 4 * * *")
    await app.schedules.pause("nightly")
    app.declarations.pop()
    app.scheduled(name="nightly", cron="0 5 * * *")(report)
    await app.declare()
    changed = await app.schedules.get("nightly")
    assert (changed.schedule.expression, changed.paused) == ("0 5 * * *", True)
    assert not changed.schedule.by_operator


async def test_an_explicit_call_overrules_an_operator(app: Penstock, report: Any) -> None:
    await app.schedule("nightly", report, cron="0 3 * * *")
    await _by_operator(app, "nightly", report, "0 4 * * *")
    view = await app.schedule("nightly", report, cron="0 3 * * *")
    assert view.schedule.expression == "0 3 * * *"


async def test_a_declared_moment_that_has_passed_does_not_stop_a_worker(
    app: Penstock, clock: FakeClock, report: Any
) -> None:
    app.scheduled(name="launch", at=later(clock, hours=1))(report)
    clock.advance(7200)
    await app.declare()
    assert await app.schedules.list() == []


def test_scripts_schedule_without_an_event_loop() -> None:
    with in_memory() as app:

        @app.job
        async def report() -> None: ...

        view = app.sync.schedule("nightly", report.new(), cron="0 3 * * *")
        assert app.sync.run(app.schedules.get("nightly")).schedule == view.schedule


async def _by_operator(app: Penstock, name: str, type_: Any, cron: str) -> None:
    await app.schedules.put(name, type_.new().job, times_of({"cron": cron}))
