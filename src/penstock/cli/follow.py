"""Log lines of a job, as they come."""

from typing import TYPE_CHECKING

import typer

from penstock.cli.output import console, json_text, plain
from penstock.client.documents import document
from penstock.model.clock import iso

if TYPE_CHECKING:
    from rich.console import Console

    from penstock.store.contract import LogLine, Store

LEVELS = {"debug": "dim", "info": "default", "warning": "yellow", "error": "red"}
MANY = 1_000_000


async def follow_logs(store: "Store", job_id: str, *, as_json: bool) -> None:
    """Print lines until the job has ended; as JSON, one object a line."""
    from penstock.cli.jobs import known

    out = console()
    printed = 0
    subscription = store.subscribe()
    try:
        while True:
            over = (await known(store, job_id)).status.terminal
            lines = await store.reader.logs(job_id, MANY)
            for line in lines[printed:]:
                if as_json:
                    typer.echo(json_text(document(line), indent=None))
                else:
                    print_line(out, line)
            printed = len(lines)
            if over:
                return
            await subscription.wait(1.0)
    finally:
        subscription.close()


def print_line(out: "Console", line: "LogLine") -> None:
    """One line: when, in which execution, how grave, what."""
    style = LEVELS.get(line.level, "default")
    out.print(
        f"[dim]{iso(line.at)} #{line.fence}[/] [{style}]{line.level:<7}[/] {plain(line.message)}",
        soft_wrap=True,
    )
