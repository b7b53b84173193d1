"""Dead letters: groups, letters, canaries, release, resolve, purge, amend."""

from typing import Annotated, Any, Literal

from fastapi import Path, Query
from pydantic import Field

from penstock.app.arguments import encode
from penstock.model.job import MAX_NOTES
from penstock.model.not_found import JobNotFound
from penstock.operate.dead import MOST_CANARIES, LetterFields
from penstock.operate.documents import dead_document, decoded, document
from penstock.server.api.filters import gathered
from penstock.server.api.models import Document, Job, JobId, Moment, PageSize, Word, job_documents
from penstock.server.api.router import api_router
from penstock.server.guard import MayOperate, MayRead
from penstock.server.state import Here
from penstock.store import contract
from penstock.store.contract import Resolution

router = api_router("/api/dead-letters", "dead letters")

MAX_REFUSED_SHOWN = 100
Group = Annotated[str, Path(description="A group's short id, or an unmistakable beginning of it.")]


class DeadGroup(Document):
    """Dead letters of one type that died of the same error in the same place."""

    id: str
    type: str
    fingerprint: str
    error: str | None
    error_code: str | None
    count: int
    open: int
    first_at: Moment
    last_at: Moment
    newest_id: JobId


class DeadGroups(Document):
    """Some groups, the one with the latest death first, and where to go on."""

    groups: list[DeadGroup]
    next: str | None = Field(description="Pass it as `before` for the next page.")


class DeadLetter(Document):
    """What is kept of a job that could not be done."""

    job_id: JobId
    group: str
    type: str
    queue: str
    tenant_id: str
    reason: str
    error: str | None
    error_code: str | None
    fingerprint: str
    attempts: int
    rescues: int
    resolution: Resolution
    notes: str | None
    resolved_by: str | None
    resolved_at: Moment | None
    created_at: Moment
    canary_of: str | None


class DeadLetterPage(Document):
    """Some dead letters, newest first, and where to go on."""

    letters: list[DeadLetter]
    next: str | None = Field(description="Pass it as `before` for the next page.")


class DeadLetterDetail(DeadLetter):
    """A dead letter with the job as it died, its executions and where its code broke."""

    snapshot: Any
    executions: Any
    stack: str | None
    amended: Any = Field(description="The arguments it has now, if it did not die with them.")
    alike: DeadGroup


class Canaries(Document):
    """How the jobs replayed ahead of their group have fared."""

    completed: list[JobId]
    failed: list[JobId]
    unfinished: list[JobId]


class NewReplay(Document):
    """How many of a group to try."""

    canary: int = Field(5, ge=1, le=MOST_CANARIES, examples=[5])


class Requeued(Document):
    """The jobs that run again, and why others do not."""

    done: list[JobId]
    refused: dict[str, str] = Field(description="Ids and sentences, a hundred at most.")


class NewRelease(Document):
    """How fast to run the rest of a group again."""

    rate: str | None = Field("10/s", max_length=40, examples=["100/min"])
    force: bool = Field(False, description="Even if canaries have failed or have not ended.")


class NewResolution(Document):
    """Where a person stands with dead letters."""

    resolution: Resolution = Resolution.RESOLVED
    notes: str | None = Field(None, max_length=MAX_NOTES, examples=["The address was wrong."])


class Resolved(Document):
    """The jobs whose dead letters were marked so."""

    resolution: Resolution
    ids: list[JobId]


class Purged(Document):
    """How many dead letters were deleted for good, with their jobs."""

    purged: int


class PurgeFilter(Document):
    """Which dead letters to delete for good; all parts have to fit, and one has to be given."""

    group: str | None = Field(None, max_length=64)
    type: Word | None = None
    tenant: Word | None = None
    resolution: Literal["open", "pending", "investigating", "resolved", "ignored", "any"] | None = (
        None
    )
    older_than: float | None = Field(
        None, ge=0, lt=1e10, description="Seconds since the job died.", examples=[2_592_000]
    )
    dry_run: bool = Field(False, description="Only count them.")


