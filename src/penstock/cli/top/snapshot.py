"""One look at the store: what `top` shows of one moment."""

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from penstock.client.documents import dead_document, document
from penstock.model.clock import iso
from penstock.model.job import Job
from penstock.model.pause import Pause, PauseScope
from penstock.store.contract import DeadLetter, QueueDepth, Window, WorkerInfo

if TYPE_CHECKING:
    from penstock.store.contract import Store

WINDOW_MS = 300_000
STEP_MS = 10_000
SERIES_MS = 600_000
MOST_JOBS = 50
MOST_FAILURES = 20


class Snapshot(Struct, frozen=True, kw_only=True):
    """The figures and rows of one moment; `total` is about the last five minutes."""

    at: int
    name: str
    queues: list[QueueDepth]
    workers: list[WorkerInfo]
    running: list[Job]
    dead: list[DeadLetter]
    pauses: list[Pause]
    total: Window
    completed: list[tuple[int, float]]

    @property
    def paused_queues(self) -> set[str]:
        """The queues that somebody holds."""
        return {pause.name for pause in self.pauses if pause.scope is PauseScope.QUEUE}

    def rates(self, count: int) -> list[float]:
        """Completed per second in the latest steps; the last one has only begun."""
        steps = dict(self.completed)
        last = self.at // STEP_MS * STEP_MS
        full = [steps.get(last - n * STEP_MS, 0.0) for n in range(count - 1, 0, -1)]
        begun = max(1_000, self.at - last)
        return [*(value / STEP_MS * 1_000 for value in full), steps.get(last, 0.0) / begun * 1_000]

    @property
    def per_second(self) -> float:
        """Completed per second in the last ten to twenty seconds."""
        steps = dict(self.completed)
        last = self.at // STEP_MS * STEP_MS
        done = steps.get(last, 0.0) + steps.get(last - STEP_MS, 0.0)
        return done / (self.at - last + STEP_MS) * 1_000

    def documented(self) -> dict[str, Any]:
        """The same for scripts."""
        return {
            "at": iso(self.at),
            "per_second": round(self.per_second, 2),
            "total": document(self.total),
            "queues": [
                document(row) | {"held": row.queue in self.paused_queues} for row in self.queues
            ],
            "workers": [document(row) for row in self.workers],
            "running": [document(row) for row in self.running],
            "dead": [dead_document(row) for row in self.dead],
            "pauses": [document(row) for row in self.pauses],
        }


async def look(store: "Store", name: str) -> Snapshot:
    """Read everything once; nothing here counts what has ended."""
    series = await store.metrics.series(STEP_MS, SERIES_MS)
    pauses = await store.controls.pauses()
    return Snapshot(
        at=store.clock.now(),
        name=name,
        queues=_with_held(await store.metrics.depths(), pauses),
        workers=sorted(await store.workers.list(), key=lambda worker: worker.name),
        running=await store.reader.running(MOST_JOBS),
        dead=await store.dead.find(only_open=True, limit=MOST_FAILURES),
        pauses=pauses,
        total=(await store.metrics.window(WINDOW_MS))[0],
        completed=[(at, values.get("completed", 0.0)) for at, values in series],
    )


def _with_held(depths: list[QueueDepth], pauses: list[Pause]) -> list[QueueDepth]:
    """A paused queue is shown though it is empty, or nobody could resume it."""
    known = {depth.queue for depth in depths}
    held = [p.name for p in pauses if p.scope is PauseScope.QUEUE and p.name not in known]
    empty = [QueueDepth(queue=name) for name in held]
    return sorted([*depths, *empty], key=lambda depth: depth.queue)
