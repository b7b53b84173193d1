"""Questions about jobs. Answers may lag a write by the length of one transaction."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any, Protocol

from msgspec import DecodeError, Struct
from msgspec.json import decode
from msgspec.structs import replace

from penstock.model.controls import BreakerState, LimitState, Pause
from penstock.model.dependency import Edge, Outcome
from penstock.model.job import Job
from penstock.model.states import Status
from penstock.store.contract.upkeep import WorkerInfo

Condition = tuple[list[str], Any]
"""The steps of a path, and the value expected there."""


def conditions_of(payload: Sequence[tuple[str, str]]) -> list[Condition]:
    """Dotted paths and JSON texts, taken apart."""
    return [(path.split("."), decode(value)) for path, value in payload]


def holds(payload: str | bytes, conditions: Sequence[Condition]) -> bool:
    """Whether all values are where they are expected; never in what is no JSON."""
    if not conditions:
        return True
    try:
        document = decode(payload)
    except (DecodeError, UnicodeDecodeError):
        return False
    return all(_found(document, path, value) for path, value in conditions)


def _found(document: Any, path: Sequence[str], expected: Any) -> bool:
    for step in path:
        if isinstance(document, dict) and step in document:
            document = document[step]
        elif isinstance(document, list) and _is_place(step, document):
            document = document[int(step)]
        else:
            return False
    return _same(document, expected)


def _is_place(step: str, among: Sequence[Any]) -> bool:
    return step.isascii() and step.isdigit() and int(step) < len(among)


def _same(one: Any, other: Any) -> bool:
    """As JSON has it: a number is the same however it is spelled, and true is no number."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[k], other[k]) for k in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def spellings(text: str) -> list[str]:
    """A text as it may be written; stores fold the case of ASCII by themselves, and no other."""
    small = text.lower()
    found = (text, small, text.upper(), small.title())
    return list({_ascii_lower(each): each for each in found}.values())


def _ascii_lower(text: str) -> str:
    return text.encode().lower().decode()


PARENTS_SHOWN = 100


class Execution(Struct, frozen=True, kw_only=True):
    """One execution of a job; `status` is how it ended (running while it has not)."""

    job_id: str
    fence: int
    status: str
    started_at: int
    ended_at: int | None
    duration_ms: int | None
    wait_ms: int | None
    result: str | None
    error: str | None
    error_class: str | None
    error_code: str | None
    error_stack: str | None
    worker: str | None
    node: str | None
    memory_kb: int | None
    cpu_ms: int | None

    @classmethod
    def running(
        cls,
        job_id: str,
        fence: int,
        started_at: int,
        owner: str | None,
        queued_at: int,
        *,
        now: int,
    ) -> "Execution":
        """One that has not ended, of which only the lease is known."""
        return cls(
            job_id=job_id,
            fence=fence,
            status="running",
            started_at=started_at,
            ended_at=None,
            duration_ms=now - started_at,
            wait_ms=started_at - queued_at,
            result=None,
            error=None,
            error_class=None,
            error_code=None,
            error_stack=None,
            worker=owner,
            node=node_of(owner),
            memory_kb=None,
            cpu_ms=None,
        )


def node_of(owner: str | None) -> str | None:
    """The host in the name of a lease's owner."""
    return None if owner is None else owner.partition(":")[0]


class LogLine(Struct, frozen=True):
    """A line a handler wrote about its job."""

    at: int
    fence: int
    level: str
    message: str


class JobFilter(Struct, frozen=True, kw_only=True):
    """Which jobs to list, newest first; `before` is the id to continue after.

    No `statuses` are all of them. `lease_owner` is the worker that runs a job now.
    `since` and `until` (not included) are about the time a job was made, in UTC milliseconds.
    `payload` holds dotted paths into the arguments and the JSON text of the value expected there;
    `text` is looked for in the id, type, key, error and payload, whatever the case of ASCII; other
    letters are looked for as written, small, in capitals, and with each word in a capital.
    """

    statuses: tuple[Status, ...] = ()
    type: str | None = None
    queue: str | None = None
    category: str | None = None
    tenant_id: str | None = None
    workspace_id: str | None = None
    created_by: str | None = None
    tag: str | None = None
    parent_job_id: str | None = None
    schedule_id: str | None = None
    lease_owner: str | None = None
    since: int | None = None
    until: int | None = None
    payload: tuple[tuple[str, str], ...] = ()
    text: str | None = None
    before: str | None = None
    limit: int = 50

    @property
    def states(self) -> tuple[Status, ...]:
        """The states that such a job can have; none are all of them."""
        under_lease = () if self.lease_owner is None else (Status.IN_PROGRESS,)
        return self.statuses or under_lease


