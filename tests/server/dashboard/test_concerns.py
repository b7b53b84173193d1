from penstock.model.alert import Alert, AlertState
from penstock.model.alert_rules import Severity
from penstock.operate.health import Check, HealthStatus
from penstock.server.dashboard.views.overview import standing_of

WELL = Check(HealthStatus.HEALTHY, "Fine.")
PLACES = {"too_many_dead": ("dead", "the dead letters")}


def an_alert(severity: Severity) -> Alert:
    return Alert(
        name="too_many_dead",
        rule="too_many_dead",
        state=AlertState.FIRING,
        severity=severity,
        text="12 died",
        since_at=1,
    )


def test_without_alerts_and_with_good_checks_all_is_well() -> None:
    found = standing_of([], {"workers": WELL, "queues": WELL, "dead_letters": WELL}, PLACES)
    assert (found.status, found.concerns) == ("healthy", [])


def test_the_worst_decides() -> None:
    silent = Check(HealthStatus.UNHEALTHY, "No worker is alive; start one.")
    slow = Check(HealthStatus.DEGRADED, "Full: mail.")
    assert standing_of([], {"queues": slow}, PLACES).status == "degraded"
    assert standing_of([], {"queues": slow, "workers": silent}, PLACES).status == "unhealthy"
    assert standing_of([an_alert(Severity.WARNING)], {}, PLACES).status == "degraded"
    assert standing_of([an_alert(Severity.CRITICAL)], {}, PLACES).status == "unhealthy"


def test_a_check_is_not_told_beside_an_alert_about_the_same() -> None:
    dead = {"dead_letters": Check(HealthStatus.DEGRADED, "12 open.")}
    [only] = standing_of([an_alert(Severity.WARNING)], dead, PLACES).concerns
    assert (only.text, only.path) == ("12 died", "alerts")
    [check] = standing_of([], dead, PLACES).concerns
    assert (check.title, check.path) == ("Dead letters", "dead")
