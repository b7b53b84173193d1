"""Metrics for whatever starts and stops workers."""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from penstock.server.prometheus.scrape import Scrape
from penstock.worker.autoscale.load import load_of


def autoscale_metrics(scrape: Scrape) -> Iterator[Metric]:
    """The figures of `/api/autoscale`."""
    load = load_of(list(scrape.depths.values()), scrape.lately, scrape.workers)
    figures = {
        "queued": ("Jobs that could start now, in all queues.", load.queued),
        "in_progress": ("Jobs that workers hold, in all queues.", load.in_progress),
        "wait_seconds": (
            "What jobs that started lately had waited, by their median.",
            load.wait_seconds,
        ),
        "cpu_percent": ("What live workers use of a core, on average.", load.cpu_percent),
        "workers": ("Workers that are alive.", load.workers),
    }
    for name, (meaning, value) in figures.items():
        yield GaugeMetricFamily(f"penstock_autoscale_{name}", meaning, value=value)
