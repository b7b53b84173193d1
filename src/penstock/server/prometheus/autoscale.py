"""Metrics for whatever starts and stops workers."""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from penstock.server.prometheus.reading import Reading
from penstock.worker.autoscale.load import load_of


def autoscale_metrics(reading: Reading) -> Iterator[Metric]:
    """The figures of `/api/autoscale`; waits are in `penstock_queue_wait_seconds`."""
    load = load_of(list(reading.depths.values()), [], reading.workers)
    figures = {
        "queued": ("Jobs that could start now, in all queues.", load.queued),
        "in_progress": ("Jobs that workers hold, in all queues.", load.in_progress),
        "cpu_percent": ("What live workers use of a core, on average.", load.cpu_percent),
        "workers": ("Workers that are alive.", load.workers),
    }
    for name, (meaning, value) in figures.items():
        made = GaugeMetricFamily(f"penstock_autoscale_{name}", meaning)
        made.add_metric([], value)
        yield made
