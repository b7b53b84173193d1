"""The figures that alerts are judged by, read from the roll-ups and never by counting jobs."""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from penstock.client.app import Penstock
from penstock.model.alert import Reading
from penstock.model.alert_rules import MEASURES, Metric, Rule
from penstock.model.counted import listed
from penstock.model.limits import DepthLimits
from penstock.store.contract import QueueDepth, Window, WorkerInfo
from penstock.upkeep.unclaimed import unserved


class Look(Struct, frozen=True, kw_only=True):
    """One look at an installation; windows are by their length in milliseconds."""

    depths: Sequence[QueueDepth]
    windows: Mapping[int, Sequence[Window]]
    dead: int
    workers: Sequence[WorkerInfo]
    waiting: Mapping[str, int]
    limits: DepthLimits


async def look(app: Penstock, rules: Sequence[Rule]) -> Look:
    """Everything that the rules measure."""
    store = app.store
    spans = {window_ms(rule) for rule in rules if MEASURES[rule.metric].windowed}
    return Look(
        depths=await store.metrics.depths(),
        windows={span: await store.metrics.window(span) for span in sorted(spans)},
        dead=await store.metrics.dead_count(),
        workers=await store.workers.list(),
        waiting=await store.workers.waiting_types(),
        limits=DepthLimits(await store.controls.limits(), app.settings.queue_limit),
    )


def window_ms(rule: Rule) -> int:
    """The span a rule looks back, in milliseconds."""
    return int(rule.window * 1000)


def reading(rule: Rule, seen: Look) -> Reading:
    """What a rule measures, and what that is mostly about."""
    return _READINGS[rule.metric](rule, seen)


def _depth(rule: Rule, seen: Look) -> Reading:
    found = _queues(rule, seen)
    deepest = max(found, key=lambda depth: depth.queued, default=None)
    queued = sum(depth.queued for depth in found)
    return Reading(queued, "" if deepest is None else f"most in {deepest.queue!r}")


def _oldest(rule: Rule, seen: Look) -> Reading:
    oldest = max(_queues(rule, seen), key=lambda depth: depth.oldest_queued_ms or 0, default=None)
    if oldest is None or oldest.oldest_queued_ms is None:
        return Reading(0)
    return Reading(oldest.oldest_queued_ms / 1000, f"in {oldest.queue!r}")


def _backpressure(rule: Rule, seen: Look) -> Reading:
    found = [
        (100 * depth.queued / limit, depth.queue)
        for depth in _queues(rule, seen)
        if (limit := seen.limits.of(depth.queue))
    ]
    fullest = max(found, default=None)
    return Reading(0) if fullest is None else Reading(fullest[0], f"in {fullest[1]!r}")


def _success(rule: Rule, seen: Look) -> Reading:
    found = _failed_percent(rule, seen)
    return found if found.value is None else Reading(100 - found.value, found.about)


def _failed_percent(rule: Rule, seen: Look) -> Reading:
    rows = _rows(rule, seen)
    ended = sum(row.ended for row in rows)
    if not ended or ended < rule.at_least:
        return Reading(None)
    dead = sum(row.dead for row in rows)
    worst = max(rows, key=lambda row: row.dead)
    return Reading(100 * dead / ended, f"mostly {worst.type!r}" if dead else "")


def _duration(rule: Rule, seen: Look) -> Reading:
    return _slowest(rule, seen, lambda row: row.duration_p95_ms)


def _wait(rule: Rule, seen: Look) -> Reading:
    return _slowest(rule, seen, lambda row: row.wait_p95_ms)


def _slowest(rule: Rule, seen: Look, of: Callable[[Window], float | None]) -> Reading:
    """In all, unless the rule is narrowed down: percentiles of several rows do not add up."""
    rows = _rows(rule, seen)
    slowest = max(rows, key=lambda row: of(row) or 0, default=None)
    if slowest is None:
        return Reading(None)
    in_all = slowest if rule.queue or rule.type else seen.windows[window_ms(rule)][0]
    value = of(in_all)
    return Reading(None if value is None else value / 1000, f"slowest is {slowest.type!r}")


def _expiries(rule: Rule, seen: Look) -> Reading:
    return Reading(sum(row.lease_expiries for row in _rows(rule, seen)))


def _dead(_: Rule, seen: Look) -> Reading:
    return Reading(seen.dead)


def _down(_: Rule, seen: Look) -> Reading:
    alive = {(worker.node, worker.name) for worker in seen.workers if worker.alive}
    down = sorted(
        worker.name
        for worker in seen.workers
        if not worker.alive and (worker.node, worker.name) not in alive
    )
    return Reading(len(down), listed(down), cause=listed(down))


def _alive(_: Rule, seen: Look) -> Reading:
    return Reading(sum(worker.alive for worker in seen.workers))


def _unserved(_: Rule, seen: Look) -> Reading:
    found = unserved(seen.waiting, seen.workers)
    return Reading(sum(found.values()), listed(list(found)))


def _queues(rule: Rule, seen: Look) -> list[QueueDepth]:
    return [depth for depth in seen.depths if rule.queue in (None, depth.queue)]


def _rows(rule: Rule, seen: Look) -> list[Window]:
    """One row per type and queue that the rule is about; the first row is the sum of them."""
    rows = seen.windows[window_ms(rule)][1:]
    return [
        row for row in rows if rule.queue in (None, row.queue) and rule.type in (None, row.type)
    ]


_READINGS: dict[Metric, Callable[[Rule, Look], Reading]] = {
    Metric.QUEUE_DEPTH: _depth,
    Metric.OLDEST_JOB: _oldest,
    Metric.SUCCESS_RATE: _success,
    Metric.FAILURE_RATE: _failed_percent,
    Metric.DEAD_LETTERS: _dead,
    Metric.DURATION_P95: _duration,
    Metric.WAIT_P95: _wait,
    Metric.WORKERS_DOWN: _down,
    Metric.WORKERS_ALIVE: _alive,
    Metric.UNSERVED_JOBS: _unserved,
    Metric.LEASE_EXPIRIES: _expiries,
    Metric.BACKPRESSURE: _backpressure,
}