class PurgedByFilter(Document):
    """How many dead letters a filter found, and how many were deleted, with their jobs."""

    matched: int
    purged: int


class NewArguments(Document):
    """Other arguments for a dead job: some of them by name, or all of them."""

    arguments: dict[str, Any] | None = Field(
        None, description="Those to change.", examples=[{"to": "ann@example.com"}]
    )
    payload: dict[str, Any] | None = Field(None, description="All of them.")
    requeue: bool = Field(False, description="Run the job again at once.")


@router.get("", operation_id="list_dead_letters")
async def list_dead_letters(
    server: Here,
    caller: MayRead,
    group: Annotated[str | None, Query(max_length=64)] = None,
    type: Word | None = None,  # noqa: A002 - the field's name
    tenant: Word | None = None,
    resolution: Annotated[
        Literal["open", "pending", "investigating", "resolved", "ignored"] | None,
        Query(description="`open` is pending or investigating."),
    ] = None,
    before: JobId | None = None,
    limit: PageSize = 50,
) -> DeadLetterPage:
    """A page of dead letters, newest first; of a group, a type, or all."""
    dead = server.operator(caller).dead

    async def step(place: str | None, rows: int) -> tuple[list[contract.DeadLetter], str | None]:
        part = await dead.find(
            group=group,
            type_name=type,
            tenant=tenant,
            resolution=resolution,
            before=place,
            limit=rows,
        )
        return part, part[-1].job_id if len(part) == rows else None

    found, following = await gathered(step, before, limit, _size)
    letters = [DeadLetter.model_construct(**_letter(each)) for each in found]
    return DeadLetterPage.model_construct(letters=letters, next=following)


@router.post("/purge", operation_id="purge_dead_letters")
async def purge_dead_letters(
    server: Here, caller: MayOperate, which: PurgeFilter
) -> PurgedByFilter:
    """Delete the letters that a filter finds for good, with their jobs, or count them.

    A job that was requeued, and has not ended since, is left alone.
    """
    dead = server.operator(caller).dead
    where = LetterFields(
        type_name=which.type,
        group=which.group,
        tenant=which.tenant,
        resolution=which.resolution,
        older_than=which.older_than,
    )
    if which.dry_run:
        return PurgedByFilter(matched=await dead.count(**where), purged=0)
    purged = await dead.purge(**where)
    return PurgedByFilter(matched=purged, purged=purged)


@router.get("/groups", operation_id="list_dead_groups")
async def list_dead_groups(
    server: Here,
    caller: MayRead,
    type: Word | None = None,  # noqa: A002 - the field's name
    closed: Annotated[bool, Query(description="Also those with no open letter.")] = False,
    before: JobId | None = None,
    limit: PageSize = 50,
) -> DeadGroups:
    """What died of the same error in the same place, the latest death first."""
    dead = server.operator(caller).dead
    found = await dead.groups(type, closed=closed, before=before, limit=limit)
    following = found[-1].newest_id if len(found) == limit else None
    return DeadGroups.model_construct(groups=[_group(each) for each in found], next=following)


@router.get("/groups/{group}", operation_id="get_dead_group")
async def get_dead_group(server: Here, caller: MayRead, group: Group) -> DeadGroup:
    """One group."""
    return _group(await server.operator(caller).dead.group(group))


@router.get("/groups/{group}/canaries", operation_id="get_canaries")
async def get_canaries(server: Here, caller: MayRead, group: Group) -> Canaries:
    """How the canaries of a group have fared."""
    found = await server.operator(caller).dead.canaries(group)
    return Canaries(completed=found.completed, failed=found.failed, unfinished=found.unfinished)


@router.post("/groups/{group}/replay", operation_id="replay_dead_group")
async def replay_dead_group(
    server: Here, caller: MayOperate, group: Group, new: NewReplay | None = None
) -> Requeued:
    """Run the newest few of a group again, to see whether the cause is gone."""
    wanted = new or NewReplay.model_validate({})
    found = await server.operator(caller).dead.replay(group, wanted.canary)
    return _requeued([handle.id for handle in found.handles], found.refused)


