"""One job: where it stands and why, what it was given, and everything that happened to it."""

from collections.abc import Sequence

from markupsafe import Markup
from msgspec import Struct
from starlette.responses import Response

from penstock.model.dependency import EdgeKind
from penstock.model.failure import fell_with_parent
from penstock.model.job import Job
from penstock.operate.actor import Operator
from penstock.operate.documents import set_options
from penstock.operate.jobs import BulkAction
from penstock.operate.run_again import ran_again_from
from penstock.server.access.identity import Scope
from penstock.server.dashboard.graph import drawing, graph_of
from penstock.server.dashboard.navigation import BY_NAME, offered
from penstock.server.dashboard.request import OperateVisit, ReadVisit, Visit
from penstock.server.dashboard.route import page_router
from penstock.server.problems import Refusal
from penstock.store.contract import Execution, JobFilter

router = page_router()

GRAPH_JOBS = 60
LOGS_SHOWN = 500
CHILDREN_SHOWN = 20
EXECUTIONS_SHOWN = 50
WORDED = {
    *("queue", "priority", "max_retries", "retry_delay", "backoff", "timeout", "at", "key"),
    *("key_scope", "tenant", "created_by", "category", "tags", "metadata"),
}
"""The options that the page has words of its own for."""


@router.get("/jobs/{job_id}")
async def job_page(visit: ReadVisit, job_id: str) -> Response:
    """Everything about a job."""
    job = await visit.operator.jobs.get(job_id)
    reader = visit.server.app.store.reader
    executions = await reader.executions(job.id)
    children = await reader.search(
        JobFilter(parent_job_id=job.id, tenant_id=visit.caller.tenant_id, limit=CHILDREN_SHOWN + 1)
    )
    repeats = [child for child in children.jobs if ran_again_from(child) == job.id]
    family = await visit.operator.jobs.family(job, GRAPH_JOBS)
    graph = graph_of(family) if len(family.jobs) > 1 else None
    logs = await reader.logs(job.id, LOGS_SHOWN)
    runs = runs_of(executions, visit.now)[::-1]
    return await visit.page(
        "job.html",
        "jobs",
        job=job,
        reasons=(await visit.operator.jobs.explain(job.id)).reasons,
        runs=runs[:EXECUTIONS_SHOWN],
        hidden_executions=max(0, len(runs) - EXECUTIONS_SHOWN),
        last_failure=next((run for run in runs if run.execution.error_stack), None),
        numbers={run.execution.fence: run.number for run in runs},
        has_cpu=any(run.cpu_ms is not None for run in executions),
        has_memory=any(run.memory_kb is not None for run in executions),
        workers=await worker_names(visit),
        other_options=set_options(job, but=WORDED),
        documents=_documents(job),
        logs=logs,
        older_logs=len(logs) == LOGS_SHOWN,
        children=[child for child in children.jobs if child not in repeats][:CHILDREN_SHOWN],
        ran_again_as=[child.id for child in repeats],
        ran_again_from=ran_again_from(job),
        more_children=len(children.jobs) > CHILDREN_SHOWN,
        graph=graph,
        picture=None if graph is None else drawing(graph, visit.links.url("jobs")),
        actions=offered(job.status) if visit.caller.may(Scope.OPERATE) else [],
        has_later_steps=any(
            each.edge.parent_id == job.id and each.edge.kind is not EdgeKind.ORDER
            for each in family.edges.values()
        ),
        fell_with_parent=fell_with_parent(job.error_details),
    )


@router.post("/jobs/{job_id}/run-again")
async def run_again(visit: OperateVisit, job_id: str) -> Response:
    """Enqueue a new job with the same call."""
    job = await visit.operator.jobs.run_again(job_id)
    return visit.redirect(f"jobs/{job.id}", "A new job was enqueued from the finished one.")


@router.post("/jobs/{job_id}/{action}")
async def act(visit: OperateVisit, job_id: str, action: str) -> Response:
    """Cancel, pause, resume or requeue it."""
    chosen = BY_NAME.get(action)
    if chosen is None:
        raise Refusal(404, f"There is no action {action!r}; take {', '.join(BY_NAME)}.")
    await _do(visit.operator, chosen.name, job_id)
    job = await visit.operator.jobs.get(job_id)
    text = f"The job is {chosen.done}."
    if action == "cancel" and not job.status.terminal:
        text = "The job was asked to stop."
    return visit.redirect(f"jobs/{job.id}", text)


async def _do(operator: Operator, action: BulkAction, job_id: str) -> None:
    match action:
        case BulkAction.CANCEL:
            await operator.jobs.cancel(job_id)
        case BulkAction.REQUEUE:
            await operator.jobs.requeue(job_id)
        case BulkAction.PAUSE:
            await operator.controls.pause(job=job_id)
        case BulkAction.RESUME:
            await operator.controls.resume(job=job_id)


async def worker_names(visit: Visit) -> dict[str, str]:
    """The names of the workers that are known now, by the owner of their leases."""
    return {each.owner: each.name for each in await visit.server.app.store.workers.list()}


def _documents(job: Job) -> list[tuple[str, str]]:
    named = (
        ("Payload", job.payload),
        ("Result", job.result),
        ("Checkpoint", job.checkpoint),
        ("Metadata", job.metadata),
    )
    return [(name, text) for name, text in named if text is not None]


NARROWEST = 0.7
"""In hundredths of the width: what happened is seen, however short it was."""


class Run(Struct, frozen=True):
    """An execution, which one it is, how its status is called elsewhere, and its part of the scale.

    Fences have gaps: one is spent whenever a lease is taken away.
    """

    execution: Execution
    number: int
    status: str
    bar: Markup


def runs_of(executions: Sequence[Execution], now: int) -> list[Run]:
    """Executions, the oldest first, with bars that can be compared by place and by length."""
    begun = min((_queued_at(run) for run in executions), default=now)
    ended = max((_ended_at(run, now) for run in executions), default=now)
    whole = max(1, ended - begun)
    return [
        Run(run, number, status := _status(run), _bar(run, status, begun, whole, now))
        for number, run in enumerate(executions, 1)
    ]


def _bar(run: Execution, status: str, begun: int, whole: int, now: int) -> Markup:
    waited = 100 * (_queued_at(run) - begun) / whole
    width = max(NARROWEST, 100 * (_ended_at(run, now) - run.started_at) / whole)
    at = min(100 * (run.started_at - begun) / whole, 100 - width)
    return Markup(
        '<svg class="stack took" viewBox="0 0 100 10" preserveAspectRatio="none" '
        'aria-hidden="true">'
        '<rect class="waited" x="{:.2f}" width="{:.2f}" y="3.5" height="3"/>'
        '<rect class="is-{}" x="{:.2f}" width="{:.2f}" height="10"/></svg>'
    ).format(waited, max(0, at - waited), status, at, width)


def _status(run: Execution) -> str:
    return "in_progress" if run.status == "running" else run.status


def _queued_at(run: Execution) -> int:
    return run.started_at - (run.wait_ms or 0)


def _ended_at(run: Execution, now: int) -> int:
    if run.duration_ms is None:
        return max(now, run.started_at)
    return run.started_at + run.duration_ms
