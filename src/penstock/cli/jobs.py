"""`penstock jobs`: list, show, explain, follow, cancel, requeue, tie together."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli import exits
from penstock.cli.output import JsonFlag, console, json_text, moment, plain, styled, write_json
from penstock.cli.session import ask, ask_now, full_id, full_ids, operate
from penstock.model.clock import iso
from penstock.model.states import Status
from penstock.model.wording import counted
from penstock.operate.documents import document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from penstock.model.explain import Explanation
    from penstock.model.job import Job
    from penstock.operate.actor import Operator
    from penstock.operate.jobs import Family
    from penstock.store.contract import Dependencies, Dependency, Execution, LogLine, Store


def show_tree(out: "Console", family: "Family") -> None:
    """One tree per job that waits for nobody; a job with several parents is written out once."""
    from rich.tree import Tree

    from penstock.operate.jobs import MAX_JOBS

    written: set[str] = set()
    for root in sorted(family.roots):
        tree = Tree(_line(family, root, ""))
        todo = [(root, tree)]
        while todo:
            job_id, branch = todo.pop()
            if job_id in written:
                branch.label = f"{branch.label} [dim](see above)[/]"
                continue
            written.add(job_id)
            found = sorted(family.children(job_id).items())
            lines = [
                (
                    child_id,
                    branch.add(_line(family, child_id, ", ".join(filter(None, map(_edge, edges))))),
                )
                for child_id, edges in found
            ]
            todo += reversed(lines)
        out.print(tree)
    if family.more:
        out.print(f"[dim]There are more than {MAX_JOBS:,} jobs; these are the nearest.[/]")


def tree_document(family: "Family") -> dict[str, Any]:
    """The same for a script."""
    return {
        "id": family.asked,
        "jobs": [
            {"id": job_id, "type": type_, "status": status}
            for job_id, (type_, status) in sorted(family.jobs.items())
        ],
        "edges": [edge_document(edge) for edge in family.edges.values()],
        "more": family.more,
    }


def edge_document(edge: "Dependency") -> dict[str, Any]:
    """An edge as a script wants to read it."""
    from msgspec.structs import asdict

    closed_at = None if edge.closed_at is None else iso(edge.closed_at)
    ends = {"child_id": edge.child_id, "outcome": edge.outcome, "closed_at": closed_at}
    return asdict(edge.edge) | ends


def _line(family: "Family", job_id: str, words: str) -> str:
    type_, status = family.jobs[job_id]
    name = plain(type_ or "?")
    shown = f"[bold]{name} {job_id}[/]" if job_id == family.asked else f"{name} {job_id}"
    state = styled(status) if status else "[dim]pruned[/]"
    return f"{shown} {state}" + (f" [dim]{words}[/]" if words else "")


_WORDS = {"completion": "even if it fails", "order": "in order"}  # success needs no word


def _edge(edge: "Dependency") -> str:
    """What an edge passes on or asks for, in a word or two."""
    if edge.edge.condition is not None:
        return f"if {plain(edge.edge.condition)}"
    if edge.edge.argument is not None:
        place = "" if edge.edge.position is None else f"\\[{edge.edge.position}]"
        return f"as {plain(edge.edge.argument)}{place}"
    return _WORDS.get(edge.edge.kind, "")


JobId = Annotated[str, typer.Argument(metavar="ID", help="The job's id, or its beginning.")]
JobIds = Annotated[
    list[str], typer.Argument(metavar="ID...", help="The jobs' ids, or their beginnings.")
]
LEVELS = {"debug": "dim", "info": "default", "warning": "yellow", "error": "red"}
MANY = 1_000_000


async def follow_logs(store: "Store", job_id: str, *, as_json: bool) -> None:
    """Print lines until the job has ended; as JSON, one object a line."""
    out = console()
    printed = 0
    subscription = store.subscribe()
    try:
        while True:
            over = (await known(store, job_id)).status.terminal
            numbers = numbered(await store.reader.executions(job_id))
            lines = await store.reader.logs(job_id, MANY)
            for line in lines[printed:]:
                if as_json:
                    typer.echo(json_text(document(line), indent=None))
                else:
                    print_line(out, line, numbers)
            printed = len(lines)
            if over:
                return
            await subscription.wait(1.0)
    finally:
        subscription.close()


def numbered(executions: "Sequence[Execution]") -> dict[int, int]:
    """The executions of a job by their fences, counted from 1."""
    return {run.fence: number for number, run in enumerate(executions, 1)}


def print_line(out: "Console", line: "LogLine", numbers: dict[int, int]) -> None:
    """One line: when, in which execution, how grave, what."""
    style = LEVELS.get(line.level, "default")
    number = numbers.get(line.fence, len(numbers) + 1)
    out.print(
        f"[dim]{iso(line.at)} #{number}[/] [{style}]{line.level:<7}[/] {plain(line.message)}",
        soft_wrap=True,
    )


CALM = {"ended", "running", "ready", "due"}


def explain(
    ctx: typer.Context,
    job_id: JobId,
    as_json: JsonFlag = False,
) -> None:
    """Explain why a job does or does not run: every reason, the most important first."""
    from penstock.model.not_found import JobNotFound
    from penstock.operate.explain import explain as reasons_of

    job_id = full_id(ctx, job_id)
    found = ask(ctx, lambda store: store.reader.standing(job_id))
    if found is None:
        raise JobNotFound(job_id)
    explanation = reasons_of(found)
    if as_json:
        write_json(explanation_document(explanation))
    else:
        show_explanation(console(), found.job.type, explanation)


def explanation_document(explanation: "Explanation") -> dict[str, Any]:
    """An explanation for scripts."""
    reasons = [document(reason) for reason in explanation.reasons]
    return document(explanation) | {"summary": explanation.summary, "reasons": reasons}


def show_explanation(out: "Console", job_type: str, explanation: "Explanation") -> None:
    """An explanation for a person: a line per reason, numbered where there are several."""
    from rich.table import Table

    status = styled(explanation.status)
    out.print(f"[bold]{plain(job_type)}[/] {explanation.job_id}  {status}")
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for reason in explanation.reasons:
        colour = "green" if reason.kind.value in CALM else "yellow"
        name = reason.kind.value.replace("_", " ")
        grid.add_row(f"[{colour}]{name}[/]", _with_commands(reason.sentence))
    out.print(grid)


def _with_commands(sentence: str) -> str:
    """The sentence with what is to be typed standing out."""
    parts = plain(sentence).split("`")
    return "".join(f"[bold]{part}[/]" if n % 2 else part for n, part in enumerate(parts))


app = typer.Typer(no_args_is_help=True, help="List, show, explain, cancel and rerun jobs.")


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
    schedule: Annotated[str | None, typer.Option(help="Only created by this schedule.")] = None,
    worker: Annotated[str | None, typer.Option(help="Only running on this worker.")] = None,
    since: Annotated[str | None, typer.Option(help="Created at this time or later.")] = None,
    until: Annotated[str | None, typer.Option(help="Created before this time.")] = None,
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
    from penstock.app.lookups import expected, job_filter
    from penstock.cli.job_view import job_table

    asked = {
        "status": status,
        "type": type_name,
        "queue": queue,
        "category": category,
        "tenant_id": tenant,
        "workspace_id": workspace,
        "created_by": created_by,
        "tag": tag,
        "parent_job_id": parent and full_id(ctx, parent),
        "schedule_id": schedule,
        "lease_owner": worker,
        "since": moment(since, "--since"),
        "until": moment(until, "--until"),
        "payload": [expected(each) for each in payload or ()],
        "text": text,
        "before": before and full_id(ctx, before),
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
    """Show one job with its executions, what it waits for, what waits for it and its last error."""
    from penstock.cli.job_view import show_job
    from penstock.operate.run_again import ran_again_as, ran_again_from

    job_id = full_id(ctx, job_id)

    async def look(store: "Store") -> "tuple[Job, list[Execution], Dependencies, list[str]]":
        job = await known(store, job_id)
        edges = await store.reader.dependencies(job_id)
        again = await ran_again_as(store, job)
        return job, await store.reader.executions(job_id), edges, again

    (job, executions, edges, again), now = ask_now(ctx, look)
    if as_json:
        write_json(
            document(job)
            | {
                "executions": [document(e) for e in executions],
                "parents": [edge_document(edge) for edge in edges.parents],
                "children": [edge_document(edge) for edge in edges.children],
                "ran_again_from": ran_again_from(job),
                "ran_again_as": again,
            }
        )
    else:
        show_job(console(), job, executions, now, edges, again)


@app.command("tree")
def tree(ctx: typer.Context, job_id: JobId, as_json: JsonFlag = False) -> None:
    """Show a job's whole flow: what it waits for and what waits for it."""
    from penstock.operate.jobs import family_of

    job_id = full_id(ctx, job_id)

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
        str, typer.Option(help="The reason, kept with the job.")
    ] = "cancelled by an operator",
    as_json: JsonFlag = False,
) -> None:
    """Cancel waiting jobs and ask running ones to stop."""
    ids = full_ids(ctx, job_ids)
    answers = operate(ctx, lambda operator: operator.jobs.cancel_all(ids, reason))
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
    ids = full_ids(ctx, job_ids)
    done = operate(ctx, lambda operator: operator.jobs.requeue_all(ids))
    if as_json:
        write_json({"requeued": done})
    else:
        for job_id in done:
            typer.echo(f"Requeued {job_id}.")


