"""`penstock queues`: every queue, also while it is empty."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.output import Fitted, JsonFlag, console, plain, table, write_json
from penstock.cli.session import ask_app, bare_app
from penstock.model.controls import LimitKind
from penstock.model.wording import ago, span
from penstock.operate.documents import document

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.operate.controls import QueueState

app = typer.Typer(no_args_is_help=True, help="See the queues.")


@app.callback()
def queues() -> None:
    """See the queues."""


@app.command("ls")
def ls(
    ctx: typer.Context,
    tenant: Annotated[str | None, typer.Option(help="Only with jobs of this tenant.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """List the queues: with jobs, paused, limited, or used by a live worker's job types."""

    async def look(app: "Penstock") -> "tuple[list[QueueState], int]":
        return await app.controls.queues(tenant), app.store.clock.now()

    found, now = ask_app(bare_app(ctx), look)
    if as_json:
        write_json([queue_document(state) for state in found])
    elif found:
        console().print(queue_table(found, now))
    else:
        typer.echo("No queues yet: no job waits or runs, and no worker is alive.")


def queue_document(state: "QueueState") -> dict[str, Any]:
    """A queue for scripts, as the API has it."""
    return document(state.depth) | {
        "pause": state.pause and document(state.pause),
        "limits": [
            document(each.limit) | {"used": each.used, "frees_in_ms": each.frees_in_ms}
            for each in state.limits
        ],
        "workers": state.workers,
    }


def queue_table(found: "list[QueueState]", now: int) -> Fitted:
    """One line per queue."""
    made = table(
        *("QUEUE", "QUEUED#", "RUNNING#", "PENDING#", "RETRY#", "PAUSED#", "OLDEST#", "WORKERS#"),
        note="NOTE",
    )
    for state in found:
        depth = state.depth
        made.add_row(
            plain(depth.queue),
            f"{depth.queued:,}",
            f"{depth.in_progress:,}",
            f"{depth.pending:,}",
            f"[yellow]{depth.failed:,}[/]" if depth.failed else "0",
            f"[magenta]{depth.paused:,}[/]" if depth.paused else "0",
            span(depth.oldest_queued_ms),
            f"{state.workers}" if state.workers or not depth.jobs else "[red]0[/]",
            _note(state, now),
        )
    return Fitted(made, "PAUSED", "PENDING", "RETRY")


def _note(state: "QueueState", now: int) -> str:
    parts: list[str] = []
    if state.pause is not None:
        who = f" by {plain(state.pause.paused_by)}" if state.pause.paused_by else ""
        why = f": {plain(state.pause.reason)}" if state.pause.reason else ""
        parts.append(f"[magenta]paused {ago(state.pause.created_at, now)}{who}{why}[/]")
    for each in state.limits:
        kind, capacity = each.limit.kind, each.limit.capacity
        words = {
            LimitKind.CONCURRENCY: f"at most {capacity:,} at once",
            LimitKind.RATE: f"at most {capacity:,} per {span(each.limit.interval_ms)}",
            LimitKind.DEPTH: f"takes at most {capacity:,} jobs",
        }
        parts.append(words[kind])
    return ", ".join(parts)
