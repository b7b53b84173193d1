"""What was seen of each job so far, and the promises that hold over all of it."""

from collections import Counter
from collections.abc import Iterable, Sequence

from penstock.model.job import Job, JobChange, KeyScope, Lease
from penstock.model.states import ALLOWED, TRANSITIONS, Status


class History:
    """Compares every look at the store with all looks before it."""

    def __init__(self) -> None:
        self._seen: dict[str, Job] = {}
        self._granted: set[tuple[str, int]] = set()
        self._endings: Counter[str] = Counter()
        self._requeues: Counter[str] = Counter()
        self._told: dict[str, tuple[Status, int]] = {}
        self._changes = 0

    def grant(self, lease: Lease) -> None:
        """One (job, fence) pair is granted at most once, and above every fence seen before."""
        pair = (lease.id, lease.fence)
        assert pair not in self._granted, f"the lease {pair} was granted a second time"
        seen = self._seen.get(lease.id)
        assert seen is None or lease.fence > seen.fence, f"{pair} is not above {seen}"
        self._granted.add(pair)

    def requeued(self, job_id: str) -> None:
        """A new cycle of life begins."""
        self._requeues[job_id] += 1

    def see(self, jobs: Sequence[Job], actions: Iterable[str]) -> None:
        """Look at all jobs after a call that may have taken these actions."""
        assert len({job.id for job in jobs}) == len(jobs), "an id is stored twice"
        for job in jobs:
            self._check_step(job, frozenset(actions))
            self._check_lease(job)
            self._seen[job.id] = job
        assert len(jobs) == len(self._seen), "a job vanished"
        keys = Counter((job.tenant_id, job.type, job.key) for job in jobs if self._excludes(job))
        assert all(count == 1 for count in keys.values()), f"a key has two holders: {keys}"

    def hear(self, changes: Sequence[JobChange]) -> None:
        """A follower that confirms nothing was told of every step of every job, once."""
        for change in changes[self._changes :]:
            before, fence = self._told.get(change.job_id, (None, 0))
            fresh = before is None and change.status in (Status.PENDING, Status.QUEUED)
            assert fresh or (before, change.status) in ALLOWED, f"{change} after {before}"
            assert change.fence >= fence, f"{change} after the fence {fence}"
            self._told[change.job_id] = change.status, change.fence
        self._changes = len(changes)
        assert self._told == {job.id: (job.status, job.fence) for job in self._seen.values()}

    def _check_step(self, job: Job, actions: frozenset[str]) -> None:
        seen = self._seen.get(job.id)
        if seen is None:
            fresh = {Status.PENDING, Status.QUEUED} | _reachable(Status.PENDING, actions)
            assert job.status in fresh, f"{job.id} began as {job.status}"
            self._endings[job.id] += job.status.terminal
            return
        assert job.fence >= seen.fence, f"the fence of {job.id} went back to {job.fence}"
        if job.status is not seen.status:
            allowed = _reachable(seen.status, actions)
            assert job.status in allowed, f"{job.id} went from {seen.status} to {job.status}"
            self._endings[job.id] += job.status.terminal
        ended, cycles = self._endings[job.id], self._requeues[job.id]
        assert ended == cycles + job.status.terminal, f"{job.id} ended {ended} times"

    def _excludes(self, job: Job) -> bool:
        """Whether this job's key must keep every other out (a window is left to the model)."""
        if job.key_scope is KeyScope.WHILE_PENDING:
            fresh = job.fence == 0 and self._requeues[job.id] == 0
            return fresh and not job.status.terminal
        alive = job.key_scope is KeyScope.UNTIL_DONE and not job.status.terminal
        return alive or job.key_scope is KeyScope.FOREVER

    def _check_lease(self, job: Job) -> None:
        running = job.status is Status.IN_PROGRESS
        assert running == (job.lease_owner is not None), f"{job.id}: owner {job.lease_owner}"
        assert running == (job.lease_until is not None), f"{job.id}: until {job.lease_until}"
        pair = (job.id, job.fence)
        assert not running or pair in self._granted, f"nobody was granted the lease {pair}"


def _reachable(source: Status, actions: frozenset[str]) -> set[Status]:
    """Where these actions may lead within one call: a claim stages before it leases."""
    found: set[Status] = set()
    edge = {source}
    while edge:
        edge = {t.target for t in TRANSITIONS if t.source in edge and t.action in actions} - found
        found |= edge
    return found
