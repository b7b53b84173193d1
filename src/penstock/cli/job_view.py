"""Jobs as tables and pages for people."""

from typing import TYPE_CHECKING

from penstock.cli.output import Fitted, highlighted, lines, plain, styled, table
from penstock.model.clock import iso
from penstock.model.failure import attempt_of, attempts_allowed, bound_by, fell_with_parent, folded
from penstock.model.states import Status
from penstock.model.wording import ago, counted, span
from penstock.operate.documents import decoded, rest_of_progress, set_options
from penstock.operate.run_again import ran_again_from

if TYPE_CHECKING:
    from rich.console import Console

    from penstock.model.job import Job
    from penstock.store.contract import Dependencies, Dependency, Execution

MAX_EDGES = 20


def job_table(jobs: "list[Job]", now: int) -> Fitted:
    """One line per job."""
    made = table("ID", "TYPE", "QUEUE", "STATUS", "ATTEMPTS#", "CREATED", note="NOTE")
    for job in jobs:
        made.add_row(
            job.id,
            plain(job.type),
            plain(job.queue),
            styled(job.status),
            str(attempt_of(job)),
            ago(job.created_at, now),
            note(job, now),
        )
    return Fitted(made, "QUEUE", "CREATED")


def note(job: "Job", now: int) -> str:
    """The one thing worth knowing about a job in its state."""
    if job.status is Status.PENDING and job.waiting_on:
        return f"waits for {counted(job.waiting_on, 'job')}"
    if job.status in (Status.PENDING, Status.QUEUED):
        due = f"due {ago(job.scheduled_at, now)}" if job.scheduled_at > now else ""
        return due or (f"rescued {job.rescues}×" if job.rescues else "")
    if job.status is Status.FAILED:
        later = job.scheduled_at > now
        when = f"retries {ago(job.scheduled_at, now)}" if later else "retry is due"
        return f"{when}: {plain(job.error or '')}"
    if job.status is Status.IN_PROGRESS:
        asked = "asked to stop " if job.cancel_requested_at else ""
        percent = "" if job.progress_percent is None else f"{job.progress_percent:.0f} % "
        return asked + percent + plain(job.progress_message or "")
    if job.status is Status.COMPLETED and job.started_at and job.completed_at:
        return f"took {span(job.completed_at - job.started_at)}"
    return plain(job.error or "")


def show_job(
    out: "Console",
    job: "Job",
    executions: "list[Execution]",
    now: int,
    edges: "Dependencies",
    again: "list[str]",
) -> None:
    """A page about one job."""
    from rich.table import Table

    out.print(f"[bold]{plain(job.type)}[/] {job.id}  {styled(job.status)}")
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in [*facts(job, now), *links(job, again)]:
        grid.add_row(name, value)
    out.print(grid)
    show_documents(out, job)
    if executions:
        out.print()
        out.print(execution_table(executions, now))
    show_edges(out, edges)
    show_traceback(out, job, executions)
    out.print(f"\n[dim]{next_step(job)}[/]", soft_wrap=True)


def show_traceback(out: "Console", job: "Job", executions: "list[Execution]") -> None:
    """The traceback of the last execution that failed, unless the job has completed since."""
    stacks = [run.error_stack for run in executions if run.error_stack]
    if stacks and job.status is not Status.COMPLETED:
        out.print("\n[dim]traceback of the last failed execution[/]")
        out.print(lines(folded(stacks[-1]).rstrip()), markup=False, soft_wrap=True)


_WORDED = {
    *("queue", "priority", "max_retries", "at", "key", "key_scope", "tenant", "tags", "timeout"),
    "metadata",
}


def facts(job: "Job", now: int) -> list[tuple[str, str]]:
    """What is known of a job, in the order a person asks."""
    rows: list[tuple[str, str | None]] = [
        ("queue", f"{plain(job.queue)}, priority {job.priority}"),
        ("attempts", _tries(job)),
        ("created", _when(job.created_at, now)),
        ("due", _when(job.scheduled_at, now) if not job.status.terminal else None),
        ("started", _when(job.started_at, now)),
        ("ended", _when(job.completed_at or job.failed_at, now) if job.status.terminal else None),
        ("failed", None if job.status.terminal else _when(job.failed_at, now)),
        ("expires", _when(job.expires_at, now)),
        ("running on", _lease(job, now)),
        ("progress", _progress(job)),
        ("key", job.key and f"{plain(job.key)} ({job.key_scope})"),
        ("tenant", job.tenant_id and plain(job.tenant_id)),
        ("parent", None if ran_again_from(job) else job.parent_job_id),
        ("tags", ", ".join(plain(tag) for tag in job.tags) or None),
        ("timeout", span(job.timeout_ms)),
        *((name, plain(value)) for name, value in set_options(job, but=_WORDED)),
        ("last error", job.error and f"[red]{plain(job.error)}[/]"),
    ]
    return [(name, value) for name, value in rows if value]


