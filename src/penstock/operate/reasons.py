"""The reasons why a job does, or does not, run: each looks at one thing and puts it into words."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from penstock.model.controls import BreakerPosition, LimitKind, LimitState, Pause, PauseScope
from penstock.model.dependency import EdgeKind
from penstock.model.explain import Reason, ReasonKind
from penstock.model.failure import fell_with_parent, judged
from penstock.model.states import Status
from penstock.model.wording import brief, counted, few, moment, span
from penstock.store.contract import Dependency, Standing, WorkerInfo
from penstock.store.contract.upkeep import COUNTED_TO

HIDDEN = "a job of another tenant"
"""What is told, in place of its id, of a job that is not the business of who asks."""


def waits(look: Standing) -> bool:
    """Whether the job neither runs nor has ended."""
    return not look.job.status.terminal and look.job.status is not Status.IN_PROGRESS


def may_be_claimed(look: Standing) -> bool:
    """Whether the job is queued, or will be at the next claim."""
    job = look.job
    if job.status is Status.QUEUED:
        return True
    waiting = job.status in (Status.PENDING, Status.FAILED)
    return waiting and job.waiting_on == 0 and job.scheduled_at <= look.now


def ended(look: Standing) -> Iterator[Reason]:
    """It has come to its end."""
    job = look.job
    if not job.status.terminal:
        return
    at = job.completed_at or job.updated_at
    when = moment(at, look.now)
    if job.status is Status.COMPLETED:
        told = f"It completed at {when}. Run it again: `penstock jobs run-again {job.id}`."
    else:
        why = f": {brief(job.error)}." if job.error else "."
        dead = job.status is Status.DEAD_LETTER
        verb, command = ("died", "dead show") if dead else ("was cancelled", "jobs requeue")
        do = "Its dead letter" if dead else "Requeue it"
        given_up = judged(job.error_details).given_up if dead else None
        why += f" {given_up}" if given_up else ""
        told = f"It {verb} at {when}{why} {do}: `penstock {command} {job.id}`."
        if not dead and fell_with_parent(job.error_details):
            told = (
                f"It was cancelled at {when}{why} Requeue the job that failed, and this one "
                f"comes back; see `penstock jobs tree {job.id}`."
            )
    yield Reason(kind=ReasonKind.ENDED, sentence=told, since_at=at)


def key_taken(look: Standing) -> Iterator[Reason]:
    """It has ended, and another job has its key now."""
    if look.key_holder is not None:
        told = (
            f"A requeue would be refused: its key {look.job.key!r} is held by job "
            f"{look.key_holder}; wait until that job gives it up, or cancel it."
        )
        yield Reason(kind=ReasonKind.KEY_TAKEN, sentence=told, jobs=(look.key_holder,))


def cancel_requested(look: Standing) -> Iterator[Reason]:
    """It runs, and somebody asked it to stop."""
    at = look.job.cancel_requested_at
    if look.job.status is Status.IN_PROGRESS and at is not None:
        told = (
            f"It was asked to stop at {moment(at, look.now)}, and ends when its handler looks at "
            "the context or reaches its timeout; a value returned first wins."
        )
        yield Reason(kind=ReasonKind.CANCEL_REQUESTED, sentence=told, since_at=at)


def _worker(look: Standing) -> str:
    """Name the worker that holds the job: by its name, or by its id once it is gone."""
    owner = look.job.lease_owner or "nobody"
    return next((worker.name for worker in look.workers if worker.owner == owner), owner)


def lease_lapsed(look: Standing) -> Iterator[Reason]:
    """Whoever ran it has not renewed its lease."""
    job = look.job
    if _lapsed(look):
        until = job.lease_until or look.now
        told = (
            f"Its worker {_worker(look)} has not renewed its lease, which ran out "
            f"{span(look.now - until)} ago: it died or hangs. Any live worker's upkeep will "
            "rescue the job within half a minute; see `penstock workers ls`."
        )
        owner = (job.lease_owner or "nobody",)
        yield Reason(kind=ReasonKind.LEASE_LAPSED, sentence=told, workers=owner, since_at=until)


def running(look: Standing) -> Iterator[Reason]:
    """A worker runs it."""
    job = look.job
    if job.status is Status.IN_PROGRESS and job.started_at is not None and not _lapsed(look):
        far = "" if job.progress_percent is None else f" It is {job.progress_percent:.0f} % done."
        told = (
            f"It has been running since {moment(job.started_at, look.now)} "
            f"({span(look.now - job.started_at)}) on worker {_worker(look)}.{far}"
        )
        if any(w.owner == job.lease_owner and w.state == "blocked" for w in look.workers):
            told += " A handler blocks the event loop of that worker; its log says which and where."
        owner = (job.lease_owner or "nobody",)
        at = job.started_at
        yield Reason(kind=ReasonKind.RUNNING, sentence=told, workers=owner, since_at=at)


def prefetched(look: Standing) -> Iterator[Reason]:
    """A worker has it, and has not started it."""
    job = look.job
    if job.status is Status.IN_PROGRESS and job.started_at is None and not _lapsed(look):
        told = f"Worker {_worker(look)} fetched it and starts it when one of its slots is free."
        owner = (job.lease_owner or "nobody",)
        yield Reason(kind=ReasonKind.PREFETCHED, sentence=told, workers=owner)


def expired(look: Standing) -> Iterator[Reason]:
    """Its time to run is over, and nobody has buried it yet."""
    job = look.job
    if waits(look) and job.expires_at is not None and job.expires_at <= look.now:
        told = (
            f"It expired at {moment(job.expires_at, look.now)} before it could run, and becomes a "
            "dead letter with the next claim or upkeep pass of any worker."
        )
        if job.status is Status.PAUSED:
            told = (
                f"It expired at {moment(job.expires_at, look.now)} while it was paused, and "
                "becomes a dead letter once it is resumed."
            )
        yield Reason(kind=ReasonKind.EXPIRED, sentence=told, since_at=job.expires_at)


def waits_for_parents(look: Standing) -> Iterator[Reason]:
    """Jobs it should run after have not ended."""
    if not waits(look) or look.job.waiting_on == 0:
        return
    parents = [found for found in look.waits_for if found.edge.kind is not EdgeKind.ORDER]
    in_line = len(look.waits_for) - len(parents)
    count = look.job.waiting_on - in_line
    if count > 0:
        ids = tuple(dict.fromkeys(found.edge.parent_id for found in parents))
        named = few([_parent(found) for found in parents], count) or "which the store lost"
        told = f"It waits for {counted(count, 'job')} to end first: {named}."
        if len(ids) == 1 and ids[0] != HIDDEN:
            told += f" See `penstock jobs explain {ids[0]}`."
        yield Reason(kind=ReasonKind.WAITS_FOR_PARENTS, sentence=told, jobs=ids)


def waits_in_line(look: Standing) -> Iterator[Reason]:
    """The job before it in the line of its order key has not ended."""
    for found in look.waits_for:
        if waits(look) and found.edge.kind is EdgeKind.ORDER:
            parent = found.edge.parent_id
            told = f"It waits in the order of key {look.job.order_key!r} behind {_parent(found)}."
            if parent != HIDDEN:
                told += f" See `penstock jobs explain {parent}`."
            yield Reason(kind=ReasonKind.WAITS_IN_LINE, sentence=told, jobs=(parent,))


def waits_for_time(look: Standing) -> Iterator[Reason]:
    """It was enqueued, or released, for later."""
    if _later(look) and not look.job.snoozes and not _failed(look):
        told = f"It is not due before {_due(look)}."
        due = look.job.scheduled_at
        yield Reason(kind=ReasonKind.WAITS_FOR_TIME, sentence=told, until_at=due)


def snoozed(look: Standing) -> Iterator[Reason]:
    """Its handler asked to come back later."""
    job = look.job
    if _later(look) and job.snoozes and not _failed(look):
        times = "once" if job.snoozes == 1 else f"{job.snoozes} times"
        told = f"Its handler snoozed it ({times} so far); it comes back at {_due(look)}."
        yield Reason(kind=ReasonKind.SNOOZED, sentence=told, until_at=job.scheduled_at)


def waits_for_retry(look: Standing) -> Iterator[Reason]:
    """Its last attempt failed."""
    job = look.job
    if _later(look) and _failed(look):
        budget = judged(job.error_details).budget
        of = f" of {budget.retries + 1}" if budget else ""
        source = f" Its retries are bounded by {budget.source}." if budget else ""
        told = (
            f"Its last attempt failed ({brief(job.error or 'no error was recorded')}); number "
            f"{job.attempts + 1}{of} is due at {_due(look)}.{source}"
        )
        due = job.scheduled_at
        yield Reason(kind=ReasonKind.WAITS_FOR_RETRY, sentence=told, until_at=due)


def due_now(look: Standing) -> Iterator[Reason]:
    """Its time has come, and no claim has queued it yet."""
    job = look.job
    if job.status in (Status.PENDING, Status.FAILED) and not job.waiting_on and not _later(look):
        told = "It is due and is queued as soon as any worker looks for jobs."
        yield Reason(kind=ReasonKind.DUE, sentence=told, since_at=job.scheduled_at)


def _lapsed(look: Standing) -> bool:
    job = look.job
    lapsed = job.lease_until is None or job.lease_until < look.now
    return job.status is Status.IN_PROGRESS and lapsed


def _later(look: Standing) -> bool:
    held = look.job.status in (Status.PENDING, Status.FAILED, Status.PAUSED)
    return held and look.job.scheduled_at > look.now


def _failed(look: Standing) -> bool:
    """Whether it waits for a retry; while it is paused, only its error tells."""
    job = look.job
    return job.status is Status.FAILED or (job.status is Status.PAUSED and job.error is not None)


def _due(look: Standing) -> str:
    due = look.job.scheduled_at
    return f"{moment(due, look.now)} (in {span(due - look.now)})"


def _parent(found: Dependency) -> str:
    if found.edge.parent_id == HIDDEN:
        return HIDDEN
    if found.parent_status is None:
        return f"{found.edge.parent_id} (pruned; upkeep decides soon)"
    return f"{found.parent_type} {found.edge.parent_id} ({found.parent_status})"


KINDS = {
    PauseScope.JOB: ReasonKind.JOB_PAUSED,
    PauseScope.QUEUE: ReasonKind.QUEUE_PAUSED,
    PauseScope.TYPE: ReasonKind.TYPE_PAUSED,
    PauseScope.TENANT: ReasonKind.TENANT_PAUSED,
}


def paused(look: Standing) -> Iterator[Reason]:
    """Somebody holds the job, its queue, its type or its tenant."""
    if not waits(look):
        return
    for pause in look.pauses:
        yield Reason(
            kind=KINDS[pause.scope],
            sentence=_pause_sentence(pause, look.now),
            by=pause.paused_by,
            since_at=pause.created_at,
        )
    named = any(pause.scope is PauseScope.JOB for pause in look.pauses)
    if look.job.status is Status.PAUSED and not named:
        told = f"It is paused. Resume it with `penstock resume job {look.job.id}`."
        yield Reason(kind=ReasonKind.JOB_PAUSED, sentence=told)


def breaker_open(look: Standing) -> Iterator[Reason]:
    """What it depends on is down."""
    for state in look.breakers:
        if may_be_claimed(look) and state.position(look.now) is BreakerPosition.OPEN:
            name, opened = state.breaker.name, state.opened_at or look.now
            wait = state.tries_in_ms(look.now) or 0
            told = (
                f"Breaker {name!r} has been open since {moment(opened, look.now)} after "
                f"{state.failed} failures; one job tries again in {span(wait)}. Close it now with "
                f"`penstock breakers reset {name}`."
            )
            until = look.now + wait
            yield Reason(
                kind=ReasonKind.BREAKER_OPEN, sentence=told, since_at=opened, until_at=until
            )


def breaker_probing(look: Standing) -> Iterator[Reason]:
    """One job tries whether what it depends on is up again."""
    for state in look.breakers:
        half_open = state.position(look.now) is BreakerPosition.HALF_OPEN
        if may_be_claimed(look) and half_open and state.probe_id is not None:
            told = (
                f"Breaker {state.breaker.name!r} lets one job try at a time, and job "
                f"{state.probe_id} is trying now; if it completes, all go on."
            )
            kind = ReasonKind.BREAKER_PROBING
            yield Reason(kind=kind, sentence=told, jobs=(state.probe_id,), since_at=state.opened_at)


def limit_full(look: Standing) -> Iterator[Reason]:
    """As many run at once as may."""
    for state in look.limits:
        if may_be_claimed(look) and _used_up(state, LimitKind.CONCURRENCY):
            named = few(state.holders, state.used) or "on their way to a worker"
            told = (
                f"{_about(state)} may have {state.limit.capacity:,} running at once, and "
                f"{state.used:,} {'is' if state.used == 1 else 'are'}: {named}. "
                f"{_change(state, '--concurrency N')}"
            )
            yield Reason(kind=ReasonKind.LIMIT_FULL, sentence=told, jobs=state.holders)


def rate_used_up(look: Standing) -> Iterator[Reason]:
    """As many were started as may in a while."""
    for state in look.limits:
        if may_be_claimed(look) and _used_up(state, LimitKind.RATE):
            wait = state.frees_in_ms or 0
            told = (
                f"{_about(state)} may start {state.limit.capacity:,} per "
                f"{span(state.limit.interval_ms)}, and that many have started; the next may in "
                f"{span(wait)}. {_change(state, '--rate 10/s')}"
            )
            until = look.now + wait
            yield Reason(kind=ReasonKind.RATE_USED_UP, sentence=told, until_at=until)


def _used_up(state: LimitState, kind: LimitKind) -> bool:
    return state.limit.kind is kind and state.used >= state.limit.capacity


def _about(state: LimitState) -> str:
    return f"{state.limit.scope.capitalize()} {state.limit.name!r}"


def _change(state: LimitState, option: str) -> str:
    limit = state.limit
    return f"Change it with `penstock limits set {limit.scope} {limit.name} {option}`."


def _pause_sentence(pause: Pause, now: int) -> str:
    what = "It" if pause.scope is PauseScope.JOB else f"{pause.scope.capitalize()} {pause.name!r}"
    who = f" by {pause.paused_by}" if pause.paused_by else ""
    why = f": {brief(pause.reason)}." if pause.reason else "."
    return (
        f"{what} has been paused since {moment(pause.created_at, now)}{who}{why} "
        f"Resume it with `penstock resume {pause.scope} {pause.name}`."
    )


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
