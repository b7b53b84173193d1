"""Reasons among the workers, and in the turns jobs take."""

from collections.abc import Callable, Iterator

from penstock.client.reasons.words import few, may_be_claimed, waits
from penstock.model.explain import Reason, ReasonKind
from penstock.model.spans import span
from penstock.model.states import Status
from penstock.store.contract import Standing, WorkerInfo

STUCK_AFTER_MS = 10_000
COUNTED_TO = 1_000

Lacks = Callable[[WorkerInfo, Standing], bool]

LACKS: dict[ReasonKind, Lacks] = {
    ReasonKind.NO_WORKER_FOR_TYPE: lambda worker, look: look.job.type not in worker.types,
    ReasonKind.NO_WORKER_FOR_QUEUE: lambda worker, look: (
        worker.queues is not None and look.job.queue not in worker.queues
    ),
    ReasonKind.PRIORITY_EXCLUDED: lambda worker, look: (
        worker.max_priority is not None and look.job.priority > worker.max_priority
    ),
    ReasonKind.WORKERS_SILENT: lambda worker, _: not worker.alive,
    ReasonKind.WORKERS_DRAINING: lambda worker, _: worker.state == "draining",
    ReasonKind.WORKERS_STUCK: lambda worker, _: (
        worker.poll_age_ms > STUCK_AFTER_MS and worker.running < worker.concurrency
    ),
    ReasonKind.WORKERS_BUSY: lambda worker, _: worker.running >= worker.concurrency,
}
"""What keeps a worker from taking the job, the lasting things first."""


def lack(look: Standing) -> tuple[ReasonKind | None, list[WorkerInfo]]:
    """The first thing that leaves no worker for the job, and the workers that lack only that."""
    if not look.workers:
        return ReasonKind.NO_WORKER, []
    left = look.workers
    for kind, lacks in LACKS.items():
        able = [worker for worker in left if not lacks(worker, look)]
        if not able:
            return kind, left
        left = able
    return None, left


def no_worker(look: Standing) -> Iterator[Reason]:
    """There are no workers at all."""
    for _ in _lacking(look, ReasonKind.NO_WORKER):
        told = "No worker is registered. Start one with `penstock worker module:app`."
        yield Reason(kind=ReasonKind.NO_WORKER, sentence=told)


def no_worker_for_type(look: Standing) -> Iterator[Reason]:
    """No worker's application registers the type."""
    for workers in _lacking(look, ReasonKind.NO_WORKER_FOR_TYPE):
        told = (
            f"No worker registers type {look.job.type!r} ({_those(workers, 'does not', 'do not')})."
            " Deploy the code that has it, or start a worker for the application that does."
        )
        yield _about(ReasonKind.NO_WORKER_FOR_TYPE, told, workers)


def no_worker_for_queue(look: Standing) -> Iterator[Reason]:
    """No worker that has the type serves the queue."""
    for workers in _lacking(look, ReasonKind.NO_WORKER_FOR_QUEUE):
        queue = look.job.queue
        served = sorted({name for worker in workers for name in worker.queues or ()})
        told = (
            f"No worker that registers its type serves queue {queue!r} "
            f"({_those(workers, 'serves', 'serve')} {few(served)}). "
            f"Start one with `penstock worker module:app --queues {queue}`."
        )
        yield _about(ReasonKind.NO_WORKER_FOR_QUEUE, told, workers)


def priority_excluded(look: Standing) -> Iterator[Reason]:
    """Every worker for it takes only more urgent jobs."""
    for workers in _lacking(look, ReasonKind.PRIORITY_EXCLUDED):
        top = max(worker.max_priority or 0 for worker in workers)
        told = (
            f"Its priority is {look.job.priority}, and {_those(workers, 'takes', 'take')} only "
            f"1 to {top}. Start a worker without --max-priority."
        )
        yield _about(ReasonKind.PRIORITY_EXCLUDED, told, workers)


