"""Queues as they stand: how deep, held back or not, and bounded by what."""

from collections.abc import Iterable

from msgspec import Struct

from penstock.model.controls import EVERY, LimitScope, LimitState, Pause, PauseScope
from penstock.store.contract import QueueDepth


class QueueState(Struct, frozen=True):
    """A queue: what stands in it, whether it is held back, and its own limits."""

    depth: QueueDepth
    pause: Pause | None
    limits: list[LimitState]


def queue_states(
    depths: Iterable[QueueDepth], pauses: Iterable[Pause], limits: Iterable[LimitState]
) -> list[QueueState]:
    """Every queue with waiting or running jobs, and every one that is paused or limited."""
    deep = {depth.queue: depth for depth in depths}
    held = {pause.name: pause for pause in pauses if pause.scope is PauseScope.QUEUE}
    bounds: dict[str, list[LimitState]] = {}
    for state in limits:
        if state.limit.scope is LimitScope.QUEUE:
            bounds.setdefault(state.limit.name, []).append(state)
    return [
        QueueState(deep.get(name) or QueueDepth(queue=name), held.get(name), bounds.get(name, []))
        for name in sorted({*deep, *held, *bounds} - {EVERY})
    ]
