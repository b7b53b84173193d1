"""Alerts: which stand, which did, and who knows of them."""

from typing import Annotated

from fastapi import Path, Query
from pydantic import Field

from penstock.model.alert import Alert as Found
from penstock.model.alert import AlertState, Turn
from penstock.model.alert_rules import Metric, Severity, Unit
from penstock.model.clock import iso
from penstock.operate.alerts import Alerts as Book
from penstock.operate.documents import alert_document, document, rules_document
from penstock.server.api.models import Document, Moment
from penstock.server.api.router import api_router
from penstock.server.guard import MayOperateAll, MayReadAll
from penstock.server.state import Here
from penstock.upkeep.alerts import last_judged_at

router = api_router("/api", "alerts")

AlertName = Annotated[
    str, Path(max_length=255, pattern="^[A-Za-z0-9][A-Za-z0-9_.:@/-]*$", examples=["slow_jobs"])
]


class AlertTurn(Document):
    """One change of an alert, or a person's acknowledgement."""

    at: Moment
    state: AlertState
    value: float | None
    by: str | None = Field(description="Who acknowledged it.")
    note: str | None


class Alert(Document):
    """Where a rule stands."""

    name: str = Field(examples=["high_queue_depth"])
    rule: str
    state: AlertState
    severity: Severity
    text: str = Field(description="What is wrong, in a sentence.")
    action: str = Field(description="What to do about it.")
    route: str | None = Field(description="Where notices of it go.")
    value: float | None
    threshold: float
    since_at: Moment | None = Field(description="Since when it is, or was last, wrong.")
    fired_at: Moment | None
    resolved_at: Moment | None
    acknowledged_at: Moment | None
    acknowledged_by: str | None
    note: str | None


class AlertList(Document):
    """Every alert that ever stirred, those that stand first."""

    alerts: list[Alert]
    judged_at: Moment | None = Field(description="When rules were last judged; absent if never.")


class AlertHistory(Document):
    """The last turns of an alert, newest first."""

    name: str
    turns: list[AlertTurn]


class Acknowledgement(Document):
    """What somebody found who knows of an alert."""

    note: str | None = Field(None, max_length=1000, examples=["a deploy, over in ten minutes"])


class AlertRule(Document):
    """A rule as it holds; times are in seconds."""

    name: str
    metric: Metric
    meaning: str = Field(description="What it measures.")
    unit: Unit
    below: bool = Field(description="Whether it fires below its threshold instead of above.")
    reached: bool = Field(description="Whether it fires at the threshold itself, too.")
    threshold: float
    duration: float = Field(description="How long it must hold before it fires.")
    window: float | None = Field(description="How far it looks back; absent if it does not.")
    at_least: int = Field(description="Over how many executions at least.")
    cool_down: float = Field(description="How long after a notice no other follows.")
    severity: Severity
    action: str
    route: str | None
    queue: str | None
    type: str | None


class AlertRoute(Document):
    """Where notices go; only the kind of each service is shown."""

    name: str
    services: list[str] = Field(examples=[["slack://***"]])


class AlertRules(Document):
    """The rules that hold, and the routes of notices."""

    rules: list[AlertRule]
    routes: list[AlertRoute]


@router.get("/alerts", operation_id="list_alerts")
async def list_alerts(
    server: Here, _: MayReadAll, state: Annotated[AlertState | None, Query()] = None
) -> AlertList:
    """Every alert that ever stirred, those that stand first."""
    found = await Book(server.app).list()
    judged_at = await last_judged_at(server.app)
    return AlertList.model_construct(
        alerts=[_alert(each) for each in found if state in (None, each.state)],
        judged_at=None if judged_at is None else iso(judged_at),
    )


@router.get("/alert-rules", operation_id="list_alert_rules")
async def list_alert_rules(server: Here, _: MayReadAll) -> AlertRules:
    """The rules that hold, and the routes of notices, without their secrets."""
    told = rules_document(server.app.settings.alerts)
    return AlertRules.model_construct(
        rules=[AlertRule.model_construct(**each) for each in told["rules"]],
        routes=[AlertRoute.model_construct(**each) for each in told["routes"]],
    )


@router.get("/alerts/{name:path}/history", operation_id="read_alert_history")
async def read_alert_history(server: Here, _: MayReadAll, name: AlertName) -> AlertHistory:
    """The last turns of an alert, newest first."""
    found = await Book(server.app).get(name)
    turns = [_turn(each) for each in reversed(found.history)]
    return AlertHistory.model_construct(name=found.name, turns=turns)


@router.post("/alerts/{name:path}/acknowledge", operation_id="acknowledge_alert")
async def acknowledge_alert(
    server: Here, caller: MayOperateAll, name: AlertName, said: Acknowledgement | None = None
) -> Alert:
    """Say that somebody knows of an alert that fires."""
    note = None if said is None else said.note
    return _alert(await server.operator(caller).alerts.acknowledge(name, note))


@router.get("/alerts/{name:path}", operation_id="get_alert")
async def get_alert(server: Here, _: MayReadAll, name: AlertName) -> Alert:
    """One alert."""
    return _alert(await Book(server.app).get(name))


def _alert(found: Found) -> Alert:
    return Alert.model_construct(**alert_document(found))


def _turn(found: Turn) -> AlertTurn:
    return AlertTurn.model_construct(**document(found))
