"""Metrics about jobs and queues."""

from collections.abc import Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from penstock.model.histogram import steps_of
from penstock.model.pressure import pressure
from penstock.server.prometheus.histograms import (
    attempt_buckets,
    attempt_number,
    duration_buckets,
    merged,
)
from penstock.server.prometheus.scrape import Counts, Scrape
from penstock.store.contract import QueueDepth

STATUSES: Mapping[str, tuple[str, ...]] = {
    "started": ("started",),
    "completed": ("completed",),
    "failed": ("failed", "dead"),
    "retried": ("failed",),
    "dead_letter": ("dead",),
    "cancelled": ("cancelled",),
    "snoozed": ("snoozed",),
    "crashed": ("crashed",),
}
"""What each status counts: a job fails once more, and is then retried or becomes a dead letter."""


def job_metrics(scrape: Scrape) -> Iterator[Metric]:
    """What became of jobs, by type."""
    total = CounterMetricFamily(
        "penstock_jobs", "What happened to jobs since the beginning.", labels=["type", "status"]
    )
    lost = CounterMetricFamily(
        "penstock_lease_expiries", "Leases that ran out and were taken away.", labels=["type"]
    )
    active = GaugeMetricFamily(
        "penstock_jobs_active", "Jobs that a worker holds now.", labels=["type"]
    )
    for name, counts in scrape.by_type.items():
        for status, parts in STATUSES.items():
            total.add_metric([name, status], sum(counts.get(part, 0.0) for part in parts))
        lost.add_metric([name], counts.get("lease_expiries", 0.0))
    for name, number in scrape.active.items():
        active.add_metric([name], number)
    yield total
    yield active
    yield _timed("penstock_job_duration_seconds", "How long executions took.", "type", scrape)
    yield _longest(scrape)
    yield _attempts(scrape.by_type)
    yield lost
    yield GaugeMetricFamily(
        "penstock_dead_letters",
        "Dead letters neither resolved nor ignored.",
        value=scrape.dead_letters,
    )


def queue_metrics(scrape: Scrape) -> Iterator[Metric]:
    """What waits, by queue."""
    depth = GaugeMetricFamily(
        "penstock_queue_depth", "Jobs in a queue by their state.", labels=["queue", "state"]
    )
    oldest = GaugeMetricFamily(
        "penstock_queue_oldest_seconds", "How long the oldest waits.", labels=["queue"]
    )
    limit = GaugeMetricFamily(
        "penstock_queue_limit", "How many jobs may wait; 0 is no limit.", labels=["queue"]
    )
    level = GaugeMetricFamily(
        "penstock_backpressure_level",
        "How near a queue is to its limit: 0 green, 1 yellow, 2 orange, 3 red.",
        labels=["queue"],
    )
    for queue, found in scrape.depths.items():
        for state, number in states_of(found).items():
            depth.add_metric([queue, state], number)
        oldest.add_metric([queue], (found.oldest_queued_ms or 0) / 1_000)
        most = scrape.limits.get(queue, 0)
        limit.add_metric([queue], most)
        level.add_metric([queue], pressure(found.queued, most))
    yield from (depth, oldest, limit, level)
    yield _timed("penstock_queue_wait_seconds", "How long jobs waited to start.", "queue", scrape)


def states_of(depth: QueueDepth) -> dict[str, int]:
    """A queue in the usual words; what waits for its retry is delayed, too."""
    return {
        "waiting": depth.queued,
        "active": depth.in_progress,
        "delayed": depth.pending - depth.blocked + depth.failed,
        "blocked": depth.blocked,
        "paused": depth.paused,
    }


def _timed(name: str, help_: str, label: str, scrape: Scrape) -> Metric:
    found, prefix = (scrape.by_type, "duration") if label == "type" else (scrape.by_queue, "wait")
    family = HistogramMetricFamily(name, help_, labels=[label])
    for each, counts in found.items():
        buckets = duration_buckets(steps_of(counts, prefix))
        family.add_metric([each], buckets, counts.get(f"{prefix}_sum", 0.0) / 1_000)
    return family


def _longest(scrape: Scrape) -> Metric:
    family = GaugeMetricFamily(
        "penstock_job_duration_max_seconds",
        "The longest execution that ended in the last five minutes.",
        labels=["type"],
    )
    for name, seconds in scrape.longest.items():
        family.add_metric([name], seconds)
    return family


def _attempts(by_type: Counts) -> Metric:
    family = HistogramMetricFamily(
        "penstock_job_attempts", "Attempts a job had taken when it ended.", labels=["type"]
    )
    for name, counts in by_type.items():
        numbers = merged(
            [{attempt_number(k): v} for k, v in counts.items() if k.startswith("attempts:")]
        )
        total = sum(number * count for number, count in numbers.items())
        family.add_metric([name], attempt_buckets(numbers), total)
    return family
