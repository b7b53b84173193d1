from penstock.extension import Concern
from penstock.operate.health import Check, HealthStatus
from penstock.server.dashboard.views.overview import standing_of

WELL = Check(HealthStatus.HEALTHY, "Fine.")


def a_concern(severity: str) -> Concern:
    return Concern(severity, "too_many_dead", "12 died", "alerts", since_at=1, about="dead")


def test_without_alerts_and_with_good_checks_all_is_well() -> None:
    found = standing_of([], {"workers": WELL, "queues": WELL, "dead_letters": WELL})
    assert (found.status, found.concerns) == ("healthy", [])


def test_the_worst_decides() -> None:
    silent = Check(HealthStatus.UNHEALTHY, "No worker is alive; start one.")
    slow = Check(HealthStatus.DEGRADED, "Full: mail.")
    assert standing_of([], {"queues": slow}).status == "degraded"
    assert standing_of([], {"queues": slow, "workers": silent}).status == "unhealthy"
    assert standing_of([a_concern("warning")], {}).status == "degraded"
    assert standing_of([a_concern("critical")], {}).status == "unhealthy"


def test_a_check_is_not_told_beside_an_alert_about_the_same() -> None:
    dead = {"dead_letters": Check(HealthStatus.DEGRADED, "12 open.")}
    [only] = standing_of([a_concern("warning")], dead).concerns
    assert (only.text, only.path) == ("12 died", "alerts")
    [check] = standing_of([], dead).concerns
    assert (check.title, check.path) == ("Dead letters", "dead")
