"""Judging the rules of alerts, and telling at once of dead letters of critical types."""

from collections.abc import Callable, Mapping, Sequence

import structlog
from msgspec import Struct
from msgspec.structs import replace

from penstock.app.penstock import Penstock
from penstock.model.alert import Alert, AlertState, Reading, dropped, judged
from penstock.model.alert_rules import EVERY_TYPE, MEASURES, Metric, Rule
from penstock.model.controls import DepthLimits
from penstock.model.errors import AlertNotFound
from penstock.model.wording import listed
from penstock.operate.alerts import TYPE as NOTICE
from penstock.operate.alerts import Alerts
from penstock.service import Service
from penstock.store.contract import DeadLetter, QueueDepth, Window, WorkerInfo
from penstock.upkeep.leader import Leader
from penstock.upkeep.sweeps import unserved


class Look(Struct, frozen=True, kw_only=True):
    """One look at an installation; windows are by their length in milliseconds."""

    depths: Sequence[QueueDepth]
    windows: Mapping[int, Sequence[Window]]
    dead: int
    workers: Sequence[WorkerInfo]
    waiting: Mapping[str, int]
    limits: DepthLimits


async def look(app: Penstock, rules: Sequence[Rule]) -> Look:
    """Everything that the rules measure."""
    store = app.store
    spans = {window_ms(rule) for rule in rules if MEASURES[rule.metric].windowed}
    return Look(
        depths=await store.metrics.depths(),
        windows={span: await store.metrics.window(span) for span in sorted(spans)},
        dead=await store.metrics.dead_count(),
        workers=await store.workers.list(),
        waiting=await store.workers.waiting_types(),
        limits=DepthLimits(await store.controls.limits(), app.settings.queue_limit),
    )


def window_ms(rule: Rule) -> int:
    """The span a rule looks back, in milliseconds."""
    return int(rule.window * 1000)


def reading(rule: Rule, seen: Look) -> Reading:
    """What a rule measures, and what that is mostly about."""
    return _READINGS[rule.metric](rule, seen)


def _depth(rule: Rule, seen: Look) -> Reading:
    found = _queues(rule, seen)
    deepest = max(found, key=lambda depth: depth.queued, default=None)
    queued = sum(depth.queued for depth in found)
    return Reading(queued, "" if deepest is None else f"most in {deepest.queue!r}")


def _oldest(rule: Rule, seen: Look) -> Reading:
    oldest = max(_queues(rule, seen), key=lambda depth: depth.oldest_queued_ms or 0, default=None)
    if oldest is None or oldest.oldest_queued_ms is None:
        return Reading(0)
    return Reading(oldest.oldest_queued_ms / 1000, f"in {oldest.queue!r}")


def _backpressure(rule: Rule, seen: Look) -> Reading:
    found = [
        (100 * depth.queued / limit, depth.queue)
        for depth in _queues(rule, seen)
        if (limit := seen.limits.of(depth.queue))
    ]
    fullest = max(found, default=None)
    return Reading(0) if fullest is None else Reading(fullest[0], f"in {fullest[1]!r}")


def _success(rule: Rule, seen: Look) -> Reading:
    found = _failed_percent(rule, seen)
    return found if found.value is None else Reading(100 - found.value, found.about)


def _failed_percent(rule: Rule, seen: Look) -> Reading:
    rows = _rows(rule, seen)
    ended = sum(row.ended for row in rows)
    if not ended or ended < rule.at_least:
        return Reading(None)
    dead = sum(row.dead for row in rows)
    worst = max(rows, key=lambda row: row.dead)
    return Reading(100 * dead / ended, f"mostly {worst.type!r}" if dead else "")


def _duration(rule: Rule, seen: Look) -> Reading:
    return _slowest(rule, seen, lambda row: row.duration_p95_ms)


def _wait(rule: Rule, seen: Look) -> Reading:
    return _slowest(rule, seen, lambda row: row.wait_p95_ms)


