"""What needs a look: the alerts that fire, and checks of health that no alert speaks of already."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from penstock.client.health import Check, HealthStatus
from penstock.model.alert import Alert

PLACES: Mapping[str, str] = {"workers": "workers", "queues": "queues", "dead_letters": "dead"}
"""Where the rows behind a check are shown."""

SUBJECTS: Mapping[str, str] = {
    "workers": "Workers",
    "queues": "Queues",
    "dead_letters": "Dead letters",
}


class Concern(Struct, frozen=True):
    """One thing that is not as it should be: how grave, what, and where to look."""

    status: str
    title: str
    text: str
    path: str
    since_at: int | None = None


class Standing(Struct, frozen=True):
    """How the installation is, in one word, and why."""

    status: str
    concerns: list[Concern]


def standing_of(
    firing: Sequence[Alert], checks: Mapping[str, Check], places: Mapping[str, tuple[str, str]]
) -> Standing:
    """As well as the worst of them; `places` says which page an alert's rule is about."""
    found = [
        Concern(alert.severity.value, alert.name, alert.text, "alerts", alert.since_at)
        for alert in firing
    ]
    told = {places[alert.rule][0] for alert in firing if alert.rule in places}
    found += [
        Concern(check.status.value, SUBJECTS[name], check.detail, PLACES[name])
        for name, check in checks.items()
        if check.status is not HealthStatus.HEALTHY and PLACES[name] not in told
    ]
    grave = any(concern.status in ("critical", "unhealthy") for concern in found)
    worst = HealthStatus.UNHEALTHY if grave else HealthStatus.DEGRADED
    return Standing(worst.value if found else HealthStatus.HEALTHY.value, found)