def links(job: "Job", again: "list[str]") -> list[tuple[str, str]]:
    """The finished job that this one repeats, and those that repeat it."""
    before = ran_again_from(job)
    return [
        *([("run again from", before)] if before else []),
        *([("run again as", ", ".join(again))] if again else []),
    ]


def show_documents(out: "Console", job: "Job") -> None:
    """The payload and what the job made of it."""
    for name in ("payload", "checkpoint", "result"):
        text = getattr(job, name)
        if text is None:
            continue
        out.print(f"\n[dim]{name}[/]")
        out.print(highlighted(decoded(text)))


def execution_table(executions: "list[Execution]", now: int) -> Fitted:
    """One line per execution, oldest first."""
    made = table("EXECUTION#", "STATUS", "STARTED", "WAITED#", "TOOK#", "CLASS", note="ERROR")
    for number, run in enumerate(executions, 1):
        made.add_row(
            str(number),
            styled(run.status),
            ago(run.started_at, now),
            span(run.wait_ms),
            span(run.duration_ms),
            "" if run.error_class == "poison" else run.error_class or "",
            plain(run.error or ""),
        )
    return Fitted(made, "WAITED", "CLASS")


def show_edges(out: "Console", edges: "Dependencies") -> None:
    """What a job waits for and what waits for it, the first of each."""
    if edges.parents:
        made = table("WAITS FOR", "TYPE", "STATUS", "KIND", "OUTCOME")
        for edge in edges.parents[:MAX_EDGES]:
            made.add_row(edge.edge.parent_id, *_end(edge, edge.parent_type, edge.parent_status))
        out.print()
        out.print(made)
    if edges.children:
        made = table("BLOCKS", "TYPE", "STATUS", "KIND", "OUTCOME")
        for edge in edges.children[:MAX_EDGES]:
            made.add_row(edge.child_id, *_end(edge, edge.child_type, edge.child_status))
        out.print()
        out.print(made)
    if max(len(edges.parents), len(edges.children)) > MAX_EDGES:
        out.print("[dim]All of them: penstock jobs tree[/]")


def next_step(job: "Job") -> str:
    """What a person may want to do now."""
    if job.status is Status.DEAD_LETTER:
        return f"Its dead letter: penstock dead show {job.id}"
    if job.status is Status.CANCELLED:
        if fell_with_parent(job.error_details):
            return f"Requeue the job that failed, and this one follows: penstock jobs tree {job.id}"
        return f"Requeue it: penstock jobs requeue {job.id}"
    if job.status is Status.COMPLETED:
        return (
            f"What it logged: penstock jobs logs {job.id}\n"
            f"Run it again: penstock jobs run-again {job.id}"
        )
    if job.status is not Status.IN_PROGRESS:
        return f"Why it waits: penstock jobs explain {job.id}"
    if job.cancel_requested_at is not None:
        return f"It was asked to stop; why it still runs: penstock jobs explain {job.id}"
    return f"Stop it: penstock jobs cancel {job.id}"


def _end(edge: "Dependency", type_: str | None, status: str | None) -> list[str]:
    state = styled(status) if status else "[dim]pruned[/]"
    return [plain(type_ or "?"), state, edge.edge.kind, edge.outcome or "[dim]open[/]"]


def _tries(job: "Job") -> str:
    allowed = attempts_allowed(job)
    parts = [f"{attempt_of(job)}" if allowed is None else f"{attempt_of(job)} of {allowed}"]
    parts += ["running now"] if attempt_of(job) > job.attempts else []
    parts += [f"rescued {job.rescues}×"] if job.rescues else []
    parts += [f"snoozed {job.snoozes}×"] if job.snoozes else []
    bound = bound_by(job)
    return ", ".join(parts) + (f" [dim]({plain(bound)})[/]" if bound else "")


def _when(moment: int | None, now: int) -> str | None:
    return None if moment is None else f"{ago(moment, now)} [dim]({iso(moment)})[/]"


def _lease(job: "Job", now: int) -> str | None:
    if job.lease_owner is None or job.status is not Status.IN_PROGRESS:
        return None
    until = "" if job.lease_until is None else f", until {ago(job.lease_until, now)}"
    return f"{plain(job.lease_owner)}{until}, fence {job.fence}"


def _progress(job: "Job") -> str | None:
    said = [plain(job.progress_message or ""), plain(rest_of_progress(job))]
    words = ", ".join(each for each in said if each)
    if job.progress_percent is None:
        return words or None
    filled = round(job.progress_percent / 5)
    bar = f"[green]{'█' * filled}[/][bright_black]{'░' * (20 - filled)}[/]"
    return f"{bar} {job.progress_percent:.0f} % {words}"
