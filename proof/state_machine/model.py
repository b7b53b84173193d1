"""What a store should do, in plain Python: the model that the state machine walks beside it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from penstock.model.errors import IllegalTransition, KeyTaken
from penstock.model.job import Enqueued, KeyScope, Lease, NewJob, rank
from penstock.model.outcome import (
    Buried,
    Cancelled,
    Completed,
    Crashed,
    Failed,
    HandedBack,
    Settlement,
    Snoozed,
)
from penstock.model.states import Status, sources
from penstock.store.contract import Claim, Fate, Report

MAX_RESCUES = 3

WAITING = (Status.PENDING, Status.QUEUED, Status.FAILED)
_STAGED = (Status.PENDING, Status.FAILED)
_GOES_ON = (Failed, Snoozed, Crashed, HandedBack)
_RELEASED_AT_END = (KeyScope.WHILE_PENDING, KeyScope.UNTIL_DONE)


class Token(NamedTuple):
    """What a worker carries of a lease, for as long as it likes."""

    id: str
    fence: int
    owner: str


class Key(NamedTuple):
    """A unique key that is held: by which job, how, and until when."""

    job_id: str
    scope: KeyScope
    expires_at: int | None


@dataclass(slots=True)
class ModelJob:
    """A job as it should be."""

    new: NewJob
    status: Status
    scheduled_at: int
    expires_at: int | None
    fence: int = 0
    attempts: int = 0
    snoozes: int = 0
    rescues: int = 0
    owner: str | None = None
    lease_until: int | None = None
    started: bool = False
    cancel_requested: bool = False
    checkpoint: str | None = None
    ended_fences: list[int] = field(default_factory=list)
    log_lines: int = 0
    payload: str = "{}"
    result: str | None = None
    was_queued: bool = False

    @property
    def rank(self) -> int:
        """Its place among the queued jobs of its tenant."""
        return rank(self.scheduled_at, self.new.priority)

    @property
    def fences(self) -> list[int]:
        """The fences of its executions, the running one included."""
        return [*self.ended_fences, self.fence] if self.started else list(self.ended_fences)


class StoreModel:
    """Every job there should be; `now` is the store's time."""

    def __init__(self) -> None:
        self.jobs: dict[str, ModelJob] = {}
        self.keys: dict[tuple[str, str, str], Key] = {}
        self.granted: list[Token] = []
        self.settled: set[Token] = set()

    def enqueue(self, new: NewJob, now: int) -> Enqueued:
        """Insert a job, or answer with the one that has its id or its key."""
        if new.id in self.jobs:
            return Enqueued(new.id, False)
        holder = self.holder(new, now)
        if holder is not None:
            return Enqueued(holder, False)
        due = now + new.delay_ms if new.scheduled_at is None else new.scheduled_at
        expires_at = None if new.expires_in_ms is None else now + new.expires_in_ms
        job = ModelJob(new, Status.PENDING, due, expires_at, payload=new.payload)
        self.jobs[new.id] = job
        if due <= now and not new.after:
            self._begin(job)
        if new.key is not None:
            self._take_key(new, new.key_scope or KeyScope.UNTIL_DONE, now)
        return Enqueued(new.id, True)

    def holder(self, new: NewJob, now: int) -> str | None:
        """The job that has this one's key, if any has."""
        held = self.keys.get((new.tenant_id, new.type, new.key or ""))
        if held is None or (held.expires_at is not None and held.expires_at <= now):
            return None
        return held.job_id

    def expire(self, now: int) -> set[str]:
        """Bury waiting jobs past their expiry."""
        found = {
            job_id
            for job_id, job in self.jobs.items()
            if job.status in WAITING and job.expires_at is not None and job.expires_at <= now
        }
        for job_id in found:
            self._end(self.jobs[job_id], Status.DEAD_LETTER)
        self._follow()
        return found

    def stage(self, now: int) -> set[str]:
        """Queue waiting jobs that fell due."""
        due = [job for job in self._stageable() if job.scheduled_at <= now]
        # Who was in the queue before has its place; the others come in the order of their time.
        for job in sorted(due, key=lambda job: (not job.was_queued, job.scheduled_at)):
            self._begin(job)
        return {job.new.id for job in due if job.status is Status.QUEUED}

    def claimable(self, claim: Claim) -> dict[str, list[ModelJob]]:
        """The queued jobs a claim may take, by tenant, in the order it must take them."""
        found: dict[str, list[ModelJob]] = {}
        for job in sorted(self.jobs.values(), key=lambda job: job.rank):
            urgent = claim.max_priority is None or job.new.priority <= claim.max_priority
            if job.status is Status.QUEUED and job.new.type in claim.types and urgent:
                found.setdefault(job.new.tenant_id, []).append(job)
        return found

    def next_due_in(self, now: int) -> int | None:
        """How long until the next waiting job falls due."""
        due = [job.scheduled_at for job in self._stageable()]
        return max(0, min(due) - now) if due else None

    def grant(self, lease: Lease, owner: str, until: int) -> None:
        """Note a lease that the store gave out."""
        job = self.jobs[lease.id]
        job.status = Status.IN_PROGRESS
        job.fence += 1
        job.owner, job.lease_until = owner, until
        job.started = lease.started_at is not None
        self._release(job, (KeyScope.WHILE_PENDING,))
        self.granted.append(Token(lease.id, lease.fence, owner))

    def settle_all(self, owner: str, settlements: Sequence[Settlement], now: int) -> None:
        """End leases, those that are still held."""
        for settlement in settlements:
            self.settle(owner, settlement, now)
        self._follow()

    def held(self, token: Token) -> ModelJob | None:
        """The job, if this token is its live lease."""
        job = self.jobs[token.id]
        live = job.status is Status.IN_PROGRESS and (job.fence, job.owner) == token[1:]
        return job if live else None

    def held_by(self, owner: str) -> Iterator[ModelJob]:
        """All jobs under a live lease of one owner."""
        return (job for job in self.jobs.values() if job.owner == owner)

    def settle(self, owner: str, settlement: Settlement, now: int) -> bool:
        """End a lease, if it is still held; whether it was."""
        token = Token(settlement.id, settlement.fence, owner)
        job = self.held(token)
        if job is None:
            return False
        self.settled.add(token)
        if not isinstance(settlement, HandedBack) or settlement.started:
            job.ended_fences.append(job.fence)
        if job.cancel_requested and isinstance(settlement, _GOES_ON):
            self._end(job, Status.CANCELLED)
        else:
            self._apply(job, settlement, now)
        return True

    def report(self, owner: str, report: Report) -> bool:
        """Keep a checkpoint and log lines, if the lease is still held; whether it was."""
        job = self.held(Token(report.id, report.fence, owner))
        if job is None:
            return False
        job.checkpoint = report.checkpoint or job.checkpoint
        job.log_lines += len(report.logs)
        return True

    def cancel(self, ids: Sequence[str]) -> dict[str, Status]:
        """Cancel waiting jobs, ask running ones to stop; their status afterwards."""
        for job in map(self.jobs.__getitem__, ids):
            if job.status in sources("cancel"):
                self._end(job, Status.CANCELLED)
            elif job.status is Status.IN_PROGRESS:
                job.cancel_requested = True
        answer = {job_id: self.jobs[job_id].status for job_id in ids}
        self._follow()
        return answer

    def refusal(self, job_id: str, now: int) -> IllegalTransition | KeyTaken | None:
        """Why a requeue must be refused, if it must."""
        job = self.jobs[job_id]
        if job.status not in sources("requeue"):
            return IllegalTransition(job.status, "requeue", job_id)
        holder = self.holder(job.new, now)
        if holder in (None, job_id) or job.new.key_scope is KeyScope.WHILE_PENDING:
            return None
        return KeyTaken(job.new.key or "", str(holder), job.new.type)

    def requeue(self, job_id: str, now: int) -> None:
        """Give an ended job a fresh budget; its fence goes on counting."""
        job = self.jobs[job_id]
        job.status, job.scheduled_at, job.expires_at = Status.PENDING, now, None
        job.attempts = job.snoozes = job.rescues = 0
        job.cancel_requested = job.was_queued = False
        job.result = None
        if job.new.key is not None and job.new.key_scope in (None, KeyScope.UNTIL_DONE):
            self._take_key(job.new, KeyScope.UNTIL_DONE, now)

    def rescue(self, owner: str | None, max_rescues: int, now: int) -> dict[str, Fate]:
        """Take away leases that ran out, or all leases of a dead owner."""
        fates: dict[str, Fate] = {}
        for job in self.jobs.values():
            lapsed = job.lease_until is not None and job.lease_until < now
            if job.owner is not None and (job.owner == owner if owner else lapsed):
                fates[job.new.id] = self._take_away(job, max_rescues)
        self._follow()
        return fates

    def _begin(self, job: ModelJob) -> None:
        """A job that is due comes into the queue."""
        job.status = Status.QUEUED
        job.was_queued = True

    def _stageable(self) -> list[ModelJob]:
        """The jobs that wait for nothing but their time."""
        return [job for job in self.jobs.values() if job.status in _STAGED]

    def _follow(self) -> None:
        """What the ends of jobs mean for others, once a whole call has been gone through."""

    def _take_away(self, job: ModelJob, max_rescues: int) -> Fate:
        started = job.started
        if started:
            job.ended_fences.append(job.fence)
        job.fence += 1
        if job.cancel_requested:
            self._end(job, Status.CANCELLED)
            return Fate.CANCELLED
        job.rescues += started
        if started and job.rescues >= max_rescues:
            self._end(job, Status.DEAD_LETTER)
            return Fate.DEAD
        self._let_go(job, Status.QUEUED)
        return Fate.RESCUED if started else Fate.UNTOUCHED

    def _apply(self, job: ModelJob, settlement: Settlement, now: int) -> None:
        match settlement:
            case Completed():
                job.attempts += 1
                job.cancel_requested = False
                job.result = settlement.result
                self._end(job, Status.COMPLETED)
            case Failed():
                job.attempts += settlement.spends_attempt
                job.snoozes += not settlement.spends_attempt
                self._wait(job, Status.FAILED, now + settlement.retry_in_ms)
            case Snoozed():
                job.snoozes += 1
                self._wait(job, Status.PENDING, now + settlement.delay_ms)
            case Cancelled():
                self._end(job, Status.CANCELLED)
            case Buried():
                job.attempts += 1
                self._end(job, Status.DEAD_LETTER)
            case Crashed() if job.rescues + 1 >= MAX_RESCUES:
                job.rescues += 1
                self._end(job, Status.DEAD_LETTER)
            case _:
                job.rescues += isinstance(settlement, Crashed)
                job.fence += 1
                self._let_go(job, Status.QUEUED)

    def _wait(self, job: ModelJob, status: Status, until: int) -> None:
        job.scheduled_at = until
        self._let_go(job, status)

    def _end(self, job: ModelJob, status: Status) -> None:
        self._let_go(job, status)
        self._release(job, _RELEASED_AT_END)

    def _let_go(self, job: ModelJob, status: Status) -> None:
        job.status = status
        job.owner = job.lease_until = None
        job.started = False

    def _take_key(self, new: NewJob, scope: KeyScope, now: int) -> None:
        assert new.key is not None
        expires_at = now + (new.key_window_ms or 0) if scope is KeyScope.WINDOW else None
        self.keys[new.tenant_id, new.type, new.key] = Key(new.id, scope, expires_at)

    def _release(self, job: ModelJob, scopes: tuple[KeyScope, ...]) -> None:
        name = (job.new.tenant_id, job.new.type, job.new.key or "")
        held = self.keys.get(name)
        if held is not None and held.job_id == job.new.id and held.scope in scopes:
            del self.keys[name]
