"""An alert: where one rule stands, and what happens to it next."""

from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from penstock.model.alert_rules import Rule, Severity, figure

HISTORY = 50
"""How many turns an alert remembers."""


class AlertState(StrEnum):
    """Where an alert stands."""

    QUIET = "quiet"
    PENDING = "pending"
    FIRING = "firing"
    RESOLVED = "resolved"


class Reading(Struct, frozen=True):
    """A figure as it was measured: what it is mostly about, and what tells its causes apart.

    No value means that there is nothing to judge, as a rate has none while nothing runs.
    """

    value: float | None
    about: str = ""
    cause: str = ""


class Turn(Struct, frozen=True, kw_only=True):
    """One change of an alert."""

    at: int
    state: AlertState
    value: float | None = None
    by: str | None = None
    note: str | None = None


class Notice(Struct, frozen=True, kw_only=True):
    """What people are to be told; the key is the same however often it is decided."""

    key: str
    state: AlertState
    title: str
    body: str


class Alert(Struct, frozen=True, kw_only=True):
    """Where a rule stands; times are UTC milliseconds.

    `owed` is what was decided and not yet handed to the jobs that deliver it.
    """

    name: str
    rule: str
    state: AlertState = AlertState.QUIET
    severity: Severity = Severity.WARNING
    text: str = ""
    action: str = ""
    route: str | None = None
    value: float | None = None
    threshold: float = 0
    cause: str = ""
    since_at: int | None = None
    fired_at: int | None = None
    resolved_at: int | None = None
    told_at: int | None = None
    told: bool = False
    acknowledged_at: int | None = None
    acknowledged_by: str | None = None
    note: str | None = None
    number: int = 0
    owed: tuple[Notice, ...] = ()
    history: tuple[Turn, ...] = ()

    @property
    def stands(self) -> bool:
        """Whether its condition holds, for long enough or not yet."""
        return self.state in (AlertState.PENDING, AlertState.FIRING)

    @property
    def turned_at(self) -> int | None:
        """Since when it is in its state; that somebody acknowledged it changes none."""
        return next((turn.at for turn in reversed(self.history) if turn.by is None), None)


def judged(alert: Alert, rule: Rule, reading: Reading, now: int) -> Alert:
    """The alert after a measurement; the very same one if there is nothing to change."""
    wrong = reading.value is not None and rule.breached(reading.value)
    if not wrong:
        return _calmed(alert, reading.value, now)
    told = replace(
        alert,
        severity=rule.severity,
        action=rule.action,
        route=rule.route,
        threshold=rule.threshold,
        value=reading.value,
        text=sentence(rule, reading),
    )
    if not told.stands:
        told = _turned(told, AlertState.PENDING, now, since_at=now)
    if told.state is AlertState.PENDING:
        if now - (told.since_at or now) < rule.duration * 1000:
            return told
        told = _fired(told, now)
    return _announced(told, rule, reading, now)


def dropped(alert: Alert, now: int) -> Alert:
    """The alert once its rule is gone."""
    return _calmed(alert, None, now)


def acknowledged(alert: Alert, by: str, note: str | None, now: int) -> Alert:
    """The alert once a person has said that they know."""
    turn = Turn(at=now, state=alert.state, value=alert.value, by=by, note=note)
    return replace(
        alert,
        acknowledged_at=now,
        acknowledged_by=by,
        note=note,
        history=(*alert.history, turn)[-HISTORY:],
    )


def paid(alert: Alert) -> Alert:
    """The alert once what it owes is in the hands of jobs."""
    return replace(alert, owed=())


def sentence(rule: Rule, reading: Reading) -> str:
    """What is wrong, for a person."""
    measure = rule.measure
    found = figure(measure.unit, reading.value or 0)
    about = f" ({reading.about})" if reading.about else ""
    told = f"{measure.meaning}{rule.about}: {found}{about}"
    bound = "" if rule.fires_at_one else f", which is {rule.condition}"
    return f"{told[0].upper()}{told[1:]}{bound}."


def _calmed(alert: Alert, value: float | None, now: int) -> Alert:
    if alert.state is AlertState.PENDING:
        rest = AlertState.QUIET if alert.resolved_at is None else AlertState.RESOLVED
        return _turned(replace(alert, value=value), rest, now, since_at=None)
    if alert.state is not AlertState.FIRING:
        return alert
    calm = _turned(replace(alert, value=value), AlertState.RESOLVED, now, resolved_at=now)
    return _owing(calm, now) if alert.told else calm


def _fired(alert: Alert, now: int) -> Alert:
    fresh = replace(
        alert,
        number=alert.number + 1,
        told=False,
        acknowledged_at=None,
        acknowledged_by=None,
        note=None,
    )
    return _turned(fresh, AlertState.FIRING, now, fired_at=now)


def _announced(alert: Alert, rule: Rule, reading: Reading, now: int) -> Alert:
    """Tell people of it, once for each cause, and not again before the cool-down is over."""
    news = not alert.told or reading.cause != alert.cause
    rested = alert.told_at is None or now - alert.told_at >= rule.cool_down * 1000
    if not news or not rested:
        return alert
    return _owing(replace(alert, told=True, told_at=now, cause=reading.cause), now)


def _owing(alert: Alert, now: int) -> Alert:
    title = f"[{alert.severity}] {alert.name} is {alert.state}"
    if alert.state is AlertState.RESOLVED:
        title = f"[resolved] {alert.name}"
    body = alert.text if alert.state is AlertState.RESOLVED else f"{alert.text} {alert.action}"
    key = f"{alert.name}:{alert.number}:{alert.state}:{now}"
    notice = Notice(key=key, state=alert.state, title=title, body=body)
    return replace(alert, owed=(*alert.owed, notice))


def _turned(alert: Alert, state: AlertState, now: int, **times: int | None) -> Alert:
    turn = Turn(at=now, state=state, value=alert.value)
    history = (*alert.history, turn)[-HISTORY:]
    return replace(alert, state=state, history=history, **times)
