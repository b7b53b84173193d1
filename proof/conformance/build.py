"""Small builders: what the tests of a store say over and over."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeAlias, TypedDict, Unpack

from msgspec import Struct

from penstock.model.dependency import Edge, EdgeKind, OnFailure, OnRequeue
from penstock.model.failure import Failure
from penstock.model.ids import new_id
from penstock.model.job import Job, Lease, NewJob
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
from penstock.model.retry import ErrorClass
from penstock.model.states import Status
from penstock.store.contract import Claim, DeadLetter, Execution, Held, LogLine, Store

OWNER = "host-a:1:first"
OTHER = "host-b:2:second"
LEASE_MS = 60_000
NOBODY = "01JD0000000000000000000000"

BROKEN = Failure(ErrorClass.UNKNOWN, "ValueError", "it broke", "Traceback …", "unknown|ValueError")
DIED = Failure(ErrorClass.POISON, "ProcessDied", "the process died", "", "poison|ProcessDied")

Ending: TypeAlias = Callable[[Lease], Settlement]


class _Facts(TypedDict):
    id: str
    fence: int
    type: str
    queue: str
    started_at: int
    wait_ms: int
    duration_ms: int
    attempts: int
    tenant_id: str


class Picture(Struct, frozen=True):
    """Everything a store shows of one job, for comparing before with after."""

    job: Job
    executions: list[Execution]
    logs: list[LogLine]
    dead: DeadLetter | None


class Options(TypedDict, total=False):
    """What a test may say about a claim; the rest has a default."""

    owner: str
    types: tuple[str, ...]
    limit: int
    start: int
    lease_ms: int
    queues: tuple[str, ...]
    max_priority: int
    type_lease_ms: dict[str, int]
    ahead: float
    at_most: dict[str, int]


def a_job(**fields: Any) -> NewJob:
    """A job of type `work`, with an id of its own."""
    chosen: dict[str, Any] = {"id": new_id(), "type": "work"} | fields
    return NewJob(**chosen)


def a_claim(**options: Unpack[Options]) -> Claim:
    """Ask for up to 100 jobs of type `work`, starting all of them."""
    chosen: Options = {"owner": OWNER, "types": ("work",), "limit": 100, "lease_ms": LEASE_MS}
    chosen.update(options)
    chosen.setdefault("start", chosen["limit"])
    return Claim(**chosen)


async def enqueue(store: Store, **fields: Any) -> str:
    """Enqueue one job; its id."""
    [answer] = await store.jobs.enqueue([a_job(**fields)])
    return answer.id


async def claim_all(store: Store, **options: Unpack[Options]) -> list[Lease]:
    """Claim what there is, wherever it is."""
    claimed = await store.jobs.claim(a_claim(**options))
    while not (claimed.whole or claimed.leases):
        await asyncio.sleep((claimed.next_due_in_ms or 0) / 1000)
        claimed = await store.jobs.claim(a_claim(**options))
    return claimed.leases


async def claim_one(store: Store, **options: Unpack[Options]) -> Lease:
    """Claim, expecting one job."""
    [lease] = await claim_all(store, **options)
    return lease


async def running(store: Store, **fields: Any) -> Lease:
    """Enqueue one job and claim it."""
    job_id = await enqueue(store, **fields)
    leases = await claim_all(store, types=(fields.get("type", "work"),))
    return next(lease for lease in leases if lease.id == job_id)


async def job_of(store: Store, job_id: str) -> Job:
    """The job, which must exist."""
    [job] = await store.reader.get([job_id])
    return job


async def status_of(store: Store, job_id: str) -> Status:
    """The job's status."""
    return (await job_of(store, job_id)).status


async def picture(store: Store, job_id: str) -> Picture:
    """All that is stored about a job."""
    return Picture(
        await job_of(store, job_id),
        await store.reader.executions(job_id),
        await store.reader.logs(job_id),
        await store.dead.get(job_id),
    )


def held(lease: Lease, lease_ms: int = LEASE_MS) -> Held:
    """The lease, to be renewed."""
    return Held(lease.id, lease.fence, lease_ms)


def completed(lease: Lease, result: str = "null", duration_ms: int = 5) -> Completed:
    """The handler returned."""
    return Completed(**_facts(lease, duration_ms), result=result)


def failed(lease: Lease, retry_in_ms: int = 1_000, *, spends_attempt: bool = True) -> Failed:
    """The handler raised, and will be tried again."""
    return Failed(
        **_facts(lease), failure=BROKEN, retry_in_ms=retry_in_ms, spends_attempt=spends_attempt
    )


def snoozed(lease: Lease, delay_ms: int = 1_000) -> Snoozed:
    """The handler asked to come back later."""
    return Snoozed(**_facts(lease), delay_ms=delay_ms, reason="not yet")


def cancelled(lease: Lease, reason: str = "withdrawn") -> Cancelled:
    """The handler cancelled the job."""
    return Cancelled(**_facts(lease), reason=reason)


def buried(lease: Lease) -> Buried:
    """No further attempt."""
    return Buried(**_facts(lease), failure=BROKEN)


def crashed(lease: Lease) -> Crashed:
    """The process died under the job."""
    return Crashed(**_facts(lease), failure=DIED)


def handed_back(lease: Lease, *, started: bool = True) -> HandedBack:
    """The worker shuts down."""
    return HandedBack(**_facts(lease), started=started)


def an_edge(parent_id: str, **fields: Any) -> Edge:
    """Wait for a parent; a `kind`, an `on_failure` and an `on_requeue` may be plain words."""
    chosen: dict[str, Any] = {"parent_id": parent_id} | fields
    for name, word in (("kind", EdgeKind), ("on_failure", OnFailure), ("on_requeue", OnRequeue)):
        if name in chosen:
            chosen[name] = word(chosen[name])
    return Edge(**chosen)


async def enqueue_after(store: Store, *parents: Edge | str, **fields: Any) -> str:
    """Enqueue a job that waits for parents; its id."""
    edges = tuple(an_edge(p) if isinstance(p, str) else p for p in parents)
    return await enqueue(store, after=edges, **fields)


async def end(store: Store, job_id: str, ending: Ending) -> None:
    """Claim one waiting job, whatever its type, and end it."""
    job = await job_of(store, job_id)
    for lease in await claim_all(store, types=(job.type,)):
        made = ending(lease) if lease.id == job_id else handed_back(lease, started=False)
        assert await store.jobs.settle(OWNER, [made]) == []


async def dead_job(store: Store, **fields: Any) -> str:
    """Enqueue a job and bury it; its id."""
    lease = await running(store, **fields)
    assert await store.jobs.settle(OWNER, [buried(lease)]) == []
    return lease.id


def _facts(lease: Lease, duration_ms: int = 5) -> _Facts:
    return {
        "id": lease.id,
        "fence": lease.fence,
        "type": lease.type,
        "queue": lease.queue,
        "started_at": lease.started_at or lease.queued_at,
        "wait_ms": 2,
        "duration_ms": duration_ms,
        "attempts": lease.attempts,
        "tenant_id": lease.tenant_id,
    }
