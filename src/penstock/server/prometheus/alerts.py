"""Metrics about alerts."""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from penstock.server.prometheus.scrape import Scrape


def alert_metrics(scrape: Scrape) -> Iterator[Metric]:
    """How many alerts of each rule fire; a rule that holds and is quiet is told as well."""
    made = GaugeMetricFamily(
        "penstock_alerts_firing", "Alerts that fire now.", labels=["rule", "severity"]
    )
    for (rule, severity), number in sorted(scrape.firing.items()):
        made.add_metric([rule, severity], number)
    yield made