def workers_silent(look: Standing) -> Iterator[Reason]:
    """The workers for it were not heard of."""
    for workers in _lacking(look, ReasonKind.WORKERS_SILENT):
        quiet = span(min(worker.heartbeat_age_ms for worker in workers))
        told = (
            f"{_those(workers, 'was', 'were')} last heard of {quiet} ago, and nobody else could "
            "run it. Look at the machine, or start another with `penstock worker module:app`."
        )
        yield _about(ReasonKind.WORKERS_SILENT, told, workers)


def workers_draining(look: Standing) -> Iterator[Reason]:
    """The workers for it are on their way out."""
    for workers in _lacking(look, ReasonKind.WORKERS_DRAINING):
        told = (
            f"{_those(workers, 'shuts', 'shut')} down, and nobody else could run it. That is well "
            "during a deploy; otherwise start another with `penstock worker module:app`."
        )
        yield _about(ReasonKind.WORKERS_DRAINING, told, workers)


def workers_stuck(look: Standing) -> Iterator[Reason]:
    """The workers for it live and have stopped to fetch."""
    for workers in _lacking(look, ReasonKind.WORKERS_STUCK):
        age = span(min(worker.poll_age_ms for worker in workers))
        told = (
            f"{_those(workers, 'has', 'have')} room, but asked for no jobs for {age}: "
            "a handler may block the event loop. See `penstock workers ls`."
        )
        yield _about(ReasonKind.WORKERS_STUCK, told, workers)


def workers_busy(look: Standing) -> Iterator[Reason]:
    """The workers for it have no room."""
    for workers in _lacking(look, ReasonKind.WORKERS_BUSY):
        if not may_be_claimed(look):
            return
        slots = sum(worker.concurrency for worker in workers)
        told = (
            f"{_those(workers, 'has', 'have')} no free slot of {slots:,}; it waits for one. More "
            "workers, or a higher --concurrency, would help."
        )
        yield _about(ReasonKind.WORKERS_BUSY, told, workers)


def tenants_turn(look: Standing) -> Iterator[Reason]:
    """Other tenants take turns with its own."""
    if look.job.status is Status.QUEUED and look.tenants:
        others = _counted(look.tenants, "other tenant")
        verb = "takes" if look.tenants == 1 else "take"
        told = f"{others} with jobs in queue {look.job.queue!r} {verb} turns with its own."
        yield Reason(kind=ReasonKind.TENANTS_TURN, sentence=told)


def jobs_ahead(look: Standing) -> Iterator[Reason]:
    """More urgent or older jobs of its kind go first."""
    if look.job.status is Status.QUEUED and look.ahead:
        alike = f"{_counted(look.ahead, 'job')} of its type in queue {look.job.queue!r}"
        told = f"{alike} {'goes' if look.ahead == 1 else 'go'} first: older, or more urgent."
        yield Reason(kind=ReasonKind.JOBS_AHEAD, sentence=told)


def _lacking(look: Standing, kind: ReasonKind) -> Iterator[list[WorkerInfo]]:
    """The workers that lack just this, if that is what leaves none."""
    found, workers = lack(look)
    if waits(look) and found is kind:
        yield workers


def _about(kind: ReasonKind, told: str, workers: list[WorkerInfo]) -> Reason:
    return Reason(kind=kind, sentence=told, workers=tuple(worker.owner for worker in workers))


def _those(workers: list[WorkerInfo], one: str, several: str) -> str:
    """The workers as the subject of a sentence: `Worker a has`, `Workers a and b have`."""
    named = few([worker.name for worker in workers])
    return f"Worker {named} {one}" if len(workers) == 1 else f"Workers {named} {several}"


def _counted(number: int, noun: str) -> str:
    count = f"{number:,} or more" if number >= COUNTED_TO else f"{number:,}"
    return f"{count} {noun}{'' if number == 1 else 's'}"
