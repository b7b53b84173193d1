"""What the store says at one moment, and how that adds up."""

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.model.job import Job
from penstock.model.states import Status
from penstock.store.contract import JobFilter, QueueDepth, Store, WorkerInfo

PAGE = 500
LATEST = 10
TROUBLED = 5
WHOLE_PLAY_MS = 900_000


@dataclass
class Scene:
    """Everything the screen shows."""

    seconds: float
    elapsed: float = 0.0
    enqueued: int = 0
    now: int = 0
    completed: int = 0
    failed: int = 0
    dead: int = 0
    depths: list[QueueDepth] = field(default_factory=list)
    workers: list[WorkerInfo] = field(default_factory=list)
    troubled: list[Job] = field(default_factory=list)
    latest: list[Job] = field(default_factory=list)
    running: list[Job] = field(default_factory=list)
    rates: deque[float] = field(default_factory=lambda: deque([0.0], maxlen=60))
    story: list[tuple[float, str]] = field(default_factory=list)

    def tell(self, sentence: str) -> None:
        """Add a line to the story."""
        self.story.append((self.elapsed, sentence))


class Watcher:
    """Reads the scene from the store; what was there before the play does not count."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._before = (0, 0, 0)
        self._last: tuple[float, int] | None = None

    async def begin(self) -> None:
        """Remember the figures before the play."""
        self._before = await self._figures()

    async def look(self, scene: Scene) -> None:
        """Bring a scene up to date."""
        store = self._store
        completed, failed, dead = await self._figures()
        scene.completed = completed - self._before[0]
        scene.failed = failed - self._before[1]
        scene.dead = dead - self._before[2]
        scene.depths = await store.metrics.depths()
        scene.workers = sorted(await store.workers.list(), key=lambda worker: worker.name)
        scene.latest = await store.reader.find(JobFilter(limit=LATEST))
        running = await store.reader.find(JobFilter(statuses=(Status.IN_PROGRESS,), limit=100))
        scene.running = [job for job in running if job.progress_percent is not None]
        scene.troubled = [
            *await store.reader.find(JobFilter(statuses=(Status.DEAD_LETTER,), limit=1)),
            *await store.reader.find(JobFilter(statuses=(Status.FAILED,), limit=TROUBLED)),
            *(job for job in running if job.rescues),
        ][:TROUBLED]
        scene.now = store.clock.now()
        self._rate(scene)

    async def _figures(self) -> tuple[int, int, int]:
        total = (await self._store.metrics.window(WHOLE_PLAY_MS))[0]
        return total.completed, total.failed, total.dead

    def _rate(self, scene: Scene) -> None:
        if self._last is None:
            self._last = (scene.elapsed, scene.completed)
            return
        elapsed = scene.elapsed - self._last[0]
        if elapsed >= 0.5:
            scene.rates.append(max(0.0, (scene.completed - self._last[1]) / elapsed))
            self._last = (scene.elapsed, scene.completed)


@dataclass(frozen=True)
class Account:
    """Where every job that was acknowledged has ended."""

    enqueued: int
    completed: int
    dead: int
    unfinished: int
    lost: int
    retried: int
    rescued: int
    executions: int

    @property
    def adds_up(self) -> bool:
        """Nothing lost, nothing left, every job in one of the two ends."""
        whole = self.completed + self.dead == self.enqueued
        return whole and self.lost == 0 and self.unfinished == 0


async def read_jobs(store: Store, ids: Sequence[str]) -> list[Job]:
    """The jobs of the play, as the store has them."""
    found: list[Job] = []
    for start in range(0, len(ids), PAGE):
        found += await store.reader.get(ids[start : start + PAGE])
    return found


def account(ids: Sequence[str], jobs: Sequence[Job]) -> Account:
    """Count what became of the jobs that were acknowledged."""
    states = Counter(job.status for job in jobs)
    unfinished = sum(not job.status.terminal for job in jobs)
    return Account(
        enqueued=len(ids),
        completed=states[Status.COMPLETED],
        dead=states[Status.DEAD_LETTER],
        unfinished=unfinished,
        lost=len(set(ids)) - len(jobs),
        retried=sum(job.attempts > 1 for job in jobs),
        rescued=sum(job.rescues > 0 for job in jobs),
        executions=sum(job.fence for job in jobs),
    )
