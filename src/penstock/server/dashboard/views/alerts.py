"""Alerts: what is wrong, who knows of it, what was, and the rules that say so."""

from msgspec import Struct
from starlette.responses import Response

from penstock.model.alert import Alert, AlertState
from penstock.model.alert_rules import MEASURES, AlertSettings, Rule, figure, shown
from penstock.operate.alerts import NOTE_LIMIT, Alerts
from penstock.server.dashboard.navigation import places_of
from penstock.server.dashboard.request import OperateAllVisit, ReadAllVisit
from penstock.server.dashboard.route import page_router
from penstock.upkeep.alerts import last_judged_at

router = page_router()


class RuleRow(Struct, frozen=True):
    """A rule with what it says, where its news go, and the alert it has, if any."""

    rule: Rule
    meaning: str
    urls: tuple[str, ...]
    alert: Alert | None


@router.get("/alerts")
async def alerts(visit: ReadAllVisit) -> Response:
    """What stands now, what stood before, and every rule."""
    app = visit.server.app
    found = await Alerts(app).list()
    return await visit.page(
        "alerts.html",
        "alerts",
        standing=[alert for alert in found if alert.stands],
        past=[alert for alert in found if not alert.stands],
        rules=_rules(app.settings.alerts, found),
        places=places_of(app.settings.alerts),
        judged_at=await last_judged_at(app),
        note_limit=NOTE_LIMIT,
    )


@router.get("/alerts/{name:path}")
async def alert_page(visit: ReadAllVisit, name: str) -> Response:
    """One alert with all its turns."""
    app = visit.server.app
    alert = await Alerts(app).get(name)
    rule = next((each for each in app.settings.alerts.standing if each.name == alert.rule), None)
    return await visit.page(
        "alert.html",
        "alerts",
        alert=alert,
        rule=rule,
        told=_figures(rule, alert),
        places=places_of(app.settings.alerts),
        firing=alert.state is AlertState.FIRING,
        note_limit=NOTE_LIMIT,
    )


@router.post("/alerts/acknowledge")
async def acknowledge(visit: OperateAllVisit) -> Response:
    """Say that somebody knows, and what they found."""
    name, note = visit.form.get("name"), visit.form.words("note", NOTE_LIMIT)
    alert = await visit.operator.alerts.acknowledge(name, note)
    return visit.back(f"{alert.name} is acknowledged.", otherwise="alerts")


def _rules(settings: AlertSettings, found: list[Alert]) -> list[RuleRow]:
    # One that stands comes first in the list, and is the one to show of several.
    known = {alert.rule: alert for alert in reversed(found)}
    return [
        RuleRow(
            rule,
            MEASURES[rule.metric].meaning,
            tuple(shown(url) for url in settings.urls(rule.route)) if rule.route else (),
            known.get(rule.name),
        )
        for rule in settings.standing
    ]


def _figures(rule: Rule | None, alert: Alert) -> list[str]:
    """The figure of each turn, in the unit of the rule."""
    if rule is None:
        return ["–" if turn.value is None else f"{turn.value:g}" for turn in alert.history]
    unit = MEASURES[rule.metric].unit
    return ["–" if turn.value is None else figure(unit, turn.value) for turn in alert.history]
