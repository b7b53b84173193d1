"""Metrics about the store, the workers and this process."""

from collections import Counter
from collections.abc import Iterator
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from penstock import __version__
from penstock.server.prometheus.scrape import Scrape
from penstock.server.traffic import BUCKETS, Traffic

STATES = ("running", "degraded", "draining", "silent")


def fleet_metrics(scrape: Scrape) -> Iterator[Metric]:
    """The workers, and how quick the store is."""
    states = Counter(each.state if each.alive else "silent" for each in scrape.workers)
    workers = GaugeMetricFamily(
        "penstock_workers",
        "Workers by state; a silent one was not heard of for half a minute.",
        labels=["state"],
    )
    for state in sorted({*STATES, *states}):
        workers.add_metric([state], states[state])
    yield workers
    ages = [worker.poll_age_ms for worker in scrape.workers if worker.alive]
    yield GaugeMetricFamily(
        "penstock_worker_poll_age_seconds",
        "How long ago the live worker that is worst off last polled with success.",
        value=max(ages, default=0) / 1_000,
    )
    yield GaugeMetricFamily(
        "penstock_store_ping_seconds",
        "How long the store took to answer.",
        value=scrape.ping_seconds,
    )


def process_metrics(traffic: Traffic, *, store_up: bool) -> Iterator[Metric]:
    """What is known even while the store is away: requests to this process, and its version."""
    yield GaugeMetricFamily("penstock_store_up", "Whether the store answers.", value=store_up)
    build = GaugeMetricFamily("penstock_build_info", "The version that runs.", labels=["version"])
    build.add_metric([__version__], 1)
    yield build
    requests = CounterMetricFamily(
        "penstock_http_requests",
        "Requests that this process answered.",
        labels=["method", "route", "status"],
    )
    for (method, route, status), number in sorted(traffic.requests.items()):
        requests.add_metric([method, route, str(status)], number)
    yield requests
    timings = HistogramMetricFamily(
        "penstock_http_request_duration_seconds",
        "How long this process took until an answer began.",
        labels=["method", "route"],
    )
    for (method, route), timing in sorted(traffic.timings.items()):
        bounds = [*(str(bound) for bound in BUCKETS), "+Inf"]
        numbers = [float(number) for number in accumulate(timing.buckets)]
        timings.add_metric([method, route], list(zip(bounds, numbers, strict=True)), timing.seconds)
    yield timings
