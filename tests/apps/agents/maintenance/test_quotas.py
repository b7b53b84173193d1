"""Quotas: no way in passes them, and what is counted is what came in."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from penstock import Context, Penstock
from penstock.apps.agents.extension import agents as extension
from penstock.apps.agents.maintenance import counting
from penstock.apps.agents.maintenance.check import give_back_lost
from penstock.apps.agents.maintenance.counting import meter_of
from penstock.apps.agents.maintenance.health import concerns, nearly_used_up, used_up
from penstock.apps.agents.maintenance.quotas import (
    Measure,
    Period,
    QuotaExceeded,
    State,
    current,
    reserve,
    reserved,
    settle,
)
from penstock.config import Settings
from penstock.model.errors import InvalidOption, NotAdmitted
from penstock.model.states import Status
from penstock.testing import FakeClock, drain
from penstock.upkeep.schedules import fire_due
from tests.apps.agents.raw import rows

pytestmark = pytest.mark.thorough("postgres")

DAY = 86_400


@pytest.fixture
async def busy(agents: Penstock) -> Penstock:
    """An application with a type of job that makes another, and one that does nothing."""

    @agents.job(name="idle")
    async def idle() -> None: ...

    @agents.job(name="parent", max_retries=0)
    async def parent(ctx: Context, children: int) -> None:
        for _ in range(children):
            await ctx.enqueue(agents.find_type("idle").new())

    return agents


async def bring(app: Penstock, number: int, tenant: str = "north") -> int:
    """Enqueue one by one until it is refused; how many came in."""
    idle = app.find_type("idle").options(tenant=tenant)
    for done in range(number):
        try:
            await idle.enqueue()
        except NotAdmitted:
            return done
    return number


def used(app: Penstock, measure: str = "jobs", tenant: str = "north") -> float:
    asked = "SELECT coalesce(sum(used), 0) FROM agents_usage WHERE tenant_id = ? AND measure = ?"
    return float(rows(app, asked, tenant, measure)[0][0])


@pytest.mark.quick("postgres")
async def test_no_more_jobs_come_in_than_the_quota_allows(busy: Penstock) -> None:
    await busy.agents.quotas.set("north", "jobs", 7, period="day")
    assert await bring(busy, 20) == 7
    assert await bring(busy, 20, "south") == 20, "others are let in"
    with pytest.raises(NotAdmitted, match=r"quota of jobs is used up \(7 of 7 a day\)\.$"):
        await busy.find_type("idle").options(tenant="north").enqueue()
    assert len(await busy.find(tenant_id="north")) == 7
    assert used(busy) == 7


async def test_two_processes_share_a_quota(busy: Penstock, clock: FakeClock) -> None:
    other = Penstock(extensions=["agents"], settings=busy.settings, clock=clock)

    @other.job(name="idle")
    async def idle() -> None: ...

    await busy.agents.quotas.set("north", "jobs", 300)
    async with other:
        done = await asyncio.gather(bring(busy, 200), bring(other, 200))
        assert sum(done) <= 300, "blocks of one process are not those of the other"
    # What the other had left of its block was given back when it was closed.
    meter_of(busy).forget()
    done.append(await bring(busy, 300))
    assert sum(done) == 300
    assert len(await busy.find(tenant_id="north", limit=1_000)) == 300


async def test_a_batch_that_is_too_large_is_refused_whole(busy: Penstock) -> None:
    await busy.agents.quotas.set("north", "jobs", 5)
    idle = busy.find_type("idle").options(tenant="north")
    with pytest.raises(NotAdmitted):
        await busy.enqueue_many([idle.new() for _ in range(6)])
    assert len(await busy.enqueue_many([idle.new() for _ in range(5)])) == 5
    with pytest.raises(NotAdmitted):
        await idle.enqueue()


async def test_children_schedules_and_units_of_work_are_counted_too(
    busy: Penstock, clock: FakeClock
) -> None:
    await busy.agents.quotas.set("north", "jobs", 4)
    parent = busy.find_type("parent").options(tenant="north")
    await parent.enqueue(2)
    await drain(busy)
    idle = busy.find_type("idle").options(tenant="north")
    await busy.transact(lambda tx: tx.enqueue(idle.new()))
    with pytest.raises(NotAdmitted):
        await busy.transact(lambda tx: tx.enqueue(idle.new()))
    await busy.schedule("often", idle.new(), every=60)
    clock.advance(seconds=61)
    assert await fire_due(busy) == 0, "its tick passes"
    await busy.agents.quotas.set("north", "jobs", 5)
    clock.advance(seconds=60)
    assert await fire_due(busy) == 1
    assert used(busy) == 5


async def test_a_child_that_is_one_too_many_fails_its_parent(busy: Penstock) -> None:
    await busy.agents.quotas.set("north", "jobs", 2)
    handle = await busy.find_type("parent").options(tenant="north").enqueue(5)
    await drain(busy)
    job = await busy.get(handle.id)
    assert job.status is Status.DEAD_LETTER
    assert "quota of jobs is used up" in (job.error or "")


async def test_a_job_is_not_run_again_when_its_tenant_has_used_its_quota_up(
    busy: Penstock,
) -> None:
    await busy.agents.quotas.set("north", "jobs", 2)
    handle = await busy.find_type("idle").options(tenant="north").enqueue()
    await busy.cancel(handle.id)
    await busy.requeue(handle.id)
    await busy.cancel(handle.id)
    await busy.find_type("idle").options(tenant="north").enqueue()
    meter_of(busy).forget()
    assert "quota of jobs is used up" in str((await busy.explain(handle.id)).reasons)
    with pytest.raises(NotAdmitted, match="quota of jobs"):
        await busy.requeue(handle.id)
    assert used(busy) == 2, "a job that runs again is the same job"


async def test_what_did_not_come_in_is_not_counted(busy: Penstock) -> None:
    await busy.agents.quotas.set("north", "jobs", 3)
    keyed = busy.find_type("idle").options(tenant="north", key="one")
    for _ in range(5):
        await keyed.enqueue()
    assert await bring(busy, 5) == 2


async def test_a_new_period_begins_at_nothing(busy: Penstock, clock: FakeClock) -> None:
    await busy.agents.quotas.set("north", "jobs", 2, period="day")
    assert await bring(busy, 5) == 2
    clock.advance(seconds=DAY)
    assert await bring(busy, 5) == 2


async def test_a_quota_of_everybody_holds_for_those_without_their_own(busy: Penstock) -> None:
    await busy.agents.quotas.set("*", "jobs", 1)
    await busy.agents.quotas.set("north", "jobs", 3)
    assert (await bring(busy, 5), await bring(busy, 5, "south")) == (3, 1)
    assert await bring(busy, 5, "east") == 1
    assert await busy.agents.quotas.remove("north", "jobs")
    assert await bring(busy, 5) == 0


@pytest.mark.parametrize("tenant", ["north", "*"])
@pytest.mark.thorough("postgres", "valkey", "postgres+redis")
async def test_what_a_process_gives_back_brings_no_erased_tenant_back(
    busy: Penstock, tenant: str
) -> None:
    await busy.agents.quotas.set(tenant, "jobs", 10_000)
    await bring(busy, 1)
    assert used(busy, "jobs") > 1, "the process has taken some in advance"
    await busy.agents.deletions.request(tenant="north")
    await drain(busy)
    await meter_of(busy).close()
    assert rows(busy, "SELECT * FROM agents_usage WHERE tenant_id = ?", "north") == []


async def test_exports_and_deletions_are_never_refused(busy: Penstock) -> None:
    await busy.agents.quotas.set("north", "jobs", 0)
    assert await bring(busy, 1) == 0
    await busy.agents.enqueue("data-export", {}, tenant="north")
    assert used(busy) == 0


async def test_a_throttled_tenants_jobs_come_in_and_run_slowly(
    busy: Penstock, clock: FakeClock
) -> None:
    quotas = busy.agents.quotas
    await quotas.set("north", "jobs", 2, period="day", action="throttle", throttle="1/h")
    assert await bring(busy, 6) == 6
    meter_of(busy).forget()
    await busy.find_type("idle").options(tenant="north").enqueue()
    [limit] = [each.limit for each in await busy.controls.limits() if each.limit.name == "north"]
    assert (limit.kind, limit.capacity, limit.interval_ms) == ("rate", 1, 3_600_000)
    assert (await drain(busy)).completed == 1
    clock.advance(seconds=DAY)
    await busy.agents.enqueue("quota-check", {})
    await drain(busy)
    assert not [each for each in await busy.controls.limits() if each.limit.name == "north"]
    assert not await busy.find(status="queued")


async def test_a_limit_that_somebody_set_is_left_alone(busy: Penstock) -> None:
    await busy.controls.set_limit(tenant="north", rate="5/s")
    await busy.agents.quotas.set("north", "jobs", 0, action="throttle")
    assert await bring(busy, 2) == 2
    await busy.agents.quotas.remove("north", "jobs")
    await busy.agents.enqueue("quota-check", {})
    await drain(busy)
    [limit] = [each.limit for each in await busy.controls.limits()]
    assert limit.capacity == 5


async def test_a_warning_keeps_nobody_out_and_is_told(busy: Penstock) -> None:
    [rule] = [each for each in extension.rules if each.name == "quota_used_up"]
    await busy.agents.quotas.set("north", "jobs", 5, action="warn")
    await busy.agents.quotas.set("south", "jobs", 1)
    assert await bring(busy, 9) == 9
    assert await bring(busy, 9, "south") == 1
    await busy.agents.enqueue("quota-check", {})
    await drain(busy)
    near = await nearly_used_up(busy, rule)
    assert near.value == 1
    assert near.about.startswith("tenant north is warned, with")
    over = await used_up(busy, rule)
    assert (over.value, over.about) == (1, "tenant south is blocked, with 1 of jobs used")
    [concern] = await concerns(busy)
    assert "south" in concern.text
    states = {each.measure: each.state for each in await busy.agents.quotas.usage("north")}
    assert states[Measure.JOBS] is State.WARNED


async def test_a_tenant_whose_storage_is_full_brings_nothing_in(busy: Penstock) -> None:
    await busy.agents.sessions.open(tenant="north", metadata={"long": "x" * 5_000})
    await busy.agents.quotas.set("north", "storage", 4_000)
    assert await bring(busy, 1) == 1, "nobody has weighed it yet"
    await busy.agents.enqueue("quota-check", {})
    await drain(busy)
    assert 5_000 < used(busy, "storage") < 7_000
    meter_of(busy).forget()
    with pytest.raises(NotAdmitted, match="quota of storage is used up"):
        await busy.find_type("idle").options(tenant="north").enqueue()


async def test_events_are_counted_like_jobs(tmp_path: Path, clock: FakeClock) -> None:
    own = {"agents": {"schedules": False}}
    url = f"sqlite:///{tmp_path}/work.db"
    settings = Settings(extension=own)
    async with Penstock(
        url, extensions=["agents", "events"], settings=settings, clock=clock
    ) as app:
        await app.agents.quotas.set("north", "events", 3, period="day")
        for n in range(3):
            await app.events.append("told", tenant_id="north", event_id=f"e{n}", timestamp=1)
        await app.events.append("told", tenant_id="south")
        with pytest.raises(NotAdmitted, match=r"'told' is not let in .* quota of events"):
            await app.events.append("told", tenant_id="north")
        with pytest.raises(NotAdmitted):
            await app.transact(lambda tx: tx.events.append("told", tenant_id="north"))
        assert await app.events.latest() == 4
        clock.advance(seconds=DAY)
        for _ in range(3):
            await app.events.append("told", tenant_id="north", event_id="same", timestamp=1)
        await app.events.append("told", tenant_id="north")
        await app.transact(lambda tx: tx.events.append("told", tenant_id="north"))
        with pytest.raises(NotAdmitted):
            await app.events.append("told", tenant_id="north")


async def test_events_of_a_throttled_tenant_come_in_slowly(
    tmp_path: Path, clock: FakeClock
) -> None:
    settings = Settings(extension={"agents": {"schedules": False}})
    url = f"sqlite:///{tmp_path}/work.db"
    async with Penstock(
        url, extensions=["agents", "events"], settings=settings, clock=clock
    ) as app:

        async def bring_events(number: int) -> int:
            meter_of(app).forget()
            for done in range(number):
                try:
                    await app.events.append("told", tenant_id="north")
                except NotAdmitted:
                    return done
            return number

        await app.agents.quotas.set("north", "events", 2, action="throttle", throttle="4/min")
        assert await bring_events(20) < 10
        clock.advance(seconds=30)
        assert await bring_events(20) == 2
        clock.advance(seconds=60)
        assert await bring_events(20) == 4


async def test_a_call_reserves_before_and_settles_after(agents: Penstock) -> None:
    await agents.agents.quotas.set("north", "tokens", 1_000)
    first = await reserve(agents, "north", {"tokens": 700, "money": 0.5})
    assert used(agents, "tokens") == 700
    with pytest.raises(QuotaExceeded, match=r"700 of 1,000 a month"):
        await reserve(agents, "north", {"tokens": 400, "money": 0.1})
    assert used(agents, "money") == 0.5, "what is refused reserves nothing"
    await settle(agents, first, {"tokens": 120, "money": 0.02})
    await settle(agents, first, {"tokens": 120, "money": 0.02})
    assert used(agents, "tokens") == 120
    assert used(agents, "money") == pytest.approx(0.02)
    async with reserved(agents, "north", {"tokens": 400}) as took:
        took["tokens"] = 80
    with pytest.raises(ConnectionError):
        async with reserved(agents, "north", {"tokens": 400}):
            raise ConnectionError
    assert used(agents, "tokens") == 200
    assert rows(agents, "SELECT count(*) FROM agents_reservations") == [(0,)]


async def test_what_was_given_back_as_lost_is_counted_once_when_it_is_settled_after_all(
    agents: Penstock, clock: FakeClock
) -> None:
    made = await reserve(agents, "north", {"tokens": 700})
    clock.advance(seconds=3_601)
    assert await give_back_lost(agents, None) == 1
    assert await give_back_lost(agents, None) == 0
    assert used(agents, "tokens") == 0
    await settle(agents, made, {"tokens": 120})
    await settle(agents, made, {"tokens": 120})
    assert used(agents, "tokens") == 120
    await reserve(agents, "north", {"tokens": 1})
    clock.advance(seconds=2 * 86_400)
    assert await give_back_lost(agents, None) == 1
    assert rows(agents, "SELECT count(*) FROM agents_reservations") == [(0,)]


async def test_calls_at_once_reserve_no_more_than_there_is(agents: Penstock) -> None:
    await agents.agents.quotas.set("north", "tokens", 500)
    made = [reserve(agents, "north", {"tokens": 100}) for _ in range(9)]
    answers = await asyncio.gather(*made, return_exceptions=True)
    assert sum(isinstance(each, QuotaExceeded) for each in answers) == 4
    assert used(agents, "tokens") == 500


@pytest.mark.parametrize("value", [-1_000, float("nan"), float("inf")])
async def test_nobody_gives_back_what_others_used(agents: Penstock, value: float) -> None:
    made = await reserve(agents, "north", {"tokens": 10})
    with pytest.raises(InvalidOption, match="tokens"):
        await reserve(agents, "north", {"tokens": value})
    with pytest.raises(InvalidOption, match="tokens"):
        await settle(agents, made, {"tokens": value})
    assert used(agents, "tokens") == 10


async def test_without_quotas_an_enqueue_asks_the_store_nothing(
    busy: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bring(busy, 1)
    asked: list[Any] = []
    monkeypatch.setattr(busy, "read", lambda question: asked.append(question))
    assert await bring(busy, 20) == 20
    assert asked == []


async def test_many_jobs_take_few_writes(busy: Penstock, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    look = counting.Meter.look

    async def counted(self: Any, tenants: Any) -> None:
        nonlocal looks
        looks += 1
        await look(self, tenants)

    monkeypatch.setattr(counting.Meter, "look", counted)
    monkeypatch.setattr(counting, "TRUST_SECONDS", 60.0)
    await busy.agents.quotas.set("north", "jobs", 1_000_000)
    assert await bring(busy, 200) == 200
    assert looks <= 3


async def test_what_was_used_in_hours_long_over_is_forgotten(
    busy: Penstock, clock: FakeClock
) -> None:
    await busy.agents.quotas.set("north", "jobs", 100, period="hour")
    await busy.agents.quotas.set("south", "jobs", 100, period="month")
    await bring(busy, 1)
    await bring(busy, 1, "south")
    clock.advance(seconds=8 * DAY)
    await bring(busy, 1)
    await busy.agents.enqueue("quota-check", {})
    await drain(busy)
    asked = "SELECT tenant_id, count(*) FROM agents_usage WHERE measure = ? GROUP BY 1 ORDER BY 1"
    assert rows(busy, asked, "jobs") == [("north", 1), ("south", 1)]


@pytest.mark.parametrize(
    ("named", "problem"),
    [
        ({"measure": "cats", "most": 1}, "one of: jobs, events"),
        ({"measure": "jobs", "most": -1}, "from 0 to"),
        ({"measure": "jobs", "most": float("inf")}, "from 0 to"),
        ({"measure": "jobs", "most": 1, "warn_at": 2}, "up to 1"),
        ({"measure": "jobs", "most": 1, "action": "shout"}, "one of: warn, throttle, block"),
        ({"measure": "storage", "most": 1, "period": "day"}, "left out"),
        ({"measure": "jobs", "most": 1, "throttle": "fast"}, "fast"),
    ],
)
async def test_a_quota_that_makes_no_sense_is_refused(
    agents: Penstock, named: dict[str, Any], problem: str
) -> None:
    with pytest.raises(InvalidOption, match=problem):
        await agents.agents.quotas.set("north", **named)


@pytest.mark.parametrize(
    ("period", "name", "seconds"),
    [
        (Period.HOUR, "2026-12-31T23", 1_800),
        (Period.DAY, "2026-12-31", 1_800),
        (Period.MONTH, "2026-12", 1_800),
    ],
)
def test_periods_end_in_utc(period: Period, name: str, seconds: int) -> None:
    now = 1_798_759_800_000  # half past eleven on New Year's Eve
    assert current(period, now) == (name, now + seconds * 1_000)
