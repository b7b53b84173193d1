"""The end of the play: what the store counts, and where to go from here."""

import os
import shutil
import sys

from rich.console import Console
from rich.panel import Panel
from rich.table import Table

from penstock.demo.scene import Account


def summary(out: Console, found: Account) -> None:
    """Counts read from the store, and whether they add up."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(justify="right", style="bold")
    grid.add_column()
    grid.add_row(f"{found.enqueued:,}", "jobs enqueued and acknowledged")
    grid.add_row(f"[green]{found.completed:,}[/]", "completed")
    grid.add_row(f"[red]{found.dead:,}[/]", "dead letter, kept for a person to decide")
    grid.add_row(f"[yellow]{found.retried:,}[/]", "needed more than one attempt")
    grid.add_row(f"[cyan]{found.rescued:,}[/]", "rescued from the killed worker and run again")
    if found.unfinished:
        grid.add_row(f"[red]{found.unfinished:,}[/]", "had not ended when the time was over")
    grid.add_row(f"[{'red' if found.lost else 'green'}]{found.lost:,}[/]", "lost")
    verdict = (
        f"[bold green]It adds up: {found.enqueued:,} = {found.completed:,} + {found.dead:,}[/]"
        if found.adds_up
        else "[bold red]It does not add up[/]"
    )
    edge = "green" if found.adds_up else "red"
    out.print(Panel(grid, title=verdict, title_align="left", border_style=edge, expand=False))


def next_steps(out: Console, url: str, *, kept: bool) -> None:
    """Commands to try now."""
    program = program_name()
    if kept:
        out.print("Look around in what is left of it:")
        for command in ("dead groups", "jobs ls --type demo.import", "stats", "doctor"):
            out.print(f"  {program} --url {url} {command}", highlight=False, soft_wrap=True)
    out.print(f"Every command: {program} --help. The first steps in Python: README.md.")


def program_name() -> str:
    """How to call penstock from here."""
    if shutil.which("penstock"):
        return "penstock"
    called = sys.argv[0]
    return os.path.relpath(called) if os.path.basename(called) == "penstock" else "penstock"
