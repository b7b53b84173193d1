"""Whether the real program would take a command line, without running it."""

from collections.abc import Sequence
from typing import Any

from typer import Context
from typer.main import get_command

from penstock.cli import app


def children_of(command: Any) -> dict[str, Any]:
    """The commands below a command, those of extensions included."""
    if not hasattr(command, "list_commands"):
        return {}
    context = Context(command)
    return {name: command.get_command(context, name) for name in command.list_commands(context)}


def refusal(words: Sequence[str]) -> str | None:
    """Why `penstock WORDS` would be refused by its parser; none if it would not."""
    command: Any = get_command(app)
    name, rest, parent = "penstock", list(words), None
    try:
        while True:
            context = command.make_context(name, rest, parent=parent)
            if not hasattr(command, "resolve_command"):
                return None
            # What a group leaves for its subcommand, which click keeps apart.
            left = [*getattr(context, "_protected_args", ()), *context.args]
            name, command, rest = command.resolve_command(context, left)
            parent = context
    except Exception as error:
        told = getattr(error, "format_message", None)
        return str(told()) if told is not None else f"{type(error).__name__}: {error}"
