"""The figures that alerts are judged by, read from the roll-ups and never by counting jobs."""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from penstock.client.app import Penstock
from penstock.client.notices import TYPE as NOTICE
from penstock.model.alert import Reading
from penstock.model.alerts import MEASURES, Metric, Rule
from penstock.model.limits import EVERY, LimitKind
from penstock.store.contract import QueueDepth, Window, WorkerInfo

NAMED = 3


class Figures(Struct, frozen=True, kw_only=True):
    """One look at an installation; windows are by their length in milliseconds."""

    depths: Sequence[QueueDepth]
    windows: Mapping[int, Sequence[Window]]
    dead: int
    workers: Sequence[WorkerInfo]
    waiting: Mapping[str, int]
    limits: Mapping[str, int]
    queue_limit: int

    def limit_of(self, queue: str) -> int:
        """How many jobs a queue takes; 0 means any number."""
        return self.limits.get(queue, self.limits.get(EVERY, self.queue_limit))


async def look(app: Penstock, rules: Sequence[Rule]) -> Figures:
    """Everything that the rules measure."""
    store = app.store
    spans = {window_ms(rule) for rule in rules if MEASURES[rule.metric].windowed}
    limits = (state.limit for state in await store.controls.limits())
    return Figures(
        depths=await store.metrics.depths(),
        windows={span: await store.metrics.window(span) for span in sorted(spans)},
        dead=await store.metrics.dead_count(),
        workers=await store.workers.list(),
        waiting=await store.workers.waiting_types(),
        limits={limit.name: limit.capacity for limit in limits if limit.kind is LimitKind.DEPTH},
        queue_limit=app.settings.queue_limit,
    )


def window_ms(rule: Rule) -> int:
    """The span a rule looks back, in milliseconds."""
    return int(rule.window * 1000)


def reading(rule: Rule, figures: Figures) -> Reading:
    """What a rule measures, and what that is mostly about."""
    return _READINGS[rule.metric](rule, figures)


def _depth(rule: Rule, figures: Figures) -> Reading:
    found = _queues(rule, figures)
    deepest = max(found, key=lambda depth: depth.queued, default=None)
    queued = sum(depth.queued for depth in found)
    return Reading(queued, "" if deepest is None else f"most in {deepest.queue!r}")


def _oldest(rule: Rule, figures: Figures) -> Reading:
    oldest = max(
        _queues(rule, figures), key=lambda depth: depth.oldest_queued_ms or 0, default=None
    )
    if oldest is None or oldest.oldest_queued_ms is None:
        return Reading(0)
    return Reading(oldest.oldest_queued_ms / 1000, f"in {oldest.queue!r}")


def _backpressure(rule: Rule, figures: Figures) -> Reading:
    found = [
        (100 * depth.queued / limit, depth.queue)
        for depth in _queues(rule, figures)
        if (limit := figures.limit_of(depth.queue))
    ]
    fullest = max(found, default=None)
    return Reading(0) if fullest is None else Reading(fullest[0], f"in {fullest[1]!r}")


def _success(rule: Rule, figures: Figures) -> Reading:
    found = _failed_percent(rule, figures)
    return found if found.value is None else Reading(100 - found.value, found.about)


def _failed_percent(rule: Rule, figures: Figures) -> Reading:
    rows = _rows(rule, figures)
    ended = sum(row.completed + row.failed + row.dead for row in rows)
    if not ended or ended < rule.at_least:
        return Reading(None)
    failed = sum(row.failed + row.dead for row in rows)
    worst = max(rows, key=lambda row: row.failed + row.dead)
    return Reading(100 * failed / ended, f"mostly {worst.type!r}" if failed else "")


def _duration(rule: Rule, figures: Figures) -> Reading:
    return _slowest(rule, figures, lambda row: row.duration_p95_ms)


def _wait(rule: Rule, figures: Figures) -> Reading:
    return _slowest(rule, figures, lambda row: row.wait_p95_ms)


def _slowest(rule: Rule, figures: Figures, of: Callable[[Window], float | None]) -> Reading:
    """In all, unless the rule is narrowed down: percentiles of several rows do not add up."""
    rows = _rows(rule, figures)
    slowest = max(rows, key=lambda row: of(row) or 0, default=None)
    if slowest is None:
        return Reading(None)
    in_all = slowest if rule.queue or rule.type else figures.windows[window_ms(rule)][0]
    value = of(in_all)
    return Reading(None if value is None else value / 1000, f"slowest is {slowest.type!r}")


def _expiries(rule: Rule, figures: Figures) -> Reading:
    return Reading(sum(row.lease_expiries for row in _rows(rule, figures)))


def _dead(_: Rule, figures: Figures) -> Reading:
    return Reading(figures.dead)


def _down(_: Rule, figures: Figures) -> Reading:
    alive = {(worker.node, worker.name) for worker in figures.workers if worker.alive}
    down = sorted(
        worker.name
        for worker in figures.workers
        if not worker.alive and (worker.node, worker.name) not in alive
    )
    return Reading(len(down), listed(down), cause=listed(down))


def _alive(_: Rule, figures: Figures) -> Reading:
    return Reading(sum(worker.alive for worker in figures.workers))


def _unserved(_: Rule, figures: Figures) -> Reading:
    known = {name for worker in figures.workers if worker.alive for name in worker.types}
    known.add(NOTICE)  # which a server runs where no worker does
    unserved = {name: jobs for name, jobs in figures.waiting.items() if name not in known}
    return Reading(sum(unserved.values()), listed(sorted(unserved)))


def listed(names: Sequence[str]) -> str:
    """The first few of some names, and how many more there are."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _queues(rule: Rule, figures: Figures) -> list[QueueDepth]:
    return [depth for depth in figures.depths if rule.queue in (None, depth.queue)]


def _rows(rule: Rule, figures: Figures) -> list[Window]:
    """One row per type and queue that the rule is about; the first row is the sum of them."""
    rows = figures.windows[window_ms(rule)][1:]
    return [
        row for row in rows if rule.queue in (None, row.queue) and rule.type in (None, row.type)
    ]


_READINGS: dict[Metric, Callable[[Rule, Figures], Reading]] = {
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
