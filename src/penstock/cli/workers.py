"""`penstock workers`: who runs jobs."""

from typing import TYPE_CHECKING

import typer

from penstock.cli.output import Fitted, JsonFlag, console, plain, table, write_json
from penstock.cli.session import ask_now
from penstock.client.documents import document
from penstock.model.spans import ago, span

if TYPE_CHECKING:
    from penstock.store.contract import WorkerInfo

app = typer.Typer(no_args_is_help=True, help="See the workers.")


@app.callback()
def workers() -> None:
    """See the workers."""


@app.command("ls")
def ls(ctx: typer.Context, as_json: JsonFlag = False) -> None:
    """List the workers that are, or recently were, alive."""
    found, now = ask_now(ctx, lambda store: store.workers.list())
    if as_json:
        write_json([document(worker) | {"alive": worker.alive} for worker in found])
    elif found:
        console().print(worker_table(found, now))
    else:
        typer.echo("No workers; start one with `penstock worker module:app`.")


def worker_table(found: "list[WorkerInfo]", now: int) -> Fitted:
    """One line per worker."""
    made = table(
        "NAME",
        "PID#",
        "STATE",
        "BUSY#",
        "DONE#",
        "FAILED#",
        "CPU#",
        "MEMORY#",
        "POLLED",
        "UP",
        note="QUEUES",
    )
    for worker in found:
        made.add_row(
            plain(worker.name),
            str(worker.pid),
            state(worker),
            f"{worker.running}/{worker.concurrency}",
            f"{worker.completed:,}",
            f"{worker.failed:,}",
            f"{worker.cpu_percent:.0f} %",
            f"{worker.memory_mb:.0f} MB",
            f"{span(worker.poll_age_ms + worker.heartbeat_age_ms)} ago",
            ago(worker.started_at, now).removesuffix(" ago"),
            plain(", ".join(worker.queues)) if worker.queues else "all",
        )
    return Fitted(made, "UP", "CPU", "POLLED", "PID")


def state(worker: "WorkerInfo") -> str:
    """Running, draining, degraded (the store fails it), or silent for too long."""
    if not worker.alive:
        return f"[red]silent {ago(0, worker.heartbeat_age_ms).removesuffix(' ago')}[/]"
    return f"[{'green' if worker.state == 'running' else 'yellow'}]{worker.state}[/]"
