"""Alerts over HTTP: which stand, which did, who knows of them, and the rules that say so."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct

from penstock.alerts.alerts import NOTE_LIMIT, Alerts
from penstock.alerts.judge import last_judged_at, rules_of
from penstock.extension import Request
from penstock.model.alert import AlertState
from penstock.model.alert_rules import Severity, Unit, shown
from penstock.model.clock import iso
from penstock.operate.actor import Operator
from penstock.operate.documents import document

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.model import alert, alert_rules

LEFT_OUT = {"owed", "history", "told", "told_at", "number", "cause"}
"""What an alert is made of, and nobody needs to see."""


class AlertTurn(Struct, kw_only=True):
    """One change of an alert, or a person's acknowledgement."""

    at: datetime
    state: AlertState
    value: float | None
    by: Annotated[str | None, Meta(description="Who acknowledged it.")]
    note: str | None


class Alert(Struct, kw_only=True):
    """Where a rule stands."""

    name: Annotated[str, Meta(examples=["high_queue_depth"])]
    rule: str
    state: AlertState
    severity: Severity
    text: Annotated[str, Meta(description="What is wrong, in a sentence.")]
    action: Annotated[str, Meta(description="What to do about it.")]
    route: Annotated[str | None, Meta(description="Where notices of it go.")]
    value: float | None
    threshold: float
    since_at: Annotated[datetime | None, Meta(description="Since when it is, or was last, wrong.")]
    fired_at: datetime | None
    resolved_at: datetime | None
    acknowledged_at: datetime | None
    acknowledged_by: str | None
    note: str | None


class AlertList(Struct, kw_only=True):
    """Every alert that ever stirred, those that stand first."""

    alerts: list[Alert]
    judged_at: Annotated[
        datetime | None, Meta(description="When rules were last judged; absent if never.")
    ]


class AlertHistory(Struct, kw_only=True):
    """The last turns of an alert, newest first."""

    name: str
    turns: list[AlertTurn]


class Acknowledgement(Struct, kw_only=True, forbid_unknown_fields=True):
    """What somebody found who knows of an alert."""

    note: Annotated[
        Annotated[str, Meta(max_length=NOTE_LIMIT)] | None,
        Meta(examples=["a deploy, over in ten minutes"]),
    ] = None


MaybeAcknowledgement = Acknowledgement | None


class AlertRule(Struct, kw_only=True):
    """A rule as it holds; times are in seconds."""

    name: str
    metric: str
    meaning: Annotated[str, Meta(description="What it measures.")]
    unit: Unit
    below: Annotated[bool, Meta(description="Whether it fires below its threshold, not above.")]
    reached: Annotated[bool, Meta(description="Whether it fires at the threshold itself, too.")]
    threshold: float
    duration: Annotated[float, Meta(description="How long it must hold before it fires.")]
    window: Annotated[
        float | None, Meta(description="How far it looks back; absent if it does not.")
    ]
    at_least: Annotated[int, Meta(description="Over how many executions at least.")]
    cool_down: Annotated[float, Meta(description="How long after a notice no other follows.")]
    severity: Severity
    action: str
    route: str | None
    queue: str | None
    type: str | None


class AlertRoute(Struct, kw_only=True):
    """Where notices go; only the kind of each service is shown."""

    name: str
    services: Annotated[list[str], Meta(examples=[["slack://***"]])]


class AlertRules(Struct, kw_only=True):
    """The rules that hold, and the routes of notices."""

    rules: list[AlertRule]
    routes: list[AlertRoute]


class Wanted(Struct, kw_only=True):
    """Which alerts are asked for."""

    state: Annotated[AlertState | None, Meta(description="Only alerts in this state.")] = None


async def list_alerts(request: Request) -> dict[str, Any]:
    """Every alert that ever stirred, those that stand first."""
    wanted: Wanted = request.query
    found = await Alerts(request.app).list()
    judged_at = await last_judged_at(request.app)
    return {
        "alerts": [alert_document(a) for a in found if wanted.state in (None, a.state)],
        "judged_at": None if judged_at is None else iso(judged_at),
    }


async def list_alert_rules(request: Request) -> dict[str, Any]:
    """The rules that hold, and the routes of notices, without their secrets."""
    return rules_document(request.app)


async def read_alert_history(request: Request) -> dict[str, Any]:
    """The last turns of an alert, newest first."""
    found = await Alerts(request.app).get(request.path["name"])
    return {"name": found.name, "turns": [document(each) for each in reversed(found.history)]}


async def acknowledge_alert(request: Request) -> dict[str, Any]:
    """Say that somebody knows of an alert that fires."""
    said: Acknowledgement | None = request.body
    actor = Operator(request.app, request.actor).actor
    note = None if said is None else said.note
    return alert_document(await Alerts(request.app, actor).acknowledge(request.path["name"], note))


async def get_alert(request: Request) -> dict[str, Any]:
    """One alert."""
    return alert_document(await Alerts(request.app).get(request.path["name"]))


def alert_document(found: "alert.Alert") -> dict[str, Any]:
    """An alert as it stands, without its history and what it is made of."""
    return {name: value for name, value in document(found).items() if name not in LEFT_OUT}


def rules_document(app: "Penstock") -> dict[str, Any]:
    """The rules that hold with what they measure, and the routes of notices without secrets."""
    settings = app.settings.alerts
    return {
        "rules": [_rule(rule) for rule in rules_of(app)],
        "routes": [
            {"name": name, "services": [shown(url) for url in settings.urls(name)]}
            for name in settings.routes
        ],
    }


def _rule(rule: "alert_rules.Rule") -> dict[str, Any]:
    measure = rule.measure
    told = document(rule) | {
        "meaning": measure.meaning,
        "unit": measure.unit,
        "below": measure.below,
        "reached": measure.reached,
        "window": rule.window if measure.windowed else None,
    }
    del told["measured"]
    return told
