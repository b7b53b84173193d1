"""The life of a job, for producers and workers, and of the leases it is run under."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from penstock.model.controls import LimitName
from penstock.model.dependency import Edge
from penstock.model.job import Enqueued, Lease, NewJob
from penstock.model.outcome import Settlement


class Claim(Struct, frozen=True, kw_only=True):
    """What a worker asks for: up to `limit` jobs, of which it starts `start` at once.

    The rest are prefetched: leased, but marked as not started, so that a rescue gives them back
    untouched (unless that has happened to a job three times already: then it counts as started at
    once, or a crash before its mark is written could repeat for ever). Only jobs of the named
    `types` are handed out, whatever else waits. `owner` begins with its host's name and a colon.
    Under a limit on concurrency it takes up to `ahead` leases in advance for each slot it has. Of
    the types in `at_most`, no more than so many are leased.
    """

    owner: str
    types: Collection[str]
    limit: int
    start: int
    lease_ms: int
    queues: Collection[str] | None = None
    max_priority: int | None = None
    type_lease_ms: Mapping[str, int] = {}
    ahead: float = 0
    at_most: Mapping[str, int] = {}

    def most(self, type_: str) -> int:
        """How many jobs of a type may be leased."""
        return min(self.limit, self.at_most.get(type_, self.limit))


Slots = dict[LimitName, int]
"""For each limit on concurrency: how many jobs under it one worker may run at once."""


class Claimed(Struct, frozen=True):
    """The leases granted, tenants in turn and each tenant's most urgent first.

    `next_due_in_ms` is when to ask again: a job falls due, a rate or a breaker lets more through.
    Of the leases under a limit the worker runs no more at once than its `slots` say, so that it
    can go on with prefetched ones without asking. Not `whole` is the answer of a look that went
    only where jobs were seen before: others may wait, and are found when it is time to ask again.
    """

    leases: list[Lease]
    next_due_in_ms: int | None
    slots: Slots = {}
    whole: bool = True


class Report(Struct, frozen=True, kw_only=True):
    """What a running execution tells meanwhile: progress, a checkpoint, log lines."""

    id: str
    fence: int
    progress_percent: float | None = None
    progress_message: str | None = None
    progress: str | None = None
    checkpoint: str | None = None
    logs: Sequence[tuple[int, str, str]] = ()


class JobStore(Protocol):
    """Enqueue, claim, settle, and what an operator may do to a job."""

    async def enqueue(
        self, jobs: Sequence[NewJob], *, connection: object | None = None
    ) -> list[Enqueued]:
        """Insert all jobs or none; a known id or a taken key answers with the job that has it.

        A job waits for its edges' parents, which may be in the same call. One that is not in the
        store and a cycle refuse the whole call. A parent that has ended counts at once. Jobs of
        one tenant with the same `order_key` run one at a time, in the order they fell due.
        """
        ...

    def enqueue_now(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Do the same as `enqueue` in the calling thread, which has no event loop."""
        ...

    async def depend(self, child_id: str, edges: Sequence[Edge]) -> None:
        """Have a job that was never queued wait for more parents; refused like an enqueue."""
        ...

    async def depth(self, queue: str, up_to: int) -> int:
        """How many jobs are queued there, counted no further than asked."""
        ...

    async def claim(self, claim: Claim) -> Claimed:
        """Stage a few due jobs, then lease the most urgent ones; each lease has a new fence.

        Nothing is leased that is paused, over a limit or behind an open breaker; a half-open one
        lets a single job through, its probe. What a rate admits starts at once.
        """
        ...

    async def start(self, owner: str, leases: Sequence[tuple[str, int]]) -> None:
        """Mark prefetched leases as started."""
        ...

    async def settle(self, owner: str, settlements: Sequence[Settlement]) -> list[str]:
        """End leases; returns the ids whose fence was stale, on which nothing was written.

        The end of a job closes the edges to it, in the same transaction: children are released,
        or end as their edge says, and so on down. Breakers hear how the executions ended. Sending
        a settlement again because its answer was lost is not stale, and changes nothing.
        """
        ...

    async def report(self, owner: str, reports: Sequence[Report]) -> list[str]:
        """Write progress, checkpoints and logs; returns the ids whose fence was stale."""
        ...

    async def cancel(self, ids: Sequence[str], reason: str) -> dict[str, str]:
        """Cancel waiting jobs, ask running ones to stop; ids to their status afterwards.

        An unknown id refuses the whole call. Children of cancelled jobs fare as with a settle.
        """
        ...

    async def requeue(
        self, ids: Sequence[str], *, spread_ms: float = 0, delay_ms: float = 0
    ) -> list[str]:
        """Give cancelled and dead jobs a fresh budget, all of them or none; fences count on.

        The first falls due after `delay_ms`, and each other `spread_ms` after the one before.
        Dependents that ended because of such a job wait for it again, where their edge says so.
        """
        ...

    async def amend(self, job_id: str, payload: str) -> None:
        """Give a cancelled or dead job other arguments, for its next requeue; others refuse."""
        ...


class Held(Struct, frozen=True):
    """A lease a worker still works under, and how long it wants it from now."""

    id: str
    fence: int
    lease_ms: int


class Renewal(Struct, frozen=True):
    """Which leases were lost, and which running jobs an operator asked to stop."""

    lost: list[str]
    cancelled: list[str]


class Leases(Protocol):
    """Renewal and cancellation requests, safe to call from any thread."""

    def renew(
        self,
        owner: str,
        held: Sequence[Held],
        *,
        unheard_ms: int | None = None,
        given_up: Collection[str] = (),
    ) -> Renewal:
        """Extend what the owner still holds.

        With `unheard_ms`, also every other lease the owner has, but for those it has given up: a
        claim may have granted it while its event loop was blocked and could not hear of it.
        """
        ...

    def held(self, owner: str) -> list[str]:
        """The ids of all jobs the owner has leased, whether it knows of them or not."""
        ...

    def cancel_requests(self, owner: str) -> list[str]:
        """The owner's running jobs that somebody asked to stop."""
        ...


class Inbox(Protocol):
    """Takes jobs from the outbox of a database that cannot share a commit with this store."""

    async def deliver(self, job: NewJob) -> Enqueued:
        """Insert a job like `enqueue`, unless it was delivered before.

        Its id is remembered until a day after `confirm`, however soon the job is done and pruned.
        """
        ...

    async def confirm(self, ids: Sequence[str]) -> None:
        """Jobs have left the outbox: who read their rows before has a day to deliver them."""
        ...
