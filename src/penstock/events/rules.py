"""What alerts measure of events, when they fire, and the families that Prometheus is told."""

from penstock.extension import Measure, Rule, Severity, Unit

HEALTH = "penstock.events.health"

MEASURES = {
    "depth": Measure("events that wait for a consumer", "events"),
    "lag": Measure("how long events wait for a consumer", Unit.SECONDS),
    "stalled": Measure("how long ingest has written nothing though entries wait", Unit.SECONDS),
    "write_errors": Measure("writes of the log that failed", "errors", windowed=True),
    "pressure": Measure("how far the pressure on consumers is above green", "levels"),
}

RULES = (
    Rule(
        name="events_fast_path_down",
        metric="events_stalled",
        threshold=30,
        severity=Severity.CRITICAL,
        route="page",
        action="Start `penstock ingest`, or see in its log why it writes nothing.",
    ),
    Rule(
        name="events_depth_high",
        metric="events_depth",
        threshold=50_000,
        duration=300,
        severity=Severity.WARNING,
        route="email",
        action="Run more processes of `penstock consume`, or see what slows the consumer down.",
    ),
    Rule(
        name="events_lag_high",
        metric="events_lag",
        threshold=30,
        duration=600,
        severity=Severity.WARNING,
        route="slack",
        action="Run more processes of `penstock consume`, or see what slows the consumer down.",
    ),
    Rule(
        name="events_write_errors",
        metric="events_write_errors",
        threshold=0,
        duration=60,
        window=60,
        severity=Severity.CRITICAL,
        route="page",
        action="Look at the store: what it refuses waits in the stream, or with who appends it.",
    ),
    Rule(
        name="events_under_pressure",
        metric="events_pressure",
        threshold=1,
        severity=Severity.WARNING,
        action="Optional consumers rest until the others have caught up; add processes.",
    ),
    Rule(
        name="events_shed",
        metric="events_pressure",
        threshold=2,
        severity=Severity.CRITICAL,
        route="page",
        action="Consumers put work of low priority off; it is done when they have caught up.",
    ),
)
"""A route that the installation does not have is its usual one."""

METRICS = (
    ("pressure_level", "Pressure: 0 green, 1 yellow, 2 orange, 3 red.", "level_rank", (), False),
    ("depth", "Events that wait for a consumer.", "depths", ("consumer",), False),
    ("lag_seconds", "How long the first of them waits.", "lag_seconds", ("consumer",), False),
    ("workers", "Workers that run for a consumer.", "workers", ("consumer",), False),
    ("utilisation", "Share of its workers' time.", "utilisation", ("consumer",), False),
    (
        "sessions_marked",
        "Sessions that are not as the log says.",
        "marked_sessions",
        ("consumer", "mark"),
        False,
    ),
    ("put_off_total", "Events put off under pressure.", "put_off", ("consumer",), True),
    ("consistency", "Share of sampled sessions.", "consistency", ("consumer",), False),
    (
        "stage_seconds",
        "How long a stage of a batch takes.",
        "stage_seconds",
        ("of", "stage", "quantile"),
        False,
    ),
    ("unread", "Entries of the stream that ingest has to write.", "unread_entries", (), False),
    ("bytes", "What log, archive and stream take.", "sizes", ("what",), False),
)
