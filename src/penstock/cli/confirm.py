"""Asking before something that cannot be undone."""

import sys
from typing import Annotated

import typer

from penstock.cli.root import Refused

YesFlag = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]


def confirm(question: str, *, yes: bool) -> None:
    """Go on only when the person at the terminal says so, or `--yes` did."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Refused(f"{question} There is no terminal to ask on; say so with --yes.")
    typer.confirm(question, abort=True)
