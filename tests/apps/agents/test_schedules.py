from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from penstock import Penstock
from penstock.apps.agents.schedules import DEFAULTS, DefaultSchedule
from penstock.config import Settings
from penstock.model.errors import InvalidOption, InvalidSchedule
from penstock.testing import FakeClock, drain
from tests.support.places import Place

SCHEDULES = {
    "session-cleanup": ("0 */15 * * * *", "session-cleanup", '{"maxAge":86400000}'),
    "memory-importance-decay": ("0 0 */6 * * *", "memory-importance-decay", '{"decayFactor":0.99}'),
    "index-optimization": ("0 0 3 * * *", "index-optimization", '{"threshold":0.8}'),
    "pattern-training-daily": (
        "0 0 4 * * *",
        "pattern-training",
        '{"batchSize":1000,"epochs":5}',
    ),
    "quota-check": ("0 0 * * * *", "quota-check", "{}"),
}
"""As the platform's own documents have them."""


@pytest.fixture
def deploy(place: Place, clock: FakeClock, tmp_path: Any) -> Callable[..., Penstock]:
    """The application, as each deploy and restart makes it anew."""

    def made(*, schedules: bool = True) -> Penstock:
        own = {"folder": str(tmp_path / "agents"), "schedules": schedules}
        settings = Settings(extension={"agents": own})
        return Penstock(place.url, extensions=["agents"], settings=settings, clock=clock)

    return made


async def declared(app: Penstock) -> dict[str, tuple[str | None, str, str]]:
    async with app:
        await app.declare()
        found = [view.schedule for view in await app.schedules.list()]
    assert {schedule.zone for schedule in found} <= {"UTC"}
    return {each.name: (each.expression, each.type, each.payload) for each in found}


@pytest.mark.parametrize("kind_of_store", ["sqlite", "postgres"])
async def test_a_worker_declares_the_five_default_schedules_with_their_data(
    deploy: Callable[..., Penstock],
) -> None:
    assert await declared(deploy()) == SCHEDULES


async def test_a_tick_enqueues_its_type_with_its_data(
    deploy: Callable[..., Penstock], clock: FakeClock
) -> None:
    async with deploy() as app:
        await drain(app, clock=clock, through=15 * 60)
        [job] = await app.find(type="session-cleanup", limit=10)
    assert (job.payload, job.status, job.tenant_id) == ('{"maxAge":86400000}', "completed", "")


@pytest.mark.parametrize("kind_of_store", ["sqlite", "postgres"])
async def test_a_default_schedule_that_was_rescheduled_stays_so_through_restarts_and_deploys(
    deploy: Callable[..., Penstock],
) -> None:
    async with deploy() as app:
        await app.declare()
        view = await app.agents.reschedule("session-cleanup", "0 */5 * * * *")
        assert view.next_run == datetime(2026, 1, 1, 0, 5, tzinfo=UTC)
    changed = {**SCHEDULES, "session-cleanup": ("0 */5 * * * *", *SCHEDULES["session-cleanup"][1:])}
    assert await declared(deploy()) == changed
    # A release may say something else: who decided otherwise is not overruled.
    app = deploy()
    for schedule in [each for each in app.declarations if isinstance(each, DefaultSchedule)]:
        times: Any = {"cron": "30 0 * * * *", "zone": "UTC"}
        remade = DefaultSchedule(
            schedule.type, schedule.name, dict(schedule._arguments or {}), times
        )
        app.declarations[app.declarations.index(schedule)] = remade
    found = await declared(app)
    assert found["session-cleanup"] == changed["session-cleanup"]
    assert {cron for name, (cron, *_) in found.items() if name != "session-cleanup"} == {
        "30 0 * * * *"
    }


async def test_one_that_was_changed_like_any_other_schedule_stays_as_well(
    deploy: Callable[..., Penstock],
) -> None:
    async with deploy() as app:
        await app.declare()
        job = app.schedules.new_job("quota-check", "{}")
        from penstock.app.schedules import times_of

        await app.schedules.put("quota-check", job, times_of({"cron": "0 30 * * * *"}))
    assert (await declared(deploy()))["quota-check"][0] == "0 30 * * * *"


async def test_without_schedules_none_is_declared_and_those_nobody_changed_go(
    deploy: Callable[..., Penstock],
) -> None:
    assert await declared(deploy(schedules=False)) == {}
    await declared(deploy())
    async with deploy() as app:
        await app.agents.reschedule("quota-check", "0 30 * * * *")
    assert set(await declared(deploy(schedules=False))) == {"quota-check"}


async def test_what_is_no_default_schedule_cannot_be_rescheduled(
    deploy: Callable[..., Penstock],
) -> None:
    async with deploy() as app:
        with pytest.raises(InvalidOption, match="session-cleanup"):
            await app.agents.reschedule("nightly", "0 3 * * *")
        with pytest.raises(InvalidSchedule):
            await app.agents.reschedule("quota-check", "soon")


def test_every_default_is_one_of_ours() -> None:
    assert {default.name for default in DEFAULTS} == set(SCHEDULES)
