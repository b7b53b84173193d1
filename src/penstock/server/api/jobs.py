"""Jobs: enqueue, list, look at, cancel, pause, resume, requeue, one or many at a time."""

from typing import Annotated, Any

from fastapi import Header, Query, Request
from msgspec import convert
from msgspec.structs import replace
from pydantic import ConfigDict, Field
from starlette.responses import Response

from penstock.app.handle import JobHandle
from penstock.model import job as model
from penstock.model.job import MAX_BATCH
from penstock.model.options import MAX_TEXT
from penstock.operate.documents import document
from penstock.operate.jobs import MOST, BulkAction
from penstock.server.api.calls import Call, CallEdge, Drafts, edges_in, read_calls
from penstock.server.api.filters import JobSelection, JobsQuery, gathered
from penstock.server.api.models import (
    Document,
    Enqueued,
    Explanation,
    Job,
    JobDetail,
    JobId,
    JobPage,
    NewEdge,
    Why,
    edge_documents,
    execution_documents,
    explanation_document,
    job_documents,
    log_documents,
)
from penstock.server.api.router import api_router, encoded
from penstock.server.guard import MayEnqueue, MayOperate, MayRead
from penstock.server.problems import Refusal
from penstock.server.state import Here

router = api_router("/api/jobs", "jobs")


