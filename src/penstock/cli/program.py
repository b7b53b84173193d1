"""The program `penstock`: its global options and its commands."""

from pathlib import Path
from typing import Annotated

import typer

from penstock.cli import (
    bench,
    dead,
    demo,
    doctor,
    enqueue,
    jobs,
    stats,
    store,
    torture,
    version,
    worker,
    workers,
)
from penstock.cli.root import Root
from penstock.cli.session import Session

RUN, LOOK, KEEP, TRY = "Run jobs", "Look and act", "Keep the store", "Try and measure"

app = typer.Typer(
    name="penstock",
    cls=Root,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def root(
    ctx: typer.Context,
    url: Annotated[
        str | None,
        typer.Option(
            help="The store, such as sqlite:///work.db (or PENSTOCK_URL).", show_default=False
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="Settings in TOML (or PENSTOCK_CONFIG; penstock.toml if it is there).",
            show_default=False,
        ),
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Durable background jobs for Python. These options may stand anywhere on the line."""
    ctx.obj = Session(url=url, config=config)


app.command("worker", rich_help_panel=RUN)(worker.worker)
app.command("enqueue", rich_help_panel=RUN)(enqueue.enqueue)
app.add_typer(jobs.app, name="jobs", rich_help_panel=LOOK)
app.add_typer(dead.app, name="dead", rich_help_panel=LOOK)
app.add_typer(workers.app, name="workers", rich_help_panel=LOOK)
app.command("stats", rich_help_panel=LOOK)(stats.stats)
app.command("doctor", rich_help_panel=LOOK)(doctor.doctor)
app.command("migrate", rich_help_panel=KEEP)(store.migrate)
app.command("backup", rich_help_panel=KEEP)(store.backup)
app.command("restore", rich_help_panel=KEEP)(store.restore)
app.command("demo", rich_help_panel=TRY)(demo.demo)
app.command("bench", rich_help_panel=TRY)(bench.bench)
app.command("torture", rich_help_panel=TRY)(torture.torture)
app.command("version", rich_help_panel=TRY)(version.version)


def main() -> None:
    """The entry point."""
    app(prog_name="penstock")