@app.command("run-again")
def run_again(ctx: typer.Context, job_id: JobId, as_json: JsonFlag = False) -> None:
    """Run a finished job again: make a new one with the same arguments and options.

    Jobs that came after it in a flow are not repeated.
    """
    from penstock.operate.run_again import steps_after

    whole = full_id(ctx, job_id)

    async def act(operator: "Operator") -> "tuple[Job, int]":
        return await operator.jobs.run_again(whole), await steps_after(operator.app.store, whole)

    new, later = operate(ctx, act)
    if as_json:
        write_json(document(new))
        return
    typer.echo(f"{whole} runs again as {new.id}.")
    if later:
        typer.echo(f"Not repeated: {counted(later, 'job')} that came after it in its flow.")


@app.command("after")
def after(
    ctx: typer.Context,
    job_id: JobId,
    parents: Annotated[
        list[str], typer.Argument(metavar="PARENT...", help="The ids of the jobs to wait for.")
    ],
    completion: Annotated[
        bool, typer.Option("--completion", help="Wait for their end, whether they succeed or not.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Make a job that is not queued yet wait for more jobs; all of them or none."""
    from penstock.app.after import after, edges_of

    job_id, *parents = full_ids(ctx, [job_id, *parents])
    entries = [after(each, when="completion" if completion else "success") for each in parents]
    edges = edges_of(entries)
    job = operate(ctx, lambda operator: operator.jobs.add_dependency(job_id, edges))
    if as_json:
        write_json(document(job))
    elif job.waiting_on:
        typer.echo(f"{job_id} waits for {counted(job.waiting_on, 'job')}.")
    else:
        typer.echo(f"{job_id} waits for nothing: those jobs have already ended.")


@app.command("logs")
def logs(
    ctx: typer.Context,
    job_id: JobId,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep printing until the job has ended.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, help="How many lines, the latest.")] = 1000,
    as_json: JsonFlag = False,
) -> None:
    """Show what a job logged."""
    job_id = full_id(ctx, job_id)
    if follow:
        ask(ctx, lambda store: follow_logs(store, job_id, as_json=as_json))
        return

    async def look(store: "Store") -> "tuple[list[LogLine], list[Execution]]":
        await known(store, job_id)
        return await store.reader.logs(job_id, limit), await store.reader.executions(job_id)

    lines, executions = ask(ctx, look)
    if as_json:
        write_json([document(line) for line in lines])
    elif not lines:
        typer.echo('Nothing was logged; a handler logs with `ctx.log("…")` or with `logging`.')
    else:
        for line in lines:
            print_line(console(), line, numbered(executions))


app.command("explain")(explain)


async def known(store: "Store", job_id: str) -> "Job":
    """The job, or JobNotFound."""
    from penstock.model.not_found import JobNotFound

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