class NewBulk(Document):
    """What to do, and to which jobs."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"action": "cancel", "filter": {"type": "send_mail"}, "dry_run": True},
            ]
        }
    )

    action: BulkAction
    filter: JobSelection = Field(
        description="Which jobs; at least one word. Jobs in a state that does not allow the "
        "action are left out.",
        json_schema_extra={"minProperties": 1},
    )
    dry_run: bool = Field(False, description="Only count.")
    before: JobId | None = Field(None, description="The `next` of an answer before.")
    limit: int = Field(10_000, ge=1, le=MOST, description="At most so many jobs.")


class BulkDone(Document):
    """How many jobs were found, and what became of them."""

    action: BulkAction
    dry_run: bool
    found: int
    done: int
    refused: int = Field(description="Those that changed meanwhile, so that the action failed.")
    next: str | None = Field(description="Send it as `before` to go on; absent when all is done.")


@router.post("/bulk", operation_id="act_on_jobs")
async def act_on_jobs(server: Here, caller: MayOperate, bulk: NewBulk) -> BulkDone:
    """Cancel, pause, resume or requeue all jobs that fit, the newest first; or count them."""
    if not bulk.filter.model_fields_set:
        raise Refusal(422, "Say which jobs: the filter is empty.", field="filter")
    where = replace(bulk.filter.filter(caller), before=bulk.before)
    jobs = server.operator(caller).jobs
    act = jobs.count if bulk.dry_run else jobs.act
    answer = await act(bulk.action, where, bulk.limit)
    return BulkDone(
        action=bulk.action,
        dry_run=bulk.dry_run,
        found=answer.found,
        done=answer.done,
        refused=answer.refused,
        next=answer.before,
    )


EXECUTIONS_SHOWN = 100
EDGES_SHOWN = 100
LOGS_SHOWN = 1_000
BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "anyOf": [
                        {"$ref": "#/components/schemas/NewJob"},
                        {
                            "type": "array",
                            "items": {"$ref": "#/components/schemas/NewJob"},
                            "minItems": 1,
                            "maxItems": MAX_BATCH,
                        },
                    ]
                }
            }
        },
    }
}

Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=MAX_TEXT,
        description="The same as the field `key`, for a single job.",
    ),
]


class NewDependencies(Document):
    """What else a job is to wait for."""

    after: list[JobId | NewEdge] = Field(
        min_length=1, max_length=1000, examples=[["01JD3Z6K3V9M0Q2T4W6Y8A0C2E"]]
    )


@router.post(
    "",
    status_code=201,
    operation_id="enqueue",
    response_model=Enqueued | list[Enqueued],
    openapi_extra=BODY,
)
async def enqueue(
    request: Request, server: Here, caller: MayEnqueue, idempotency_key: Key = None
) -> Response:
    """Enqueue one job, or all of a list or none; durable once answered."""
    body = await request.body()
    read = await server.reading.of(len(body), lambda: read_calls(body))
    calls = [read] if isinstance(read, Call) else read
    if idempotency_key is not None:
        calls = [_keyed(read, idempotency_key)]
    drafts = Drafts(server.operator(caller), server.reading)
    prepared = await drafts.prepared(calls, len(body))
    handles = await server.app.enqueue_many(prepared, wait=False)
    answers = [_enqueued(handle) for handle in handles]
    return encoded(answers[0] if isinstance(read, Call) else answers, 201)


@router.get("", operation_id="list_jobs")
async def list_jobs(server: Here, caller: MayRead, query: Annotated[JobsQuery, Query()]) -> JobPage:
    """A page of jobs, newest first; or some by their ids."""
    if query.id and not query.names_jobs:
        raise Refusal(422, "Ask for jobs by their ids or by other words, not both.", field="id")
    where = query.filter(caller)

    async def step(before: str | None, limit: int) -> tuple[list[model.Job], str | None]:
        wanted = replace(where, before=before, limit=limit)
        found = await server.app.store.reader.search(wanted)
        return found.jobs, found.before

    async def named(before: str | None, limit: int) -> tuple[list[model.Job], str | None]:
        first = query.id.index(before) + 1 if before in query.id else 0
        ids = query.id[first : first + limit]
        rest = len(query.id) > first + limit
        return await server.operator(caller).jobs.known(ids), ids[-1] if rest else None

    jobs, following = await gathered(named if query.id else step, where.before, where.limit, _size)
    return JobPage.model_construct(jobs=job_documents(jobs), next=following)


@router.get("/{job_id}", operation_id="get_job")
async def get_job(server: Here, caller: MayRead, job_id: str) -> JobDetail:
    """One job as it stands, with its executions, dependencies and log."""
    jobs, reader = server.operator(caller).jobs, server.app.store.reader
    job = await jobs.get(job_id)
    edges = await jobs.dependencies(job_id, EDGES_SHOWN)
    executions = await reader.executions(job_id)
    return JobDetail.model_construct(
        **document(job),
        executions=execution_documents(executions[-EXECUTIONS_SHOWN:]),
        parents=edge_documents(edges.parents),
        children=edge_documents(edges.children),
        logs=log_documents(await reader.logs(job_id, LOGS_SHOWN)),
    )


@router.get("/{job_id}/explain", operation_id="explain_job")
async def explain_job(server: Here, caller: MayRead, job_id: str) -> Explanation:
    """Return every reason why a job does, or does not, run now, the most important first."""
    return explanation_document(await server.operator(caller).jobs.explain(job_id))


@router.post("/{job_id}/cancel", operation_id="cancel_job")
async def cancel_job(server: Here, caller: MayOperate, job_id: str, why: Why | None = None) -> Job:
    """Cancel a waiting job, or ask a running one to stop."""
    jobs = server.operator(caller).jobs
    await jobs.cancel(job_id, None if why is None else why.reason)
    return job_documents([await jobs.get(job_id)])[0]


@router.post("/{job_id}/pause", operation_id="pause_job")
async def pause_job(server: Here, caller: MayOperate, job_id: str, why: Why | None = None) -> Job:
    """Hold a waiting job back."""
    operator = server.operator(caller)
    await operator.controls.pause(job=job_id, reason=None if why is None else why.reason)
    return job_documents([await operator.jobs.get(job_id)])[0]


@router.post("/{job_id}/resume", operation_id="resume_job")
async def resume_job(server: Here, caller: MayOperate, job_id: str) -> Job:
    """Let a paused job go on, with its own time and order."""
    operator = server.operator(caller)
    await operator.controls.resume(job=job_id)
    return job_documents([await operator.jobs.get(job_id)])[0]


@router.post("/{job_id}/dependencies", operation_id="add_dependencies")
async def add_dependencies(
    server: Here, caller: MayOperate, job_id: str, more: NewDependencies
) -> Job:
    """Have a job that has not been queued yet wait for more jobs, all of them or none."""
    edges = edges_in([_entry(each) for each in more.after])
    return job_documents([await server.operator(caller).jobs.add_dependency(job_id, edges)])[0]


@router.post("/{job_id}/requeue", operation_id="requeue_job")
async def requeue_job(server: Here, caller: MayOperate, job_id: str) -> Job:
    """Run a cancelled or dead job again, with a fresh retry budget."""
    return job_documents([await server.operator(caller).jobs.requeue(job_id)])[0]


@router.post("/{job_id}/run-again", status_code=201, operation_id="run_job_again")
async def run_job_again(server: Here, caller: MayOperate, job_id: str) -> Job:
    """Enqueue a new job with the call of a finished one, which is named as its parent.

    Jobs that came after it in a flow are not repeated.
    """
    return job_documents([await server.operator(caller).jobs.run_again(job_id)])[0]


def _entry(given: str | NewEdge) -> str | CallEdge:
    return given if isinstance(given, str) else convert(given.model_dump(), CallEdge)


def _size(job: model.Job) -> int:
    return sum(len(text or "") for text in (job.payload, job.result, job.checkpoint, job.metadata))


def _keyed(read: Call | list[Call], key: str) -> Call:
    if not isinstance(read, Call):
        raise Refusal(422, "A key belongs to one job; give each its own.", field="Idempotency-Key")
    return replace(read, key=key)


def _enqueued(handle: JobHandle[Any]) -> dict[str, Any]:
    return {
        "id": handle.id,
        "created": handle.created,
        "estimated_start": handle.estimated_start,
    }
