"""A dead letter of a critical type: told at once, whatever killed the job."""

from penstock.client.alerts import Alerts
from penstock.client.app import Penstock
from penstock.model.alert import Reading
from penstock.model.alert_settings import EVERY_TYPE
from penstock.model.alerts import Metric, Rule
from penstock.model.refused import AlertNotFound
from penstock.service import Service
from penstock.store.contract import DeadLetter, Resolution
from penstock.upkeep.alerts import judge
from penstock.upkeep.leader import Leader

LOOK_SECONDS = 1.0
COUNTED_GROUPS = 50


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
                await self._look_at(rule, type_name)

    async def _look_at(self, rule: Rule, type_name: str) -> None:
        type_ = None if type_name == EVERY_TYPE else type_name
        pending = Resolution.PENDING
        found = await self._app.store.dead.find(type=type_, resolution=pending, limit=1)
        newest = found[0].job_id if found else ""
        if self._seen.get(type_name) == newest:
            return
        alerts = Alerts(self._app)
        name = rule.name if type_ is None else f"{rule.name}:{type_name}"
        try:
            known = await alerts.get(name)
        except AlertNotFound:
            known = None
        told = await self._reading(type_, found)
        after = await judge(alerts, rule, told, known, self._app, name)
        if after.cause == newest if newest else not after.stands:
            self._seen[type_name] = newest

    async def _reading(self, type_: str | None, found: list[DeadLetter]) -> Reading:
        if not found:
            return Reading(0)
        newest = found[0]
        groups = await self._app.store.dead.groups(
            type=type_, resolution=Resolution.PENDING, limit=COUNTED_GROUPS
        )
        # Its error's words stay here: a notice leaves the installation.
        died = newest.error_code or newest.reason
        about = f"the newest is {newest.type} {newest.job_id}, of {died}"
        return Reading(sum(group.count for group in groups), about, cause=newest.job_id)


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
    """Types whose every death matters, by their registration or by the settings."""
    named = app.settings.alerts.critical_types
    if EVERY_TYPE in named:
        return [EVERY_TYPE]
    declared = {name for name, type_ in app.types.items() if type_.critical}
    return sorted(declared.union(named))


def _rule(app: Penstock) -> Rule | None:
    rules = app.settings.alerts.standing
    return next((rule for rule in rules if rule.metric is Metric.CRITICAL_DEAD), None)