def _slowest(rule: Rule, seen: Look, of: Callable[[Window], float | None]) -> Reading:
    """In all, unless the rule is narrowed down: percentiles of several rows do not add up."""
    rows = _rows(rule, seen)
    slowest = max(rows, key=lambda row: of(row) or 0, default=None)
    if slowest is None:
        return Reading(None)
    in_all = slowest if rule.queue or rule.type else seen.windows[window_ms(rule)][0]
    value = of(in_all)
    return Reading(None if value is None else value / 1000, f"slowest is {slowest.type!r}")


def _expiries(rule: Rule, seen: Look) -> Reading:
    return Reading(sum(row.lease_expiries for row in _rows(rule, seen)))


def _dead(_: Rule, seen: Look) -> Reading:
    return Reading(seen.dead)


def _down(_: Rule, seen: Look) -> Reading:
    alive = {(worker.node, worker.name) for worker in seen.workers if worker.alive}
    down = sorted(
        worker.name
        for worker in seen.workers
        if not worker.alive and (worker.node, worker.name) not in alive
    )
    return Reading(len(down), listed(down), cause=listed(down))


def _alive(_: Rule, seen: Look) -> Reading:
    return Reading(sum(worker.alive for worker in seen.workers))


def _unserved(_: Rule, seen: Look) -> Reading:
    found = unserved(seen.waiting, seen.workers)
    return Reading(sum(found.values()), listed(list(found)))


def _queues(rule: Rule, seen: Look) -> list[QueueDepth]:
    return [depth for depth in seen.depths if rule.queue in (None, depth.queue)]


def _rows(rule: Rule, seen: Look) -> list[Window]:
    """One row per type and queue that the rule is about; the first row is the sum of them."""
    rows = seen.windows[window_ms(rule)][1:]
    return [
        row for row in rows if rule.queue in (None, row.queue) and rule.type in (None, row.type)
    ]


_READINGS: dict[Metric, Callable[[Rule, Look], Reading]] = {
    Metric.QUEUE_DEPTH: _depth,
    Metric.OLDEST_JOB: _oldest,
    Metric.SUCCESS_RATE: _success,
    Metric.FAILURE_RATE: _failed_percent,
    Metric.DEAD_LETTERS: _dead,
    Metric.DURATION_P95: _duration,
    Metric.WAIT_P95: _wait,
    Metric.WORKERS_DOWN: _down,
    Metric.WORKERS_ALIVE: _alive,
    Metric.UNSERVED_JOBS: _unserved,
    Metric.LEASE_EXPIRIES: _expiries,
    Metric.BACKPRESSURE: _backpressure,
}


LOOK_SECONDS = 1.0


class Critical:
    """Looks for dead letters of critical types; what it has seen costs one question each."""

    def __init__(self, app: Penstock) -> None:
        self._app = app
        self._seen: dict[str, str] = {}

    async def look(self) -> None:
        """Move the alert of each critical type on."""
        rule = _rule(self._app)
        if rule is not None:
            for type_name in critical_types(self._app):
                chosen = _by_another_way(self._app, rule) if type_name == NOTICE else rule
                await self._look_at(chosen, type_name)

    async def _look_at(self, rule: Rule, type_name: str) -> None:
        type_ = None if type_name == EVERY_TYPE else type_name
        found = await self._app.store.dead.find(type=type_, only_open=True, limit=1)
        newest = found[0].job_id if found else ""
        if self._seen.get(type_name) == newest:
            return
        alerts = Alerts(self._app)
        name = rule.name if type_ is None else f"{rule.name}:{type_name}"
        try:
            known = await alerts.get(name)
        except AlertNotFound:
            known = alert_of(rule, name)
        after = await judge(alerts, rule, await self._reading(type_, found), known)
        if after.cause == newest if newest else not after.stands:
            self._seen[type_name] = newest

    async def _reading(self, type_: str | None, found: list[DeadLetter]) -> Reading:
        if not found:
            return Reading(0)
        newest = found[0]
        count = await self._app.store.metrics.dead_count(type_)
        # Its error's words stay here: a notice leaves the installation.
        died = newest.error_code or newest.reason
        about = f"the newest is {newest.type} {newest.job_id}, of {died}"
        return Reading(count, about, cause=newest.job_id)


