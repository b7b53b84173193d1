"""All metrics in the words of Prometheus."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from math import floor

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from penstock import __version__
from penstock.model.controls import pressure
from penstock.model.histogram import GROWTH, steps_of
from penstock.server.prometheus.scrape import Counts, Scrape, Scraper
from penstock.server.requests import BUCKETS, Traffic
from penstock.store.contract import QueueDepth
from penstock.worker.autoscale import load_of

SECONDS = (0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0)
ATTEMPTS = (1.0, 2.0, 3.0, 5.0, 10.0)
MORE_ATTEMPTS = 11
"""What stands for more attempts than are told apart."""

Buckets = list[tuple[str, float]]


def duration_buckets(steps: Mapping[int, float]) -> Buckets:
    """How many durations lie at or below each bound."""
    found = [(str(bound), float(floor(_below(steps, bound * 1_000) + 1e-6))) for bound in SECONDS]
    return [*found, ("+Inf", float(sum(steps.values())))]


def attempt_buckets(counts: Mapping[int, float]) -> Buckets:
    """How many jobs had ended after so many attempts or fewer."""
    found = [
        (str(bound), float(sum(count for number, count in counts.items() if number <= bound)))
        for bound in ATTEMPTS
    ]
    return [*found, ("+Inf", float(sum(counts.values())))]


def attempt_number(name: str) -> int:
    """The attempts of a counter named `attempts:3` or `attempts:more`."""
    told = name.partition(":")[2]
    return int(told) if told.isdigit() else MORE_ATTEMPTS


def merged(parts: Sequence[Mapping[int, float]]) -> dict[int, float]:
    """Several counts as one."""
    sums: dict[int, float] = {}
    for part in parts:
        for step, count in part.items():
            sums[step] = sums.get(step, 0.0) + count
    return sums


def _below(steps: Mapping[int, float], bound_ms: float) -> float:
    return sum(count * _share(step, bound_ms) for step, count in steps.items())


def _share(step: int, bound_ms: float) -> float:
    low, high = (0.0, 1.0) if step == 0 else (GROWTH ** (step - 1), GROWTH**step)
    return min(1.0, max(0.0, (bound_ms - low) / (high - low)))


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


STATES = ("running", "blocked", "degraded", "draining", "silent")


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


def extension_metrics(scrape: Scrape) -> Iterator[Metric]:
    """What extensions measure; what could not be read is left out."""
    for read in scrape.extensions:
        if read.figures is None:
            continue
        kind = CounterMetricFamily if read.metric.counts else GaugeMetricFamily
        family = kind(read.name, read.metric.help, labels=read.metric.labels)
        for labels, value in read.figures.items():
            family.add_metric(list(labels), value)
        yield family


def failed_metrics(failures: Mapping[tuple[str, str], int]) -> Iterator[Metric]:
    """How often metrics of extensions could not be read, if any was."""
    family = CounterMetricFamily(
        "penstock_extension_metrics_failed",
        "Metrics of extensions that this process could not read.",
        labels=["extension", "metric"],
    )
    for (extension, metric), number in sorted(failures.items()):
        family.add_metric([extension, metric], number)
    if failures:
        yield family


FAMILIES: tuple[Callable[[Scrape], Iterator[Metric]], ...] = (
    job_metrics,
    queue_metrics,
    fleet_metrics,
    autoscale_metrics,
    extension_metrics,
)
"""What is made of a scrape of the store."""


class _Ready(Collector):
    """Metrics that were collected already."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = list(metrics)

    def collect(self) -> Iterable[Metric]:
        return self._metrics


async def exposition(scraper: Scraper, traffic: Traffic, accept: str) -> tuple[bytes, str]:
    """All metrics in the format a caller accepts best, and what that format is called."""
    scrape = await scraper.read()
    metrics = list(process_metrics(traffic, store_up=scrape is not None))
    if scrape is not None:
        metrics += [metric for family in FAMILIES for metric in family(scrape)]
        metrics += failed_metrics(scraper.failures)
    encode, content_type = choose_encoder(accept)
    return encode(_Ready(metrics)), content_type
