"""Alerts in the dashboard: what is wrong, who knows of it, what was, and the rules that say so."""

from collections import Counter
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from penstock.alerts.alerts import NOTE_LIMIT, Alerts
from penstock.alerts.judge import last_judged_at, readings_of, rules_of
from penstock.extension import Concern, Request
from penstock.model.alert import Alert, AlertState
from penstock.model.alert_rules import Rule, figure, shown
from penstock.model.errors import InvalidOption
from penstock.operate.actor import Operator

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

CALLED = {
    "": "the figures",
    "queues": "the queues",
    "jobs?status=queued": "the jobs that wait",
    "dead": "the dead letters",
    "workers": "the workers",
}
"""What the rows behind a figure are called."""


class RuleRow(Struct, frozen=True):
    """A rule with what it says, where its news go, and the alert it has, if any."""

    rule: Rule
    meaning: str
    urls: tuple[str, ...]
    alert: Alert | None


async def show_alerts(request: Request) -> dict[str, Any]:
    """What stands now, what stood before, and every rule."""
    app = request.app
    found = await Alerts(app).list()
    return {
        "standing": [alert for alert in found if alert.stands],
        "past": [alert for alert in found if not alert.stands],
        "rules": _rules(app, found),
        "places": places_of(app),
        "judged_at": await last_judged_at(app),
        "note_limit": NOTE_LIMIT,
    }


async def show_alert(request: Request) -> dict[str, Any]:
    """One alert with all its turns."""
    app = request.app
    alert = await Alerts(app).get(request.path["name"])
    rule = next((each for each in rules_of(app) if each.name == alert.rule), None)
    return {
        "alert": alert,
        "rule": rule,
        "told": _figures(rule, alert),
        "places": places_of(app),
        "firing": alert.state is AlertState.FIRING,
        "note_limit": NOTE_LIMIT,
    }


async def acknowledge(request: Request) -> str:
    """Say that somebody knows, and what they found."""
    name, note = request.form.get("name", ""), request.form.get("note", "")
    if len(note) > NOTE_LIMIT:
        raise InvalidOption("note", f"{len(note):,} characters", f"at most {NOTE_LIMIT:,}")
    actor = Operator(request.app, request.actor).actor
    alert = await Alerts(request.app, actor).acknowledge(name, note or None)
    return f"{alert.name} is acknowledged."


async def count_firing(app: "Penstock") -> int:
    """How many alerts fire."""
    return len(await _firing(app))


async def concerns(app: "Penstock") -> list[Concern]:
    """What fires, for the overview."""
    places = places_of(app)
    return [
        Concern(
            alert.severity.value,
            alert.name,
            alert.text,
            "alerts",
            alert.since_at,
            places[alert.rule][0] if alert.rule in places else "",
        )
        for alert in await _firing(app)
    ]


async def firing_by_rule(app: "Penstock") -> dict[tuple[str, str], float]:
    """How many alerts fire, by rule and severity; 0 of every rule that is quiet."""
    found: Counter[tuple[str, str]] = Counter(
        {(rule.name, rule.severity.value): 0 for rule in rules_of(app)}
    )
    for alert in await _firing(app):
        found[alert.rule, alert.severity.value] += 1
    return dict(found)


def places_of(app: "Penstock") -> dict[str, tuple[str, str]]:
    """The page behind each rule, and what it shows."""
    pages = {name: measured.page for name, (_, measured) in readings_of(app).items()}
    return {
        rule.name: (pages[rule.metric], CALLED.get(pages[rule.metric], "where it comes from"))
        for rule in rules_of(app)
    }


async def _firing(app: "Penstock") -> list[Alert]:
    return [alert for alert in await Alerts(app).list() if alert.state is AlertState.FIRING]


def _rules(app: "Penstock", found: list[Alert]) -> list[RuleRow]:
    settings = app.settings.alerts
    # One that stands comes first in the list, and is the one to show of several.
    known = {alert.rule: alert for alert in reversed(found)}
    return [
        RuleRow(
            rule,
            rule.measure.meaning,
            tuple(shown(url) for url in settings.urls(rule.route)) if rule.route else (),
            known.get(rule.name),
        )
        for rule in rules_of(app)
    ]


def _figures(rule: Rule | None, alert: Alert) -> list[str]:
    """The figure of each turn, in the unit of the rule."""
    if rule is None:
        return ["–" if turn.value is None else f"{turn.value:g}" for turn in alert.history]
    unit = rule.measure.unit
    return ["–" if turn.value is None else figure(unit, turn.value) for turn in alert.history]
