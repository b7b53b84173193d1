"""What `penstock top` knows: one look at the store, where the person is, and what a key does."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from penstock.model.clock import iso
from penstock.model.controls import Pause, PauseScope
from penstock.model.job import Job
from penstock.model.not_found import JobNotFound
from penstock.model.states import Status
from penstock.operate.controls import queue_states
from penstock.operate.documents import dead_document, document
from penstock.store.contract import DeadLetter, QueueDepth, Window, WorkerInfo

if TYPE_CHECKING:
    from penstock.operate.actor import Operator
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
    workers = await store.workers.list()
    limits = await store.controls.limits()
    windows = await store.metrics.window(WINDOW_MS)
    states = queue_states(await store.metrics.depths(), pauses, limits, workers, windows)
    return Snapshot(
        at=store.clock.now(),
        name=name,
        queues=[state.depth for state in states],
        workers=sorted(workers, key=lambda worker: worker.name),
        running=await store.reader.running(MOST_JOBS),
        dead=await store.dead.find(only_open=True, limit=MOST_FAILURES),
        pauses=pauses,
        total=windows[0],
        completed=[(at, values.get("completed", 0.0)) for at, values in series],
    )


class Panel(StrEnum):
    """The parts of the screen, in the order of the tab key."""

    QUEUES = "queues"
    WORKERS = "workers"
    RUNNING = "running"
    FAILURES = "failures"


PANELS = tuple(Panel)


@dataclass
class State:
    """What the next frame shows besides the snapshot."""

    panel: Panel = Panel.QUEUES
    chosen: dict[Panel, str] = field(default_factory=dict[Panel, str])
    message: str = ""
    asking: str | None = None
    help: bool = False

    def selected(self, snapshot: Snapshot, panel: Panel | None = None) -> str | None:
        """The chosen row's name or id; the first one until somebody has moved."""
        rows = rows_of(snapshot, panel or self.panel)
        chosen = self.chosen.get(panel or self.panel)
        return chosen if chosen in rows else next(iter(rows), None)

    def move(self, snapshot: Snapshot, step: int) -> None:
        """Choose another row of the panel; a row keeps its choice when it moves."""
        rows = rows_of(snapshot, self.panel)
        selected = self.selected(snapshot)
        if selected is not None:
            place = min(max(rows.index(selected) + step, 0), len(rows) - 1)
            self.chosen[self.panel] = rows[place]

    def turn(self, step: int) -> None:
        """Go to another panel."""
        self.panel = PANELS[(PANELS.index(self.panel) + step) % len(PANELS)]


def rows_of(snapshot: Snapshot, panel: Panel) -> list[str]:
    """The names or ids of a panel's rows, as they are shown."""
    match panel:
        case Panel.QUEUES:
            return [depth.queue for depth in snapshot.queues]
        case Panel.WORKERS:
            return [worker.owner for worker in snapshot.workers]
        case Panel.RUNNING:
            return [job.id for job in snapshot.running]
        case Panel.FAILURES:
            return [letter.job_id for letter in snapshot.dead]


BY = "penstock top"


class Actions:
    """Pauses, cancels and requeues, on record; each answers with a sentence."""

    def __init__(self, operator: "Operator") -> None:
        self._operator = operator
        self._cancels: str | None = None

    def question(self, key: str, snapshot: Snapshot, state: State) -> str | None:
        """What to ask before doing it, if that is necessary."""
        chosen = state.selected(snapshot)
        if key != "c" or state.panel is not Panel.RUNNING or chosen is None:
            return None
        self._cancels = chosen
        return f"Ask job {chosen} to stop?"

    async def confirmed(self) -> str | None:
        """Cancel the job that was asked about."""
        if self._cancels is None:
            return None
        job_id, self._cancels = self._cancels, None
        status = await self._operator.jobs.cancel(job_id, f"cancelled in {BY}")
        stopped = "is cancelled" if status is Status.CANCELLED else "was asked to stop"
        return f"Job {job_id} {stopped}."

    async def do(self, key: str, snapshot: Snapshot, state: State) -> str | None:
        """Do what needs no question; a sentence, or nothing for a key without a meaning."""
        chosen = state.selected(snapshot)
        match key, state.panel:
            case (("p" | "c" | "r"), _) if chosen is None:
                return "There is nothing to choose here."
            case "p", Panel.QUEUES if chosen is not None:
                return await self._toggle(PauseScope.QUEUE, chosen, snapshot)
            case "p", (Panel.RUNNING | Panel.FAILURES) if chosen is not None:
                return await self._toggle(PauseScope.JOB, chosen, snapshot)
            case "r", Panel.FAILURES if chosen is not None:
                await self._operator.jobs.requeue(chosen)
                return f"Job {chosen} will run again."
            case "e", (Panel.RUNNING | Panel.FAILURES) if chosen is not None:
                return await self._explained(chosen)
            case "p", _:
                return "Choose a queue to pause or resume it."
            case "c", _:
                return "Choose a running job to cancel it."
            case "r", _:
                return "Choose a failure to requeue it."
            case "e", _:
                return "Choose a job to have it explained."
            case _:
                return None

    async def _explained(self, job_id: str) -> str:
        try:
            return (await self._operator.jobs.explain(job_id)).summary
        except JobNotFound:
            return "The job is gone."

    async def _toggle(self, scope: PauseScope, name: str, snapshot: Snapshot) -> str:
        paused = any((pause.scope, pause.name) == (scope, name) for pause in snapshot.pauses)
        reason = f"paused in {BY}"
        what: Any = {scope.value: name}
        if paused:
            await self._operator.controls.resume(**what)
        else:
            by = BY if scope is PauseScope.QUEUE else None
            await self._operator.controls.pause(reason=reason, by=by, **what)
        return f"The {scope} {name} " + ("is resumed." if paused else "is paused; p resumes it.")
