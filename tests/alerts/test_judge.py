import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from penstock import Context, Dead, Penstock
from penstock.alerts.alerts import Alerts
from penstock.alerts.judge import Critical, judge_all, last_judged_at
from penstock.config import Settings
from penstock.model.alert import HISTORY, Alert, AlertState
from penstock.model.alert_rules import (
    CRITICAL_DEAD_LETTER,
    OFFERED,
    RULES,
    AlertSettings,
    Metric,
    Rule,
    RuleSettings,
)
from penstock.model.errors import AlertNotFiring
from penstock.model.not_found import AlertNotFound
from penstock.operate.actor import Actor
from penstock.service import Service
from penstock.store.contract import Claim
from penstock.testing import FakeClock, drain
from penstock.upkeep.extensions import extension_passes
from penstock.upkeep.leader import Leader
from tests.support.workers import beat

HOUR = 3_610


class Ground:
    """An installation in which something can go wrong, and be put right."""

    def __init__(self, app: Penstock, clock: FakeClock) -> None:
        self.app = app
        self.clock = clock
        self.jobs: list[str] = []

        @app.job
        async def task(dies: bool = False, seconds: float = 0) -> None:
            clock.advance(seconds)
            if dies:
                raise Dead("broken")

        @app.job(critical=True)
        async def charge() -> None:
            raise Dead("broken")

        self.task: Any = task
        self.charge: Any = charge

    async def enqueue(self, number: int, **arguments: Any) -> None:
        calls = [self.task.new(**arguments) for _ in range(number)]
        handles = await self.app.enqueue_many(calls, force=True)
        self.jobs += [handle.id for handle in handles]

    async def work(self, number: int, **arguments: Any) -> None:
        await self.enqueue(number, **arguments)
        await drain(self.app)

    async def cancel(self) -> None:
        await self.app.store.jobs.cancel(self.jobs, "done with")

    async def resolve(self) -> None:
        for group in await self.app.dead.groups():
            await self.app.dead.resolve(group.id)

    async def wait(self, seconds: float = HOUR) -> None:
        self.clock.advance(seconds)

    async def beat(self) -> None:
        self.app.store.workers.beat(beat())

    async def silence(self) -> None:
        await self.beat()
        self.clock.advance(31)

    async def expire(self, number: int) -> None:
        await self.enqueue(number)
        claim = Claim(owner="host:1", types=("task",), limit=number, start=number, lease_ms=1_000)
        await self.app.store.jobs.claim(claim)
        self.clock.advance(2)
        await self.app.store.upkeep.rescue(max_rescues=3)

    async def fill(self, number: int) -> None:
        self.app.settings = self.app.settings.replace(queue_limit=100)
        await self.enqueue(number)


async def failures(ground: Ground, bad: int, good: int) -> None:
    await ground.enqueue(good)
    await ground.work(bad, dies=True)


Step = Callable[[Ground], Awaitable[None]]
WRONG_THEN_RIGHT: dict[str, tuple[Step, Step]] = {
    "high_queue_depth": (lambda g: g.enqueue(1_001), Ground.cancel),
    "critical_queue_depth": (lambda g: g.enqueue(5_001), Ground.cancel),
    "old_jobs": (lambda g: _then(g.enqueue(1), g.wait()), Ground.cancel),
    "low_success_rate": (lambda g: failures(g, 6, 94), Ground.wait),
    "high_failure_rate": (lambda g: failures(g, 11, 89), Ground.wait),
    "dead_letters": (lambda g: g.work(11, dies=True), Ground.resolve),
    "dead_letter_accumulation": (lambda g: g.work(51, dies=True), Ground.resolve),
    CRITICAL_DEAD_LETTER: (lambda g: _then(g.charge.enqueue(), drain(g.app)), Ground.resolve),
    "slow_jobs": (lambda g: g.work(1, seconds=61), Ground.wait),
    "worker_down": (Ground.silence, lambda g: g.app.store.workers.forget("host:1")),
    "unserved_jobs": (lambda g: g.enqueue(1), Ground.cancel),
    "lease_expiries": (lambda g: g.expire(6), lambda g: g.wait(910)),
    "queue_nearly_full": (lambda g: g.fill(80), Ground.cancel),
    "queue_full": (lambda g: g.fill(100), Ground.cancel),
    "busy_queue": (lambda g: g.enqueue(101), Ground.cancel),
    "high_latency": (lambda g: g.work(1, seconds=11), Ground.wait),
    "final_failure": (lambda g: g.work(1, dies=True), Ground.resolve),
}
JUST_RIGHT: dict[str, Step] = {
    "high_queue_depth": lambda g: g.enqueue(1_000),
    "critical_queue_depth": lambda g: g.enqueue(5_000),
    "old_jobs": lambda g: _then(g.enqueue(1), g.wait(3_600)),
    "low_success_rate": lambda g: failures(g, 5, 95),
    "high_failure_rate": lambda g: failures(g, 10, 90),
    "dead_letters": lambda g: g.work(10, dies=True),
    "dead_letter_accumulation": lambda g: g.work(50, dies=True),
    CRITICAL_DEAD_LETTER: lambda g: g.work(1, dies=True),
    "slow_jobs": lambda g: g.work(1, seconds=30),
    "worker_down": Ground.beat,
    "unserved_jobs": Ground.beat,
    "lease_expiries": lambda g: g.expire(5),
    "queue_nearly_full": lambda g: g.fill(79),
    "queue_full": lambda g: g.fill(99),
    "busy_queue": lambda g: g.enqueue(100),
    "high_latency": lambda g: g.work(1, seconds=8),
    "final_failure": lambda g: g.work(1),
}


