"""`penstock workers`: who runs jobs."""

from typing import TYPE_CHECKING

import typer

from penstock.cli.documents import document
from penstock.cli.output import JsonFlag, console, plain, table, write_json
from penstock.cli.session import ask
from penstock.cli.times import ago, span

if TYPE_CHECKING:
    from rich.table import Table

    from penstock.store.contract import Store, WorkerInfo

app = typer.Typer(no_args_is_help=True, help="See the workers.")

DEAD_AFTER_MS = 30_000


@app.callback()
def workers() -> None:
    """See the workers."""


@app.command("ls")
def ls(ctx: typer.Context, as_json: JsonFlag = False) -> None:
    """List the workers that are, or recently were, alive."""

    async def look(store: "Store") -> "tuple[list[WorkerInfo], int]":
        return await store.workers.list(), store.clock.now()

    found, now = ask(ctx, look)
    if as_json:
        write_json([document(worker) | {"alive": alive(worker)} for worker in found])
    elif found:
        console().print(worker_table(found, now))
    else:
        typer.echo("No workers; start one with `penstock worker module:app`.")


def alive(worker: "WorkerInfo") -> bool:
    """Whether it was heard of within half a minute."""
    return worker.heartbeat_age_ms < DEAD_AFTER_MS


def worker_table(found: "list[WorkerInfo]", now: int) -> "Table":
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
            f"{span(worker.poll_age_ms)} ago",
            ago(worker.started_at, now).removesuffix(" ago"),
            plain(", ".join(worker.queues)) if worker.queues else "all",
        )
    return made


def state(worker: "WorkerInfo") -> str:
    """Running, draining, or silent for too long."""
    if not alive(worker):
        return f"[red]silent {span(worker.heartbeat_age_ms)}[/]"
    return f"[{'yellow' if worker.state == 'draining' else 'green'}]{worker.state}[/]"
