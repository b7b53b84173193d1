"""Metrics of extensions."""

import httpx
import pytest

from penstock import Penstock
from penstock.config import Settings
from penstock.extension import Metric
from penstock.server.prometheus.scrape import figures_of
from tests.server.prometheus.test_metrics import scraped, value
from tests.support import garden
from tests.support.places import Place

pytestmark = pytest.mark.usefixtures("always_fresh")


@pytest.fixture
def app(place: Place) -> Penstock:
    settings = Settings(**place.settings, requests_per_minute=0)
    return Penstock(settings=settings, extensions=[garden.garden])


async def test_gauges_and_counters_are_told_with_their_labels(http: httpx.AsyncClient) -> None:
    found = await scraped(http)
    assert value(found, "penstock_garden_plants") == 2500
    assert value(found, "penstock_garden_beds", bed="rose", kind='a"b') == 2
    assert value(found, "penstock_garden_beds", bed="moor", kind="x") == 0
    assert value(found, "penstock_garden_rain_total") == 2500


async def test_one_that_fails_is_left_out_and_counted(http: httpx.AsyncClient) -> None:
    for times in (1, 2):
        text = (await http.get("/metrics")).text
        assert "penstock_garden_snow" not in text
        told = (
            f'penstock_extension_metrics_failed_total{{extension="garden",metric="snow"}} {times}.0'
        )
        assert told in text
        assert "penstock_jobs_total" in text


def test_figures_that_lack_their_labels_count_as_unread() -> None:
    metric = Metric(name="x", help="x", read=garden.plants, labels=("bed",))
    assert figures_of(metric, 3) is None
    assert figures_of(metric, {("a", "b"): 3}) is None
    assert figures_of(metric, {"a": "many"}) is None
    assert figures_of(metric, {"a": 3}) == {("a",): 3.0}


def test_a_metric_has_at_most_a_thousand_series() -> None:
    metric = Metric(name="x", help="x", read=garden.plants, labels=("bed",))
    many = figures_of(metric, {f"{n:05}": n for n in range(2_000)})
    assert many is not None
    assert (len(many), many["00000",]) == (1_000, 0.0)
