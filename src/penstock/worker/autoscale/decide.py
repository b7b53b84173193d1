"""How many workers there should be: a pure function of the load and of what was decided before."""

from msgspec import Struct
from msgspec.structs import replace

from penstock.model.counted import counted
from penstock.model.spans import span
from penstock.worker.autoscale.load import Load


class Policy(Struct, frozen=True, kw_only=True):
    """The bounds and the triggers; times are in seconds.

    Between `down_depth` and `up_depth` nothing changes. After a change none follows before
    `cool_down` is over, and workers are stopped only when it was calm for `calm`.
    """

    least: int = 1
    most: int = 4
    up_depth: int = 100
    down_depth: int = 10
    up_wait: float = 300
    up_cpu: float = 80
    cool_down: float = 60
    calm: float = 120


class Memory(Struct, frozen=True, kw_only=True):
    """What the next decision has to know of the last ones, in milliseconds of one clock."""

    changed_at: int | None = None
    calm_since: int | None = None


class Decision(Struct, frozen=True, kw_only=True):
    """How many workers there should be; without a reason, as many as there are."""

    workers: int
    reason: str
    memory: Memory


def decide(load: Load, workers: int, memory: Memory, policy: Policy, now: int) -> Decision:
    """What to do about a load with so many workers."""
    bounded = min(max(workers, policy.least), policy.most)
    if bounded != workers:
        side, bound = ("least", policy.least) if bounded > workers else ("most", policy.most)
        reason = f"{counted(workers, 'worker')} where there should be at {side} {bound}"
        return _change(bounded, reason, memory, now)
    too_much = _too_much(load, workers, policy)
    cooling = _within(memory.changed_at, policy.cool_down, now)
    if too_much:
        busy = replace(memory, calm_since=None)
        if cooling or workers >= policy.most:
            return Decision(workers=workers, reason="", memory=busy)
        return _change(workers + 1, too_much, busy, now)
    calm = _calm(load, workers, policy)
    since = (memory.calm_since if memory.calm_since is not None else now) if calm else None
    memory = replace(memory, calm_since=since)
    if not calm or cooling or _within(since, policy.calm, now):
        return Decision(workers=workers, reason="", memory=memory)
    return _change(workers - 1, calm, memory, now)


def _too_much(load: Load, workers: int, policy: Policy) -> str:
    """Why there should be more, if there should."""
    if not workers and load.queued:
        return f"{load.queued} queued and nobody works"
    if load.queued > policy.up_depth:
        return f"{load.queued} queued, more than {policy.up_depth}"
    if load.queued and load.wait_seconds > policy.up_wait:
        waited, most = (span(seconds * 1000) for seconds in (load.wait_seconds, policy.up_wait))
        return f"jobs waited {waited}, longer than {most}"
    if load.cpu_percent > policy.up_cpu:
        return f"workers use {load.cpu_percent:g} % of a core, more than {policy.up_cpu:g} %"
    return ""


def _calm(load: Load, workers: int, policy: Policy) -> str:
    """Why one could be spared, if it could; those who stay must not be too busy then."""
    if workers <= policy.least or load.queued >= policy.down_depth:
        return ""
    left = workers - 1
    if not left:
        return "" if load.queued or load.in_progress else "nothing is queued and nothing runs"
    if load.cpu_percent * workers / left >= policy.up_cpu:
        return ""
    return f"{load.queued} queued, fewer than {policy.down_depth}"


def _change(workers: int, reason: str, memory: Memory, now: int) -> Decision:
    changed = replace(memory, changed_at=now, calm_since=None)
    return Decision(workers=workers, reason=reason, memory=changed)


def _within(since: int | None, seconds: float, now: int) -> bool:
    return since is not None and now - since < seconds * 1000
