"""How much there is to do, and how busy those are who do it."""

from collections.abc import Collection, Sequence

from msgspec import Struct

from penstock.store.contract import QueueDepth, Store, Window, WorkerInfo

WINDOW_MS = 300_000


class Load(Struct, frozen=True, kw_only=True):
    """The figures that decide how many workers there should be."""

    queued: int
    in_progress: int
    wait_seconds: float
    cpu_percent: float
    workers: int


async def measure(
    store: Store, *, queues: Collection[str] | None = None, owners: Collection[str] | None = None
) -> Load:
    """The load on an installation, or on some queues; busy are all workers, or those named."""
    return load_of(
        await store.metrics.depths(),
        await store.metrics.window(WINDOW_MS),
        await store.workers.list(),
        queues=queues,
        owners=owners,
    )


def load_of(
    depths: Sequence[QueueDepth],
    windows: Sequence[Window],
    workers: Sequence[WorkerInfo],
    *,
    queues: Collection[str] | None = None,
    owners: Collection[str] | None = None,
) -> Load:
    """The same out of what a store said."""
    ours = [each for each in workers if each.alive and _serves(each, queues)]
    busy = [each.cpu_percent for each in ours if owners is None or each.owner in owners]
    about = [depth for depth in depths if queues is None or depth.queue in queues]
    return Load(
        queued=sum(depth.queued for depth in about),
        in_progress=sum(depth.in_progress for depth in about),
        wait_seconds=round(_median_wait_ms(windows, queues) / 1000, 3),
        cpu_percent=round(sum(busy) / len(busy), 1) if busy else 0.0,
        workers=len(ours),
    )


def _median_wait_ms(windows: Sequence[Window], queues: Collection[str] | None) -> float:
    """How long jobs that started lately had waited; the slowest where several queues are asked."""
    rows = windows[:1] if queues is None else [row for row in windows[1:] if row.queue in queues]
    return max((row.wait_p50_ms or 0.0 for row in rows), default=0.0)


def _serves(worker: WorkerInfo, queues: Collection[str] | None) -> bool:
    return queues is None or worker.queues is None or not set(worker.queues).isdisjoint(queues)
