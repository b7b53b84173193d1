"""All metrics in the words of Prometheus."""

from collections.abc import Callable, Iterable, Iterator

from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from penstock.server.prometheus.alerts import alert_metrics
from penstock.server.prometheus.autoscale import autoscale_metrics
from penstock.server.prometheus.fleet import fleet_metrics, process_metrics
from penstock.server.prometheus.jobs import job_metrics, queue_metrics
from penstock.server.prometheus.scrape import Scrape, Scraper
from penstock.server.traffic import Traffic

FAMILIES: tuple[Callable[[Scrape], Iterator[Metric]], ...] = (
    job_metrics,
    queue_metrics,
    fleet_metrics,
    alert_metrics,
    autoscale_metrics,
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
    encode, content_type = choose_encoder(accept)
    return encode(_Ready(metrics)), content_type