async def _then(*steps: Awaitable[Any]) -> None:
    for step in steps:
        await step


@pytest.fixture
def ground(app: Penstock, clock: FakeClock) -> Ground:
    return Ground(app, clock)


def naming_all_that_is_offered() -> AlertSettings:
    return AlertSettings(rules={rule.name: RuleSettings() for rule in OFFERED})


async def look(app: Penstock) -> dict[str, Alert]:
    await judge_all(app)
    await Critical(app).look()
    return {alert.rule: alert for alert in await Alerts(app).list()}


@pytest.mark.parametrize("rule", [*RULES, *OFFERED], ids=lambda rule: rule.name)
async def test_a_rule_goes_from_quiet_to_firing_to_resolved(
    app: Penstock, clock: FakeClock, ground: Ground, rule: Rule
) -> None:
    app.settings = app.settings.replace(alerts=naming_all_that_is_offered())
    wrong, right = WRONG_THEN_RIGHT[rule.name]
    assert rule.name not in await look(app)
    await wrong(ground)
    found = (await look(app))[rule.name]
    if rule.duration:
        assert found.state is AlertState.PENDING
        clock.advance(rule.duration - 1)
        assert (await look(app))[rule.name].state is AlertState.PENDING
        clock.advance(1)
        found = (await look(app))[rule.name]
    assert (found.state, found.severity, found.fired_at) == ("firing", rule.severity, clock.now())
    await right(ground)
    found = (await look(app))[rule.name]
    assert (found.state, found.resolved_at) == ("resolved", clock.now())
    states = [turn.state.value for turn in found.history]
    assert states == ["pending", "firing", "resolved"]


@pytest.mark.parametrize("rule", [*RULES, *OFFERED], ids=lambda rule: rule.name)
async def test_a_rule_is_quiet_up_to_its_threshold(
    app: Penstock, clock: FakeClock, ground: Ground, rule: Rule
) -> None:
    app.settings = app.settings.replace(alerts=naming_all_that_is_offered())
    await JUST_RIGHT[rule.name](ground)
    assert rule.name not in await look(app)


async def test_what_is_only_offered_is_silent_until_it_is_named(
    app: Penstock, ground: Ground
) -> None:
    await ground.work(1, dies=True)
    assert "final_failure" not in await look(app)


async def test_rates_over_few_jobs_say_nothing(app: Penstock, ground: Ground) -> None:
    await failures(ground, 50, 49)
    found = await look(app)
    assert found.keys().isdisjoint({"low_success_rate", "high_failure_rate"})


async def test_retries_that_then_succeed_lower_no_rate(app: Penstock, clock: FakeClock) -> None:
    @app.job
    async def second_time_lucky(ctx: Context) -> None:
        if ctx.job.attempts == 0:
            raise RuntimeError("not yet")

    await app.enqueue_many([second_time_lucky.new() for _ in range(120)])
    await drain(app, through=600)
    total = (await app.store.metrics.window(3_600_000))[0]
    assert (total.completed, total.failed, total.success_rate) == (120, 120, 1.0)
    assert (await look(app)).keys().isdisjoint({"low_success_rate", "high_failure_rate"})


async def test_what_is_wrong_for_a_moment_only_never_fires(
    app: Penstock, clock: FakeClock, ground: Ground
) -> None:
    await ground.enqueue(1_001)
    assert (await look(app))["high_queue_depth"].state is AlertState.PENDING
    await ground.cancel()
    clock.advance(60)
    assert (await look(app))["high_queue_depth"].state is AlertState.QUIET


def the_pass(app: Penstock, leader: Leader) -> Service:
    app.extensions.enable_installed()
    [found] = [s for s in extension_passes(app, leader) if s.name == "alerts.judge"]
    return found


async def test_only_the_leader_judges(app: Penstock, ground: Ground) -> None:
    leader, follower = Leader(app, "leader", term=1_000), Leader(app, "follower")
    await leader.run_once()
    await follower.run_once()
    await ground.work(11, dies=True)
    await the_pass(app, follower).run_once()
    assert await Alerts(app).list() == []
    await the_pass(app, leader).run_once()
    assert [alert.name for alert in await Alerts(app).list()] == ["dead_letters"]


