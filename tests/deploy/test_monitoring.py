"""The dashboard and the rules in `deploy/`: every metric they read is one that a server tells."""

import json
import re
import shutil
import subprocess
from asyncio import to_thread
from pathlib import Path
from typing import Any

import pytest
import yaml
from httpx import AsyncClient
from prometheus_client.parser import text_string_to_metric_families

from penstock import Penstock
from penstock.testing import drain
from penstock.worker.autoscale import Policy
from tests.server.conftest import app, document, http, server
from tests.support.promql import Parser

__all__ = ["app", "document", "http", "server"]

DEPLOY = Path(__file__).parents[2] / "deploy"
PROMTOOL = shutil.which("promtool")
ADDED = {"instance", "job"}
"""Labels that Prometheus itself puts on everything it reads."""


def rules() -> list[dict[str, Any]]:
    document = yaml.safe_load((DEPLOY / "prometheus/rules.yml").read_text())
    return [rule for group in document["groups"] for rule in group["rules"]]


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DEPLOY / "grafana/penstock.json").read_text())
    return found


def panel_expressions() -> list[str]:
    return [
        target["expr"] for panel in dashboard()["panels"] for target in panel.get("targets", ())
    ]


def variable_expressions() -> list[str]:
    listed = [
        each["definition"]
        for each in dashboard()["templating"]["list"]
        if "query" in each and each["type"] == "query"
    ]
    found = [re.fullmatch(r"label_values\((.+), (\w+)\)", text) for text in listed]
    return [f"sum by ({match[2]}) ({match[1]})" for match in found if match]


@pytest.fixture
async def told(app: Penstock, http: AsyncClient) -> dict[str, set[str]]:
    """Every series that a server tells, and its labels."""
    await app.find_type("add").enqueue(1)
    await drain(app)
    await http.get("/api/jobs")
    text = (await http.get("/metrics")).text
    found: dict[str, set[str]] = {"up": set()}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def test_every_rule_is_whole() -> None:
    found = rules()
    assert len(found) > 10
    alerts = [rule for rule in found if "alert" in rule]
    assert len({rule["alert"] for rule in alerts}) == len(alerts)
    for rule in alerts:
        assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["annotations"].keys() == {"summary", "action"}
        assert re.fullmatch(r"\d+[smh]", rule.get("for", "1m"))


def test_prometheus_reads_the_rules_that_are_there() -> None:
    document = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text())
    assert [(DEPLOY / "prometheus" / name).is_file() for name in document["rule_files"]] == [True]
    (scrape,) = document["scrape_configs"]
    assert scrape["metrics_path"] == "/metrics"


def test_templates_name_labels_that_the_alert_still_has() -> None:
    for rule in rules():
        words = " ".join(rule.get("annotations", {}).values())
        parser = Parser(rule["expr"])
        parser.parse()
        recorded = {"type"} if "p95_15m" in rule["expr"] else set()
        for label in re.findall(r"\$labels\.(\w+)", words):
            assert label in parser.grouped | recorded


async def test_the_rules_read_only_what_is_told(told: dict[str, set[str]]) -> None:
    for rule in rules():
        parser = Parser(rule["expr"])
        assert parser.parse() == "vector"
        if "record" in rule:
            told[rule["record"]] = parser.grouped - {"le"}
        for metric, labels in parser.selectors:
            assert metric in told, rule
            assert labels <= told[metric] | ADDED, rule


async def test_the_dashboard_shows_only_what_is_told(told: dict[str, set[str]]) -> None:
    expressions = panel_expressions() + variable_expressions()
    assert len(expressions) > 25
    for text in expressions:
        parser = Parser(text)
        assert parser.parse() == "vector"
        for metric, labels in parser.selectors:
            assert metric in told, text
            assert labels <= told[metric] | ADDED, text
        assert parser.grouped <= set().union(*(told[m] for m, _ in parser.selectors)) | ADDED


async def test_what_is_told_is_shown(told: dict[str, set[str]]) -> None:
    shown: set[str] = set()
    for text in panel_expressions() + variable_expressions():
        parser = Parser(text)
        parser.parse()
        shown |= {re.sub("_(bucket|sum|count)$", "", metric) for metric, _ in parser.selectors}
    families = {re.sub("_(bucket|sum|count)$", "", name) for name in told}
    assert {name for name in families if name.startswith("penstock_")} <= shown


async def test_keda_scales_by_what_is_told_at_the_figures_of_autoscale(
    told: dict[str, set[str]],
) -> None:
    document = yaml.safe_load((DEPLOY / "kubernetes/keda.yaml").read_text())
    assert (document["apiVersion"], document["kind"]) == ("keda.sh/v1alpha1", "ScaledObject")
    workers = yaml.safe_load_all((DEPLOY / "kubernetes/workers.yaml").read_text())
    names = {each["metadata"]["name"] for each in workers}
    assert document["spec"]["scaleTargetRef"]["name"] in names
    figures = {}
    for trigger in document["spec"]["triggers"]:
        assert (trigger["type"], trigger.get("metricType")) in (
            ("prometheus", None),
            ("prometheus", "Value"),
        )
        query = trigger["metadata"]["query"]
        # Several servers tell the same: a sum would count each job once for every one of them.
        assert query.startswith("max(")
        parser = Parser(query)
        assert parser.parse() == "vector"
        for metric, labels in parser.selectors:
            assert labels <= told[metric] | ADDED
        figures[trigger["name"]] = float(trigger["metadata"]["threshold"])
    policy = Policy()
    assert figures == {
        "depth": policy.up_depth,
        "wait": policy.up_wait,
        "processor": policy.up_cpu,
    }


@pytest.mark.outside
@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed")
def test_promtool_takes_the_rules() -> None:
    assert PROMTOOL is not None
    given = [PROMTOOL, "check", "rules", str(DEPLOY / "prometheus/rules.yml")]
    answer = subprocess.run(given, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr


@pytest.mark.outside
@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed")
async def test_promtool_takes_the_metrics(app: Penstock, http: AsyncClient) -> None:
    assert PROMTOOL is not None
    await app.find_type("add").enqueue(1)
    await drain(app)
    text = (await http.get("/metrics")).text
    answer = await to_thread(
        subprocess.run,
        [PROMTOOL, "check", "metrics"],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (answer.returncode, answer.stdout + answer.stderr) == (0, "")


def test_success_rates_are_of_jobs_that_ended() -> None:
    expressions = [rule["expr"] for rule in rules()] + panel_expressions()
    rates = [text for text in expressions if re.search(r'"completed"[^/]*/', text)]
    compared = [text for text in expressions if "completed|" in text]
    assert len(rates) == 2
    assert len(compared) == 4
    for text in compared:
        assert re.findall(r'status=~"([^"]*)"', text) == ["completed|dead_letter"]


def test_panels_have_names_places_and_a_word_on_what_they_show() -> None:
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        assert panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24
        assert panel["title"]
        assert panel["type"] == "row" or panel["description"]
