"""Judging the rules of alerts once a minute."""

import structlog

from penstock.client.alerts import Alerts
from penstock.client.app import Penstock
from penstock.model.alert import Alert, AlertState, Reading, dropped, judged
from penstock.model.alert_rules import Metric, Rule
from penstock.service import Service
from penstock.upkeep.leader import Leader
from penstock.upkeep.readings import look, reading

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
