"""From readings to figures: what was measured, against what, and whether the target is met."""

from collections.abc import Iterator

import msgspec

from proof.bench.limits.sqlite import BATCH
from proof.bench.readings import Readings
from proof.bench.scale import Scale

SLACK = 0.05


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the table."""

    topic: str
    name: str
    measured: float
    unit: str
    reference: float | None = None
    reference_name: str | None = None
    ratio: float | None = None
    target: str | None = None
    met: bool | None = None
    doubt: str | None = None


def doubted(figure: Figure) -> Figure:
    """The same without a verdict: no engine beats the bare statements that it has to run."""
    return msgspec.structs.replace(
        figure, met=None, doubt="not credible: faster than its own statements; noise, or a fault"
    )


def figures(readings: Readings, scale: Scale) -> list[Figure]:
    """Every figure of a run, in the order of the table."""
    return [
        *_bulk(readings),
        *_single(readings, scale),
        *_drain(readings, scale),
        *_held_drain(readings, scale),
        *_flows(readings, scale),
        *_minding(readings, scale),
        *_presence(readings),
        _tab(readings, scale),
        *_server(readings, scale),
        *_claims(readings, scale),
        *_memory(readings, scale),
        _import(readings),
    ]


def _bulk(readings: Readings) -> Iterator[Figure]:
    for batch in (1000, 100):
        figure = _against_limit(
            readings,
            "bulk enqueue",
            f"batches of {batch:,}, jobs built",
            f"enqueue by {batch}/s",
            "raw enqueue/s",
        )
        # Larger batches than the limit's wait for the disk less often and may well beat it.
        same_batch = batch == BATCH
        yield doubted(figure) if same_batch and (figure.ratio or 0) > 1 + SLACK else figure


def _single(readings: Readings, scale: Scale) -> Iterator[Figure]:
    topic, name, limit = "single enqueue", "single ms", "raw single ms"
    for percent in (50, 95):
        measured, bare = readings.percentile(name, percent), readings.percentile(limit, percent)
        figure = Figure(
            topic=topic,
            name=f"p{percent}, no worker running",
            measured=measured,
            unit="ms",
            reference=bare,
            reference_name="one bare transaction",
            ratio=measured / bare,
            target="ratio ≤ 1.5" if percent == 50 else None,
            met=measured / bare <= 1.5 if percent == 50 else None,
        )
        yield doubted(figure) if measured / bare < 1 - SLACK else figure
    yield _below(
        readings.percentile("loaded single ms", 95),
        10,
        topic=topic,
        name=f"p95 while a worker drains {scale.backlog:,} jobs",
        unit="ms",
    )
    yield _below(
        readings.percentile("crowded single ms", 99),
        2_000,
        topic=topic,
        name=f"p99 of {scale.producers} processes with {scale.enqueuers} tasks each",
        unit="ms",
    )
    ratio = readings.ratio("concurrent/s", "sequential/s")
    yield Figure(
        topic=topic,
        name=f"{scale.enqueuers} tasks at once",
        measured=readings.median("concurrent/s"),
        unit="jobs/s",
        reference=readings.median("sequential/s"),
        reference_name="one after the other",
        ratio=ratio,
        target="ratio > 1 (commits are shared)",
        met=ratio > 1,
    )


def _drain(readings: Readings, scale: Scale) -> Iterator[Figure]:
    topic = f"drain of {scale.jobs:,} by one process"
    name = "concurrency 100"
    yield _against_limit(readings, topic, name, "drain/s", "raw drain/s")
    yield _against_limit(
        readings, topic, "concurrency 10", "drain by 10/s", "raw drain/s", goal=None
    )
    kept = readings.ratio("drain with history/s", "drain/s")
    yield Figure(
        topic=topic,
        name=f"{scale.history:,} completed jobs in the file",
        measured=readings.median("drain with history/s"),
        unit="jobs/s",
        reference=readings.median("drain/s"),
        reference_name="an empty file",
        ratio=kept,
        target="ratio ≥ 0.9",
        met=kept >= 0.9,
    )
    if readings.has("drain before/s"):
        yield _against(
            readings, topic, name, "drain/s", "drain before/s", "the version before", 1.0
        )
    for peer, goal in (("huey", 8.0), ("huey without fsync", None)):
        if readings.has(f"{peer}/s"):
            yield _against(readings, topic, name, "drain/s", f"{peer}/s", peer, goal)


def _held_drain(readings: Readings, scale: Scale) -> Iterator[Figure]:
    topic = f"drain of {scale.jobs:,} by one process"
    for name, reading in (
        ("at most 10 at once in the whole fleet", "limited drain/s"),
        ("ten tenants in turn", "tenants drain/s"),
        ("all due at one instant", "due drain/s"),
    ):
        yield _against(readings, topic, name, reading, "plain drain/s", "without", 0.7)


def _flows(readings: Readings, scale: Scale) -> Iterator[Figure]:
    yield _below(
        readings.median("fan-in s"),
        2,
        topic="flows",
        name=f"one job after {scale.parents:,} others, all of them run",
        unit="s",
    )
    links = readings.median("chain links/s")
    yield Figure(
        topic="flows",
        name=f"a chain of {scale.links:,}",
        measured=links,
        unit="links/s",
        target="≥ 200 links/s",
        met=links >= 200,
    )


def _minding(readings: Readings, scale: Scale) -> Iterator[Figure]:
    cost = readings.median("scheduling %") - readings.median("not scheduling %")
    yield _below(
        max(0.0, cost),
        1,
        topic="schedules",
        name=f"{scale.schedules:,} of them, over an idle worker's own",
        unit="% of a core",
    )
    yield _below(
        readings.percentile("explain ms", 95),
        20,
        topic="explain",
        name=f"p95 with {scale.history:,} jobs in the file",
        unit="ms",
    )


def _presence(readings: Readings) -> Iterator[Figure]:
    topic, name = "pickup by another process", "from enqueue to handler start"
    yield Figure(
        topic=topic,
        name=f"p50 {name}",
        measured=readings.percentile("pickup ms", 50),
        unit="ms",
    )
    p95 = readings.percentile("pickup ms", 95)
    yield _below(p95, 10, topic=topic, name=f"p95 {name}", unit="ms")
    yield _below(
        readings.median("idle worker %"), 1, topic="idle", name="worker", unit="% of a core"
    )
    yield Figure(
        topic="idle",
        name="its supervisor",
        measured=readings.median("idle supervisor %"),
        unit="% of a core",
    )


def _tab(readings: Readings, scale: Scale) -> Figure:
    cost = readings.median("server with a tab %") - readings.median("server without a tab %")
    return _below(
        max(0.0, cost),
        2,
        topic="idle",
        name=f"a tab of the dashboard, {scale.history:,} jobs in the file, over the server's own",
        unit="% of a core",
    )


def _server(readings: Readings, scale: Scale) -> Iterator[Figure]:
    topic = "server"
    yield _below(
        readings.percentile("post ms", 95),
        20,
        topic=topic,
        name=f"p95 of single enqueues, {scale.request_rate} a second while a worker drains",
        unit="ms",
    )
    yield _against(
        readings,
        topic,
        "batches of 1,000",
        "posted by 1000/s",
        "library by 1000/s",
        "the library",
        0.5,
    )
    stored = f"{scale.history:,} finished and {scale.backlog:,} waiting jobs"
    for name in ("list page", "GET /api/jobs"):
        filters = readings.beginning(f"{name}: ")
        slowest = max(readings.percentile(each, 95) for each in filters)
        how = f"p95 of {name} by the slowest of {len(filters)} filters, {stored}"
        yield _below(slowest, 100, topic=topic, name=how, unit="ms")
    yield _below(
        readings.percentile("job page ms", 95),
        50,
        topic=topic,
        name=f"p95 of a job's page, {stored}",
        unit="ms",
    )
    yield _below(
        readings.percentile("server MB", 100),
        150,
        topic=topic,
        name="memory of its process after any of that",
        unit="MB",
    )


def _claims(readings: Readings, scale: Scale) -> Iterator[Figure]:
    alone = readings.percentile("claim ms", 99)
    beside = {
        f"beside {scale.history:,} finished jobs": "claim beside history ms",
        "while a transaction stays open": "claim beside transaction ms",
    }
    for name, reading in beside.items():
        measured = readings.percentile(reading, 99)
        yield Figure(
            topic="claims on PostgreSQL",
            name=f"p99 {name}",
            measured=measured,
            unit="ms",
            reference=alone,
            reference_name="without",
            ratio=measured / alone,
            target="ratio ≤ 2",
            met=measured / alone <= 2,
        )


def _memory(readings: Readings, scale: Scale) -> Iterator[Figure]:
    early, late = readings.median("memory at mark MB"), readings.median("memory at end MB")
    yield Figure(
        topic="memory",
        name=f"one worker after {scale.history:,} jobs",
        measured=late,
        unit="MB",
        reference=early,
        reference_name=f"after {scale.memory_mark:,}",
        ratio=late / early,
        target="flat: ratio ≤ 1.1",
        met=late / early <= 1.1,
    )


def _import(readings: Readings) -> Figure:
    start = readings.median("interpreter start ms")
    return _below(
        readings.median("import penstock ms") - start,
        30,
        topic="import penstock",
        name=f"over the interpreter's own {start:.0f} ms",
        unit="ms",
    )


def _against_limit(
    readings: Readings,
    topic: str,
    name: str,
    measured: str,
    limit: str,
    goal: float | None = 0.5,
) -> Figure:
    return _against(readings, topic, name, measured, limit, "raw limit", goal)


def _against(
    readings: Readings,
    topic: str,
    name: str,
    measured: str,
    reference: str,
    reference_name: str,
    goal: float | None,
) -> Figure:
    ratio = readings.ratio(measured, reference)
    return Figure(
        topic=topic,
        name=name,
        measured=readings.median(measured),
        unit="jobs/s",
        reference=readings.median(reference),
        reference_name=reference_name,
        ratio=ratio,
        target=None if goal is None else f"ratio ≥ {goal:g}",
        met=None if goal is None else ratio >= goal,
    )


def _below(measured: float, limit: float, *, topic: str, name: str, unit: str) -> Figure:
    return Figure(
        topic=topic,
        name=name,
        measured=measured,
        unit=unit,
        target=f"< {limit:g} {unit}",
        met=measured < limit,
    )