@router.post("/groups/{group}/release", operation_id="release_dead_group")
async def release_dead_group(
    server: Here, caller: MayOperate, group: Group, new: NewRelease | None = None
) -> Requeued:
    """Run the rest of a group again at a rate, the oldest first, once its canaries completed."""
    wanted = new or NewRelease.model_validate({})
    found = await server.operator(caller).dead.release(group, wanted.rate, force=wanted.force)
    return _requeued(found.done, found.refused)


@router.post("/groups/{group}/resolve", operation_id="resolve_dead_group")
async def resolve_dead_group(
    server: Here, caller: MayOperate, group: Group, new: NewResolution
) -> Resolved:
    """Record where you stand with the open ones of a group."""
    dead = server.operator(caller).dead
    found = (await dead.group(group)).id
    ids = await dead.resolve(found, new.resolution, notes=new.notes)
    return Resolved.model_construct(resolution=new.resolution, ids=ids)


@router.delete("/groups/{group}", operation_id="purge_dead_group")
async def purge_dead_group(server: Here, caller: MayOperate, group: Group) -> Purged:
    """Delete the open ones of a group for good, with their jobs."""
    dead = server.operator(caller).dead
    return Purged(purged=await dead.purge((await dead.group(group)).id))


@router.get("/{job_id}", operation_id="get_dead_letter")
async def get_dead_letter(server: Here, caller: MayRead, job_id: str) -> DeadLetterDetail:
    """One dead letter, with everything known of how it died."""
    found = await server.operator(caller).dead.show(job_id)
    return DeadLetterDetail.model_construct(
        **_letter(found.letter),
        **{name: dead_document(found.letter)[name] for name in ("snapshot", "executions")},
        stack=found.stack,
        amended=decoded(found.amended),
        alike=_group(found.group),
    )


@router.post("/{job_id}/resolve", operation_id="resolve_dead_letter")
async def resolve_dead_letter(
    server: Here, caller: MayOperate, job_id: str, new: NewResolution
) -> Resolved:
    """Record where you stand with one of them."""
    dead = server.operator(caller).dead
    await dead.show(job_id)
    ids = await dead.resolve([job_id], new.resolution, notes=new.notes)
    return Resolved.model_construct(resolution=new.resolution, ids=ids)


@router.post("/{job_id}/amend", operation_id="amend_dead_letter")
async def amend_dead_letter(
    server: Here, caller: MayOperate, job_id: str, new: NewArguments
) -> Job:
    """Correct arguments of a dead job, checked against its type."""
    job = await server.operator(caller).dead.amend(
        job_id,
        new.arguments,
        payload=None if new.payload is None else encode(new.payload),
        requeue=new.requeue,
    )
    return job_documents([job])[0]


@router.delete("/{job_id}", operation_id="purge_dead_letter")
async def purge_dead_letter(server: Here, caller: MayOperate, job_id: str) -> Purged:
    """Delete a dead letter for good, with its job."""
    dead = server.operator(caller).dead
    await dead.show(job_id)
    purged = await dead.purge(job_id)
    if not purged:
        raise JobNotFound(job_id)
    return Purged(purged=purged)


def _size(letter: contract.DeadLetter) -> int:
    return len(letter.snapshot) + len(letter.executions)


def _letter(letter: contract.DeadLetter) -> dict[str, Any]:
    opened = document(letter) | {"group": letter.group}
    return {name: opened[name] for name in DeadLetter.model_fields}


def _group(group: contract.DeadGroup) -> DeadGroup:
    opened: dict[str, Any] = document(group)
    return DeadGroup.model_construct(id=group.id, **opened)


def _requeued(done: list[str], refused: dict[str, str]) -> Requeued:
    shown = dict(list(refused.items())[:MAX_REFUSED_SHOWN])
    return Requeued.model_construct(done=done, refused=shown)
