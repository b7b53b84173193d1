"""Reasons in the job itself: it has ended, it runs, it waits for a time or for other jobs."""

from collections.abc import Iterator

from penstock.model.dependency import EdgeKind, fell_with_parent
from penstock.model.explain import Reason, ReasonKind
from penstock.model.failure import judged
from penstock.model.states import Status
from penstock.model.wording import counted, moment, span
from penstock.operate.reasons.words import HIDDEN, brief, few, waits
from penstock.store.contract import Dependency, Standing


def ended(look: Standing) -> Iterator[Reason]:
    """It has come to its end."""
    job = look.job
    if not job.status.terminal:
        return
    at = job.completed_at or job.updated_at
    when = moment(at, look.now)
    if job.status is Status.COMPLETED:
        told = f"It completed at {when}; running it again takes a new job."
    else:
        why = f": {brief(job.error)}." if job.error else "."
        dead = job.status is Status.DEAD_LETTER
        verb, command = ("died", "dead show") if dead else ("was cancelled", "jobs requeue")
        do = "Its dead letter" if dead else "Run it again"
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


def lease_lapsed(look: Standing) -> Iterator[Reason]:
    """Whoever ran it has not renewed its lease."""
    job = look.job
    if _lapsed(look):
        until = job.lease_until or look.now
        told = (
            f"Its worker {job.lease_owner} has not renewed its lease, which ran out "
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
            f"({span(look.now - job.started_at)}) on worker {job.lease_owner}.{far}"
        )
        owner = (job.lease_owner or "nobody",)
        at = job.started_at
        yield Reason(kind=ReasonKind.RUNNING, sentence=told, workers=owner, since_at=at)


def prefetched(look: Standing) -> Iterator[Reason]:
    """A worker has it, and has not started it."""
    job = look.job
    if job.status is Status.IN_PROGRESS and job.started_at is None and not _lapsed(look):
        told = f"Worker {job.lease_owner} fetched it and starts it when one of its slots is free."
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
            told = (
                f"It stands in the line of order key {look.job.order_key!r} behind "
                f"{_parent(found)}."
            )
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
            f"Its last attempt failed ({brief(job.error or 'no error was kept')}); number "
            f"{job.attempts + 1}{of} is due at {_due(look)}.{source}"
        )
        due = job.scheduled_at
        yield Reason(kind=ReasonKind.WAITS_FOR_RETRY, sentence=told, until_at=due)


def due_now(look: Standing) -> Iterator[Reason]:
    """Its time has come, and no claim has queued it yet."""
    job = look.job
    if job.status in (Status.PENDING, Status.FAILED) and not job.waiting_on and not _later(look):
        told = "It has fallen due and is queued by the next claim of any worker."
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
        return f"{found.edge.parent_id} (gone: the release sweep will decide)"
    return f"{found.parent_type} {found.edge.parent_id} ({found.parent_status})"