class Found(Struct, frozen=True):
    """A page of jobs, and the id to continue after; none when there are no more.

    A page may hold fewer jobs than asked for, even none, and still not be the last: a look
    through many jobs is made in pieces, so that none of them takes long.
    """

    jobs: list[Job]
    before: str | None


class FoundIds(Struct, frozen=True):
    """The same, of the ids alone."""

    ids: list[str]
    before: str | None


class Dependency(Struct, frozen=True, kw_only=True):
    """An edge as it stands: between which jobs, and how it was closed, if it was."""

    child_id: str
    edge: Edge
    parent_type: str | None
    parent_status: Status | None
    child_type: str | None
    child_status: Status | None
    outcome: Outcome | None
    closed_at: int | None


class Dependencies(Struct, frozen=True):
    """What a job waits, or waited, for, and what waits for it."""

    parents: list[Dependency]
    children: list[Dependency]


class Standing(Struct, frozen=True, kw_only=True):
    """All a store knows about why a job does, or does not, run: one look, for `explain`.

    `pauses`, `limits` and `breakers` are those that concern the job; a breaker's probe is named
    only while it runs. `waits_for` are the open edges, a hundred at most. `ahead` counts the jobs
    of its own lane that go first and `tenants` the other tenants with jobs queued in its queue,
    both counted up to a thousand. `key_holder` is the other job that a requeue would meet.
    """

    now: int
    job: Job
    waits_for: list[Dependency]
    pauses: list[Pause]
    limits: list[LimitState]
    breakers: list[BreakerState]
    workers: list[WorkerInfo]
    ahead: int
    tenants: int
    key_holder: str | None


class JobReader(Protocol):
    """Look things up."""

    async def get(self, ids: Sequence[str]) -> list[Job]:
        """The jobs that exist, in the order asked."""
        ...

    async def find(self, where: JobFilter) -> list[Job]:
        """As many jobs as were asked for, or all there are, newest first; it may look at all."""
        ...

    async def search(self, where: JobFilter) -> Found:
        """A page of jobs, newest first, in bounded time however many jobs there are."""
        ...

    async def search_ids(self, where: JobFilter) -> FoundIds:
        """The ids of such a page; up to 10,000 at once."""
        ...

    async def running(self, limit: int = 50) -> list[Job]:
        """Jobs under a lease, the longest running first."""
        ...

    async def executions(self, job_id: str) -> list[Execution]:
        """A job's executions, oldest first, the running one included."""
        ...

    async def logs(self, job_id: str, limit: int = 1000) -> list[LogLine]:
        """The latest lines its handler kept, oldest first."""
        ...

    async def dependencies(self, job_id: str, limit: int = 1000) -> Dependencies:
        """The edges of a job, up to the limit in each direction, the open ones first."""
        ...

    async def waiting(self, after: str | None = None, limit: int = 1000) -> list[Job]:
        """A page of all jobs that have not ended and do not run, in the order they were made."""
        ...

    async def standing(self, job_id: str) -> Standing | None:
        """All that decides whether a job runs now; none for an unknown id."""
        ...

    def watch(self, ids: Sequence[str]) -> AsyncGenerator[Job, None]:
        """Each job now and whenever it changes, until all of them are terminal."""
        ...


async def find(search: Callable[[JobFilter], Awaitable[Found]], where: JobFilter) -> list[Job]:
    """As many jobs as were asked for, or all there are, newest first."""
    found: list[Job] = []
    before = where.before
    while len(found) < where.limit:
        page = await search(replace(where, before=before, limit=where.limit - len(found)))
        found += page.jobs
        before = page.before
        if before is None:
            break
    return found
