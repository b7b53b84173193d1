"""`penstock jobs`: list, show, cancel, requeue, tie together, and the lines jobs logged."""

from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli import exits
from penstock.cli.explain import explain
from penstock.cli.output import JsonFlag, console, plain, styled, write_json
from penstock.cli.session import ask, ask_now, operate
from penstock.cli.values import moment
from penstock.client.documents import document
from penstock.model.counted import counted
from penstock.model.states import Status

if TYPE_CHECKING:
    from penstock.client.family import Family
    from penstock.model.job import Job
    from penstock.store.contract import Dependencies, Execution, LogLine, Store

app = typer.Typer(no_args_is_help=True, help="List, show, cancel and requeue jobs.")

JobId = Annotated[str, typer.Argument(metavar="ID", help="The job's id.")]
JobIds = Annotated[list[str], typer.Argument(metavar="ID...", help="The jobs' ids.")]


@app.command("ls")
def ls(
    ctx: typer.Context,
    status: Annotated[Status | None, typer.Option(help="Only in this state.")] = None,
    type_name: Annotated[str | None, typer.Option("--type", help="Only of this type.")] = None,
    queue: Annotated[str | None, typer.Option(help="Only in this queue.")] = None,
    category: Annotated[str | None, typer.Option(help="Only of this category.")] = None,
    tenant: Annotated[str | None, typer.Option(help="Only of this tenant.")] = None,
    workspace: Annotated[str | None, typer.Option(help="Only of this workspace.")] = None,
    created_by: Annotated[str | None, typer.Option(help="Only enqueued by this caller.")] = None,
    tag: Annotated[str | None, typer.Option(help="Only with this tag.")] = None,
    parent: Annotated[str | None, typer.Option(help="Only children of this job.")] = None,
    schedule: Annotated[str | None, typer.Option(help="Only made by this schedule.")] = None,
    worker: Annotated[str | None, typer.Option(help="Only run now by this worker.")] = None,
    since: Annotated[str | None, typer.Option(help="Made at this time or later.")] = None,
    until: Annotated[str | None, typer.Option(help="Made before this time.")] = None,
    payload: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH=VALUE", help="Only with this in the payload; repeatable."),
    ] = None,
    text: Annotated[
        str | None, typer.Option(help="Only with this in id, type, key, error or payload.")
    ] = None,
    before: Annotated[str | None, typer.Option(metavar="ID", help="Older than this job.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many.")] = 20,
    as_json: JsonFlag = False,
) -> None:
    """List jobs, newest first."""
    from penstock.cli.job_view import job_table
    from penstock.client.lookups import expected, job_filter

    asked = {
        "status": status,
        "type": type_name,
        "queue": queue,
        "category": category,
        "tenant_id": tenant,
        "workspace_id": workspace,
        "created_by": created_by,
        "tag": tag,
        "parent_job_id": parent,
        "schedule_id": schedule,
        "lease_owner": worker,
        "since": moment(since, "--since"),
        "until": moment(until, "--until"),
        "payload": [expected(each) for each in payload or ()],
        "text": text,
        "before": before,
    }
    where = job_filter({**asked, "limit": limit})
    found, now = ask_now(ctx, lambda store: store.reader.find(where))
    if as_json:
        write_json([document(job) for job in found])
    elif found:
        out = console()
        out.print(job_table(found, now))
        if len(found) == limit:
            out.print(f"[dim]Older ones: add --before {found[-1].id}[/]", soft_wrap=True)
    elif any(asked.values()):
        typer.echo("No job matches; take a filter away, or see `penstock stats`.")
    else:
        typer.echo("No jobs yet; enqueue one with `penstock enqueue TYPE --payload '{…}'`.")


@app.command("show")
def show(ctx: typer.Context, job_id: JobId, as_json: JsonFlag = False) -> None:
    """Show one job with its executions, what it runs after and what runs after it."""
    from penstock.cli.job_view import show_job

    async def look(store: "Store") -> "tuple[Job, list[Execution], Dependencies]":
        job = await known(store, job_id)
        edges = await store.reader.dependencies(job_id)
        return job, await store.reader.executions(job_id), edges

    (job, executions, edges), now = ask_now(ctx, look)
    if as_json:
        from penstock.cli.tree import edge_document

        write_json(
            document(job)
            | {
                "executions": [document(e) for e in executions],
                "parents": [edge_document(edge) for edge in edges.parents],
                "children": [edge_document(edge) for edge in edges.children],
            }
        )
    else:
        show_job(console(), job, executions, now, edges)


