"""Alerts as one object; everything that takes time to load stands as a text."""

from penstock.extension import Body, Command, Extension, Measured, Metric, Page, Pass, Route
from penstock.model import alert_rules
from penstock.model.alert_rules import MEASURES, RULES

API = "penstock.alerts.api"
EVERY_SECONDS = 60.0
CRITICAL_SECONDS = 1.0
PAGES: dict[str, str] = {
    alert_rules.Metric.QUEUE_DEPTH: "queues",
    alert_rules.Metric.OLDEST_JOB: "jobs?status=queued",
    alert_rules.Metric.SUCCESS_RATE: "dead",
    alert_rules.Metric.FAILURE_RATE: "dead",
    alert_rules.Metric.DEAD_LETTERS: "dead",
    alert_rules.Metric.DURATION_P95: "",
    alert_rules.Metric.WAIT_P95: "queues",
    alert_rules.Metric.WORKERS_DOWN: "workers",
    alert_rules.Metric.WORKERS_ALIVE: "workers",
    alert_rules.Metric.UNSERVED_JOBS: "workers",
    alert_rules.Metric.LEASE_EXPIRIES: "workers",
    alert_rules.Metric.BACKPRESSURE: "queues",
    alert_rules.Metric.CRITICAL_DEAD: "dead",
}
"""Where the rows behind a figure are shown."""

alerts = Extension(
    name="alerts",
    always=True,
    help="See alerts and their rules, and acknowledge them.",
    panel="Look and act",
    namespace="penstock.alerts.alerts:Alerts",
    readings=tuple(
        Measured(
            name=name,
            measure=measure,
            read=f"penstock.alerts.readings:{name}",
            page=PAGES[name],
        )
        for name, measure in MEASURES.items()
    ),
    rules=RULES,
    passes=(
        Pass(name="judge", every=EVERY_SECONDS, run="penstock.alerts.judge:watch"),
        Pass(name="critical", every=CRITICAL_SECONDS, run="penstock.alerts.judge:watch_critical"),
    ),
    services=("penstock.alerts.delivery:Delivery",),
    commands=tuple(
        Command(name=name, run=f"penstock.alerts.commands:{run}", opens=opens)
        for name, run, opens in (
            ("ls", "ls", True),
            ("show", "show", True),
            ("ack", "ack", True),
            ("rules", "rules", False),
            ("test", "try_routes", False),
        )
    ),
    routes=(
        Route(
            name="list_alerts",
            method="GET",
            path="alerts",
            run=f"{API}:list_alerts",
            query=f"{API}:Wanted",
            gives=f"{API}:AlertList",
            whole=True,
        ),
        Route(
            name="list_alert_rules",
            method="GET",
            path="alert-rules",
            run=f"{API}:list_alert_rules",
            gives=f"{API}:AlertRules",
            whole=True,
        ),
        Route(
            name="read_alert_history",
            method="GET",
            path="alerts/{name:path}/history",
            run=f"{API}:read_alert_history",
            gives=f"{API}:AlertHistory",
            whole=True,
        ),
        Route(
            name="acknowledge_alert",
            method="POST",
            path="alerts/{name:path}/acknowledge",
            run=f"{API}:acknowledge_alert",
            scope="operate",
            body=Body.JSON,
            takes=f"{API}:MaybeAcknowledgement",
            gives=f"{API}:Alert",
            whole=True,
        ),
        Route(
            name="get_alert",
            method="GET",
            path="alerts/{name:path}",
            run=f"{API}:get_alert",
            gives=f"{API}:Alert",
            whole=True,
        ),
    ),
    templates="penstock.alerts",
    pages=(
        Page(
            path="alerts",
            title="Alerts",
            template="alerts.html",
            show="penstock.alerts.pages:show_alerts",
            whole=True,
            count="penstock.alerts.pages:count_firing",
            bad=True,
        ),
        Page(path="alerts/acknowledge", act="penstock.alerts.pages:acknowledge", whole=True),
        Page(
            path="alerts/{name:path}",
            template="alert.html",
            show="penstock.alerts.pages:show_alert",
            whole=True,
        ),
    ),
    concerns="penstock.alerts.pages:concerns",
    metrics=(
        Metric(
            name="firing",
            help="Alerts that fire now.",
            read="penstock.alerts.pages:firing_by_rule",
            labels=("rule", "severity"),
        ),
    ),
)