async def test_a_pending_alert_is_looked_at_more_often(app: Penstock, ground: Ground) -> None:
    leader = Leader(app, "leader", term=1_000)
    await leader.run_once()
    watch = the_pass(app, leader)
    await ground.enqueue(1)
    await watch.run_once()
    assert watch.interval == 10
    await ground.cancel()
    await watch.run_once()
    assert watch.interval == 60


async def test_everybody_knows_when_rules_were_last_judged(app: Penstock, clock: FakeClock) -> None:
    assert await last_judged_at(app) is None
    await judge_all(app)
    assert await last_judged_at(app) == clock.now()


async def test_an_alert_tells_the_figure_the_cause_and_what_to_do(
    app: Penstock, ground: Ground
) -> None:
    await ground.silence()
    found = (await look(app))["worker_down"]
    assert found.text == "Workers that fell silent: 1 worker (mailer)."
    assert "Restart the worker" in found.action
    await ground.enqueue(1_001)
    depth = (await look(app))["high_queue_depth"]
    told = "1,001 jobs (most in 'default'), which is more than 1,000 jobs."
    assert depth.text == f"Jobs that are queued: {told}"


async def test_a_worker_that_came_back_under_its_name_is_not_down(
    app: Penstock, ground: Ground
) -> None:
    await ground.silence()
    app.store.workers.beat(beat(owner="host:2", pid=2))
    assert "worker_down" not in await look(app)


async def test_a_rule_of_ones_own_fires_and_one_that_is_disabled_does_not(
    app: Penstock, ground: Ground
) -> None:
    rules = {
        "few": RuleSettings(metric=Metric.QUEUE_DEPTH, threshold=2, queue="default"),
        "elsewhere": RuleSettings(metric=Metric.QUEUE_DEPTH, threshold=2, queue="mail"),
        "high_queue_depth": RuleSettings(enabled=False),
    }
    app.settings = app.settings.replace(alerts=AlertSettings(rules=rules))
    await ground.enqueue(1_001)
    assert {"few"} == (await look(app)).keys() & {"few", "elsewhere", "high_queue_depth"}


async def test_an_alert_whose_rule_is_gone_is_resolved(app: Penstock, ground: Ground) -> None:
    await ground.work(11, dies=True)
    assert (await look(app))["dead_letters"].state is AlertState.FIRING
    app.settings = app.settings.replace(alerts=AlertSettings(enabled=False))
    assert (await look(app))["dead_letters"].state is AlertState.RESOLVED


async def test_a_person_acknowledges_an_alert_that_fires(
    app: Penstock, clock: FakeClock, ground: Ground
) -> None:
    with pytest.raises(AlertNotFound):
        await Alerts(app, Actor("ann")).acknowledge("dead_letters")
    await ground.work(11, dies=True)
    await look(app)
    found = await Alerts(app, Actor("ann")).acknowledge(
        "dead_letters", "looking; token=abc123def456"
    )
    assert (found.state, found.acknowledged_by) == ("firing", "ann")
    assert found.note == "looking; token=[REDACTED_TOKEN]"
    assert (found.history[-1].by, found.history[-1].note) == ("ann", found.note)
    await ground.resolve()
    await look(app)
    with pytest.raises(AlertNotFiring, match="is resolved"):
        await Alerts(app, Actor("ann")).acknowledge("dead_letters")
    await ground.work(11, dies=True)
    again = (await look(app))["dead_letters"]
    assert (again.state, again.acknowledged_by, again.number) == ("firing", None, 2)


async def test_history_is_bounded(app: Penstock, clock: FakeClock, ground: Ground) -> None:
    for _ in range(HISTORY // 2 + 2):
        app.store.workers.beat(beat())
        clock.advance(31)
        await judge_all(app)
        await app.store.workers.forget("host:1")
        await judge_all(app)
    found = await Alerts(app).get("worker_down")
    assert len(found.history) == HISTORY


async def test_two_processes_that_judge_at_once_agree(app: Penstock, ground: Ground) -> None:
    await ground.work(11, dies=True)
    await asyncio.gather(*(judge_all(app) for _ in range(5)))
    found = await Alerts(app).get("dead_letters")
    assert [turn.state for turn in found.history] == ["pending", "firing"]
    assert found.number == 1


async def test_an_alert_nobody_can_read_begins_afresh(app: Penstock, ground: Ground) -> None:
    await app.store.records.put("alert", "dead_letters", '{"state": "unheard of"}')
    await ground.work(11, dies=True)
    assert (await look(app))["dead_letters"].state is AlertState.FIRING


def test_settings_without_alerts_have_every_rule() -> None:
    assert Settings().alerts.standing() == list(RULES)
