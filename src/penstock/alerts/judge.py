"""Judging the rules of alerts, and telling at once of dead letters of critical types."""

from typing import TYPE_CHECKING

import structlog
from msgspec.structs import replace

from penstock.alerts.alerts import Alerts
from penstock.alerts.readings import looking
from penstock.extension import Again, Extension, Measured
from penstock.model.alert import Alert, AlertState, Reading, dropped, judged
from penstock.model.alert_rules import EVERY_TYPE, Metric, Rule
from penstock.model.not_found import AlertNotFound
from penstock.operate.extensions import read_part
from penstock.operate.notices import TYPE as NOTICE
from penstock.store.contract import DeadLetter

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock


def readings_of(app: "Penstock") -> dict[str, tuple[Extension, Measured]]:
    """Everything that a rule may measure, by name, and who brought it."""
    from penstock.alerts.extension import alerts

    app.extensions.enable(alerts)
    return {
        measured.name: (extension, measured)
        for extension in app.extensions
        for measured in extension.readings
    }


def rules_of(app: "Penstock") -> list[Rule]:
    """The rules that hold: ours, those of extensions, and those of the installation."""
    measures = {name: each.measure for name, (_, each) in readings_of(app).items()}
    rules = [rule for extension in app.extensions for rule in extension.rules]
    return app.settings.alerts.standing(rules, measures)


class Critical:
    """Looks for dead letters of critical types; what it has seen costs one question each."""

    def __init__(self, app: "Penstock") -> None:
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
        whose = f" of tenant {newest.tenant_id}" if newest.tenant_id else ""
        about = f"the newest is {newest.type} {newest.job_id}{whose}, of {died}"
        return Reading(count, about, cause=newest.job_id)


def critical_types(app: "Penstock") -> list[str]:
    """Types whose every death matters, by their registration or by the settings.

    One of them is that of notices: nobody would miss one that could not be delivered.
    """
    named = app.settings.alerts.critical_types
    if EVERY_TYPE in named:
        return [EVERY_TYPE]
    declared = {name for name, type_ in app.types.items() if type_.critical}
    notices = {NOTICE} if app.settings.alerts.routes else set[str]()
    return sorted(declared.union(named, notices))


def _by_another_way(app: "Penstock", rule: Rule) -> Rule:
    """A lost notice is told over a route that most others do not take, if there is one."""
    others = [name for name in app.settings.alerts.routes if name != rule.route]
    return replace(rule, route=next(iter(others), None))


def _rule(app: "Penstock") -> Rule | None:
    return next((rule for rule in rules_of(app) if rule.metric == Metric.CRITICAL_DEAD), None)


log = structlog.get_logger("penstock.alerts")

PENDING_SECONDS = 10.0
KIND, LAST = "alert-pass", "last"


async def watch(app: "Penstock") -> Again | None:
    """Judge every rule; sooner again while something is about to fire."""
    alerts = await judge_all(app)
    pending = any(alert.state is AlertState.PENDING for alert in alerts)
    return Again(PENDING_SECONDS) if pending else None


async def watch_critical(app: "Penstock") -> None:
    """Look every second, so that rescues and expiries are heard of, too."""
    await app.extensions.namespace("alerts").critical.look()


async def judge_all(app: "Penstock") -> list[Alert]:
    """Measure once and move the alert of every rule on; as they now are."""
    rules = [rule for rule in rules_of(app) if rule.metric != Metric.CRITICAL_DEAD]
    readings = readings_of(app)
    alerts = Alerts(app)
    known = {alert.name: alert for alert in await alerts.list()}
    moved: list[Alert] = []
    async with looking(app, rules):
        for rule in rules:
            extension, measured = readings[rule.metric]
            found = await read_part(extension, measured.name, measured.read, app, rule)
            if found is not None:  # else the alert stays as it is until it can be read again
                before = known.get(rule.name) or alert_of(rule)
                moved.append(await judge(alerts, rule, found, before))
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


async def last_judged_at(app: "Penstock") -> int | None:
    """When rules were last judged, by whichever process."""
    record = await app.store.records.get(KIND, LAST)
    return None if record is None else int(record.document)


async def _drop_orphans(app: "Penstock", alerts: Alerts, known: dict[str, Alert]) -> None:
    """End what no rule speaks of any more, because it was taken out of the settings."""
    standing = {rule.name for rule in rules_of(app)}
    now = app.store.clock.now()
    for alert in known.values():
        if alert.rule not in standing and (alert.stands or alert.owed):
            await alerts.change(alert.name, alert.rule, lambda one: dropped(one, now))


def _say(alert: Alert) -> None:
    told = log.warning if alert.state is AlertState.FIRING else log.info
    told(f"alert_{alert.state}", alert=alert.name, severity=alert.severity, value=alert.value)
