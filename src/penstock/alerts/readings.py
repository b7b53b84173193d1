"""What our own rules measure: one look at the store serves all of them."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar

from msgspec import Struct

from penstock.app.penstock import Penstock
from penstock.model.alert import Reading
from penstock.model.alert_rules import Rule
from penstock.model.controls import DepthLimits
from penstock.model.wording import listed
from penstock.store.contract import QueueDepth, Window, WorkerInfo
from penstock.upkeep.sweeps import unserved


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
    spans = {window_ms(rule) for rule in rules if rule.measure.windowed}
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


_shared: ContextVar[Look | None] = ContextVar("look", default=None)


@asynccontextmanager
async def looking(app: Penstock, rules: Sequence[Rule]) -> AsyncGenerator[None]:
    """Look once for all rules that are read meanwhile."""
    token = _shared.set(await look(app, rules))
    try:
        yield
    finally:
        _shared.reset(token)


def _read(of: Callable[[Rule, Look], Reading]) -> Callable[[Penstock, Rule], Awaitable[Reading]]:
    async def read(app: Penstock, rule: Rule) -> Reading:
        seen = _shared.get()
        return of(rule, await look(app, [rule]) if seen is None else seen)

    return read


queue_depth = _read(_depth)
oldest_job = _read(_oldest)
success_rate = _read(_success)
failure_rate = _read(_failed_percent)
dead_letters = _read(_dead)
duration_p95 = _read(_duration)
wait_p95 = _read(_wait)
workers_down = _read(_down)
workers_alive = _read(_alive)
unserved_jobs = _read(_unserved)
lease_expiries = _read(_expiries)
backpressure = _read(_backpressure)


async def critical_dead(app: Penstock, rule: Rule) -> Reading:
    """Dead letters of one critical type; a pass of its own looks for them every second."""
    return Reading(await app.store.metrics.dead_count(rule.type))