@app.command("tree")
def tree(ctx: typer.Context, job_id: JobId, as_json: JsonFlag = False) -> None:
    """Show a job's whole flow: what it waits for and what waits for it."""
    from penstock.cli.tree import show_tree, tree_document
    from penstock.client.family import family_of

    async def look(store: "Store") -> "Family":
        return await family_of(store, await known(store, job_id))

    family = ask(ctx, look)
    if as_json:
        write_json(tree_document(family))
    else:
        show_tree(console(), family)


@app.command("cancel")
def cancel(
    ctx: typer.Context,
    job_ids: JobIds,
    reason: Annotated[
        str, typer.Option(help="Why; kept with the job.")
    ] = "cancelled by an operator",
    as_json: JsonFlag = False,
) -> None:
    """Cancel waiting jobs and ask running ones to stop."""
    answers = operate(ctx, lambda operator: operator.cancel_all(job_ids, reason))
    if as_json:
        write_json([{"id": job_id, "status": str(status)} for job_id, status in answers.items()])
    else:
        out = console()
        for job_id, status in answers.items():
            out.print(_cancelled(job_id, status), soft_wrap=True)
    over = {Status.COMPLETED, Status.DEAD_LETTER} & set(answers.values())
    raise typer.Exit(exits.FAILED if over else exits.OK)


@app.command("requeue")
def requeue(ctx: typer.Context, job_ids: JobIds, as_json: JsonFlag = False) -> None:
    """Run cancelled or dead jobs again, with a fresh retry budget; all of them or none."""
    done = operate(ctx, lambda operator: operator.requeue_all(job_ids))
    if as_json:
        write_json({"requeued": done})
    else:
        for job_id in done:
            typer.echo(f"Requeued {job_id}.")


@app.command("after")
def after(
    ctx: typer.Context,
    job_id: JobId,
    parents: Annotated[
        list[str], typer.Argument(metavar="PARENT...", help="The ids of what it is to wait for.")
    ],
    completion: Annotated[
        bool, typer.Option("--completion", help="However they end, not only if they succeed.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Have a job that has not been queued yet wait for more jobs; all of them or none."""
    from penstock.client.after import after, edges_of

    entries = [after(each, when="completion" if completion else "success") for each in parents]
    edges = edges_of(entries)
    job = operate(ctx, lambda operator: operator.add_dependency(job_id, edges))
    if as_json:
        write_json(document(job))
    elif job.waiting_on:
        typer.echo(f"{job_id} waits for {counted(job.waiting_on, 'job')}.")
    else:
        typer.echo(f"{job_id} waits for nothing: what it was to wait for has ended.")


@app.command("logs")
def logs(
    ctx: typer.Context,
    job_id: JobId,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the job has ended.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, help="How many of the latest lines.")] = 1000,
    as_json: JsonFlag = False,
) -> None:
    """Show the lines a job logged with ctx.log."""
    from penstock.cli.follow import follow_logs

    if follow:
        ask(ctx, lambda store: follow_logs(store, job_id, as_json=as_json))
        return

    async def look(store: "Store") -> "list[LogLine]":
        await known(store, job_id)
        return await store.reader.logs(job_id, limit)

    lines = ask(ctx, look)
    if as_json:
        write_json([document(line) for line in lines])
    elif not lines:
        typer.echo('It has logged nothing; a handler logs with `ctx.log("…")`.')
    else:
        from penstock.cli.follow import print_line

        for line in lines:
            print_line(console(), line)


app.command("explain")(explain)


async def known(store: "Store", job_id: str) -> "Job":
    """The job, or JobNotFound."""
    from penstock.model.errors import JobNotFound

    found = await store.reader.get([job_id])
    if not found:
        raise JobNotFound(job_id)
    return found[0]


def _cancelled(job_id: str, status: str) -> str:
    if status == Status.CANCELLED:
        return f"{plain(job_id)} is {styled(status)}."
    if status == Status.IN_PROGRESS:
        return f"{plain(job_id)} is running and was asked to stop."
    return f"{plain(job_id)} had already ended as {styled(status)}."
