"""Reasons among the workers, and in the turns jobs take."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from penstock.model.explain import Reason, ReasonKind
from penstock.model.states import Status
from penstock.model.wording import span
from penstock.operate.reasons.words import few, may_be_claimed, waits
from penstock.store.contract import Standing, WorkerInfo
from penstock.store.contract.upkeep import COUNTED_TO

STUCK_AFTER_MS = 10_000

Workers = list[WorkerInfo]


class Lack(NamedTuple):
    """What may keep every worker from taking a job, and the sentence about those it keeps."""

    kind: ReasonKind
    holds: Callable[[WorkerInfo, Standing], bool]
    told: Callable[[Standing, Workers], str]


def no_worker(look: Standing) -> Iterator[Reason]:
    """Nobody could take the job: the first thing that leaves no worker, and whom it concerns."""
    if not waits(look):
        return
    left = look.workers
    if not left:
        told = "No worker is registered. Start one with `penstock worker module:app`."
        yield Reason(kind=ReasonKind.NO_WORKER, sentence=told)
        return
    for lack in LACKS:
        able = [worker for worker in left if not lack.holds(worker, look)]
        if not able:
            if lack.kind is not ReasonKind.WORKERS_BUSY or may_be_claimed(look):
                owners = tuple(worker.owner for worker in left)
                yield Reason(kind=lack.kind, sentence=lack.told(look, left), workers=owners)
            return
        left = able


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


def _no_type(look: Standing, workers: Workers) -> str:
    return (
        f"No worker registers type {look.job.type!r} ({_those(workers, 'does not', 'do not')})."
        " Deploy the code that has it, or start a worker for the application that does."
    )


def _no_queue(look: Standing, workers: Workers) -> str:
    queue = look.job.queue
    served = sorted({name for worker in workers for name in worker.queues or ()})
    return (
        f"No worker that registers its type serves queue {queue!r} "
        f"({_those(workers, 'serves', 'serve')} {few(served)}). "
        f"Start one with `penstock worker module:app --queues {queue}`."
    )


def _not_urgent(look: Standing, workers: Workers) -> str:
    top = max(worker.max_priority or 0 for worker in workers)
    return (
        f"Its priority is {look.job.priority}, and {_those(workers, 'takes', 'take')} only "
        f"1 to {top}. Start a worker without --max-priority."
    )


def _silent(_: Standing, workers: Workers) -> str:
    quiet = span(min(worker.heartbeat_age_ms for worker in workers))
    return (
        f"{_those(workers, 'was', 'were')} last heard of {quiet} ago, and nobody else could "
        "run it. Look at the machine, or start another with `penstock worker module:app`."
    )


def _draining(_: Standing, workers: Workers) -> str:
    return (
        f"{_those(workers, 'shuts', 'shut')} down, and nobody else could run it. That is well "
        "during a deploy; otherwise start another with `penstock worker module:app`."
    )


def _stuck(_: Standing, workers: Workers) -> str:
    age = span(min(worker.poll_age_ms for worker in workers))
    return (
        f"{_those(workers, 'has', 'have')} room, but asked for no jobs for {age}: "
        "a handler may block the event loop. See `penstock workers ls`."
    )


def _busy(_: Standing, workers: Workers) -> str:
    slots = sum(worker.concurrency for worker in workers)
    return (
        f"{_those(workers, 'has', 'have')} no free slot of {slots:,}; it waits for one. More "
        "workers, or a higher --concurrency, would help."
    )


def _those(workers: list[WorkerInfo], one: str, several: str) -> str:
    """The workers as the subject of a sentence: `Worker a has`, `Workers a and b have`."""
    named = few([worker.name for worker in workers])
    return f"Worker {named} {one}" if len(workers) == 1 else f"Workers {named} {several}"


def _counted(number: int, noun: str) -> str:
    count = f"{number:,} or more" if number >= COUNTED_TO else f"{number:,}"
    return f"{count} {noun}{'' if number == 1 else 's'}"


LACKS = (
    Lack(
        ReasonKind.NO_WORKER_FOR_TYPE,
        lambda worker, look: look.job.type not in worker.types,
        _no_type,
    ),
    Lack(
        ReasonKind.NO_WORKER_FOR_QUEUE,
        lambda worker, look: worker.queues is not None and look.job.queue not in worker.queues,
        _no_queue,
    ),
    Lack(
        ReasonKind.PRIORITY_EXCLUDED,
        lambda worker, look: (
            worker.max_priority is not None and look.job.priority > worker.max_priority
        ),
        _not_urgent,
    ),
    Lack(ReasonKind.WORKERS_SILENT, lambda worker, _: not worker.alive, _silent),
    Lack(ReasonKind.WORKERS_DRAINING, lambda worker, _: worker.state == "draining", _draining),
    Lack(
        ReasonKind.WORKERS_STUCK,
        lambda worker, _: (
            worker.poll_age_ms > STUCK_AFTER_MS and worker.running < worker.concurrency
        ),
        _stuck,
    ),
    Lack(ReasonKind.WORKERS_BUSY, lambda worker, _: worker.running >= worker.concurrency, _busy),
)
"""What may keep a worker from taking a job, the lasting things first."""