class WatchCritical(Service):
    """Looks every second, so that it hears of rescues and expiries too."""

    name = "critical"

    def __init__(self, app: Penstock, leader: Leader) -> None:
        super().__init__(LOOK_SECONDS)
        self._critical = Critical(app)
        self._leader = leader

    async def run_once(self) -> None:
        """Look once, if this process leads."""
        if self._leader.leads:
            await self._critical.look()


def critical_types(app: Penstock) -> list[str]:
    """Types whose every death matters, by their registration or by the settings.

    One of them is that of notices: nobody would miss one that could not be delivered.
    """
    named = app.settings.alerts.critical_types
    if EVERY_TYPE in named:
        return [EVERY_TYPE]
    declared = {name for name, type_ in app.types.items() if type_.critical}
    notices = {NOTICE} if app.settings.alerts.routes else set[str]()
    return sorted(declared.union(named, notices))


def _by_another_way(app: Penstock, rule: Rule) -> Rule:
    """A lost notice is told over a route that most others do not take, if there is one."""
    others = [name for name in app.settings.alerts.routes if name != rule.route]
    return replace(rule, route=next(iter(others), None))


def _rule(app: Penstock) -> Rule | None:
    rules = app.settings.alerts.standing
    return next((rule for rule in rules if rule.metric is Metric.CRITICAL_DEAD), None)


log = structlog.get_logger("penstock.alerts")

EVERY_SECONDS = 60.0
PENDING_SECONDS = 10.0
KIND, LAST = "alert-pass", "last"


class WatchAlerts(Service):
    """Runs every minute, and more often while something is about to fire."""

    name = "alerts"

    def __init__(self, app: Penstock, leader: Leader) -> None:
        super().__init__(EVERY_SECONDS)
        self._app = app
        self._leader = leader

    async def run_once(self) -> None:
        """Judge every rule, if this process leads."""
        if self._leader.leads:
            alerts = await judge_all(self._app)
            pending = any(alert.state is AlertState.PENDING for alert in alerts)
            self.interval = PENDING_SECONDS if pending else EVERY_SECONDS


async def judge_all(app: Penstock) -> list[Alert]:
    """Measure once and move the alert of every rule on; as they now are."""
    rules = [r for r in app.settings.alerts.standing if r.metric is not Metric.CRITICAL_DEAD]
    alerts = Alerts(app)
    known = {alert.name: alert for alert in await alerts.list()}
    figures = await look(app, rules)
    moved = [
        await judge(alerts, rule, reading(rule, figures), known.get(rule.name) or alert_of(rule))
        for rule in rules
    ]
    await _drop_orphans(app, alerts, known)
    await app.store.records.put(KIND, LAST, str(app.store.clock.now()))
    return moved


def alert_of(rule: Rule, name: str | None = None) -> Alert:
    """The alert of a rule that has never stirred."""
    return Alert(name=name or rule.name, rule=rule.name)


async def judge(alerts: Alerts, rule: Rule, found: Reading, before: Alert) -> Alert:
    """Move one alert on by a reading; nothing is written where nothing changes."""
    now = alerts.clock.now()
    if judged(before, rule, found, now) == before and not before.owed:
        return before
    after = await alerts.change(before.name, rule.name, lambda one: judged(one, rule, found, now))
    if after.state != before.state:
        _say(after)
    return after


async def last_judged_at(app: Penstock) -> int | None:
    """When rules were last judged, by whichever process."""
    record = await app.store.records.get(KIND, LAST)
    return None if record is None else int(record.document)


async def _drop_orphans(app: Penstock, alerts: Alerts, known: dict[str, Alert]) -> None:
    """End what no rule speaks of any more, because it was taken out of the settings."""
    standing = {rule.name for rule in app.settings.alerts.standing}
    now = app.store.clock.now()
    for alert in known.values():
        if alert.rule not in standing and (alert.stands or alert.owed):
            await alerts.change(alert.name, alert.rule, lambda one: dropped(one, now))


def _say(alert: Alert) -> None:
    told = log.warning if alert.state is AlertState.FIRING else log.info
    told(f"alert_{alert.state}", alert=alert.name, severity=alert.severity, value=alert.value)
