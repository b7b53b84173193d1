"""A dead letter of a critical type: told at once, whatever killed the job."""

from msgspec.structs import replace

from penstock.client.alerts import Alerts
from penstock.client.app import Penstock
from penstock.client.notices import TYPE as NOTICE
from penstock.model.alert import Reading
from penstock.model.alert_rules import Metric, Rule
from penstock.model.alert_settings import EVERY_TYPE
from penstock.model.refused import AlertNotFound
from penstock.service import Service
from penstock.store.contract import DeadLetter
from penstock.upkeep.alerts import alert_of, judge
from penstock.upkeep.leader import Leader

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
