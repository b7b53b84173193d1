"""Which page shows the rows behind an alert."""

from penstock.model.alert_rules import Metric
from penstock.model.alert_settings import AlertSettings

PLACES = {
    Metric.QUEUE_DEPTH: ("queues", "the queues"),
    Metric.OLDEST_JOB: ("jobs?status=queued", "the jobs that wait"),
    Metric.SUCCESS_RATE: ("dead", "the dead letters"),
    Metric.FAILURE_RATE: ("dead", "the dead letters"),
    Metric.DEAD_LETTERS: ("dead", "the dead letters"),
    Metric.DURATION_P95: ("", "the figures"),
    Metric.WAIT_P95: ("queues", "the queues"),
    Metric.WORKERS_DOWN: ("workers", "the workers"),
    Metric.WORKERS_ALIVE: ("workers", "the workers"),
    Metric.UNSERVED_JOBS: ("workers", "the workers"),
    Metric.LEASE_EXPIRIES: ("workers", "the workers"),
    Metric.BACKPRESSURE: ("queues", "the queues"),
    Metric.CRITICAL_DEAD: ("dead", "the dead letters"),
}
"""Where the rows behind a figure are shown, and what they are called."""


def places_of(settings: AlertSettings) -> dict[str, tuple[str, str]]:
    """The page behind each rule, and what it shows."""
    return {rule.name: PLACES[rule.metric] for rule in settings.standing}
