"""The root command: options that may stand anywhere, and errors as one sentence."""

import sys
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from penstock.cli import exits

WITH_VALUE = ("--url", "--dispatch", "--config")
FLAGS = ("--debug",)


class Root(TyperGroup):
    """Takes the global options before or after the command's name.

    Extensions are looked for only where no command of ours is meant, and for the list of all.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        """Our commands, then the groups and the processes of extensions."""
        own = list(super().list_commands(ctx))
        try:
            from penstock.cli.extensions import commands_of, extensions_of, groups_of
            from penstock.cli.processes import processes_of

            found = extensions_of(ctx)
        except Exception:
            return own  # one that cannot be loaded says so where it is called
        theirs = (*groups_of(found), *commands_of(found), *processes_of(found))
        return own + [name for name in theirs if name not in own]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command of ours, the group of the extension of this name, or what one runs."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return without_types_of_flags(own, ctx)
        from penstock.cli.extensions import commands_of, extensions_of, groups_of
        from penstock.cli.processes import command_of, processes_of

        found = extensions_of(ctx)
        running = processes_of(found).get(cmd_name)
        if running is not None:
            return without_types_of_flags(command_of(running), ctx)
        alone = commands_of(found).get(cmd_name)
        command = groups_of(found).get(cmd_name) if alone is None else alone()
        return None if command is None else without_types_of_flags(command, ctx)

    def get_params(self, ctx: Any) -> Any:
        """The global options, with their flags as flags."""
        return _plain_flags(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments with the global options first."""
        return list(super().parse_args(ctx, hoisted(args)))

    def main(self, args: Any = None, *rest: Any, **extra: Any) -> NoReturn:
        """Run a command line; every way out ends in an exit code and at most one sentence."""
        words = list(sys.argv[1:] if args is None else args)
        extra["standalone_mode"] = False
        try:
            code = super().main(words, *rest, **extra)
        except Exception as error:
            if "--debug" in words:
                raise
            code = complain(error)
        sys.exit(code if isinstance(code, int) else exits.OK)


def without_types_of_flags(command: Any, ctx: Any) -> Any:
    """The command; in its help a flag is a flag and not followed by `<bool>`."""
    _plain_flags([*command.params, command.get_help_option(ctx)])
    for each in getattr(command, "commands", {}).values():
        without_types_of_flags(each, ctx)
    return command


def _plain_flags(params: list[Any]) -> list[Any]:
    for param in params:
        if getattr(param, "is_flag", False) and param.metavar is None:
            param.metavar = ""
    return params


def hoisted(args: list[str]) -> list[str]:
    """Move the global options to the front: `jobs ls --url X` is `--url X jobs ls`."""
    front: list[str] = []
    rest: list[str] = []
    words = iter(args)
    for word in words:
        if word == "--":
            rest += [word, *words]
        elif word in WITH_VALUE:
            front += [word, *(value for value in (next(words, None),) if value is not None)]
        elif word in FLAGS or word.startswith(tuple(f"{name}=" for name in WITH_VALUE)):
            front.append(word)
        else:
            rest.append(word)
    return front + rest


def complain(error: Exception) -> int:
    """Say what went wrong in one sentence on standard error; the exit code for it."""
    from penstock.model import errors, not_found

    if isinstance(error, typer.Abort):
        return say("nothing was changed.", exits.WRONG)
    if hasattr(error, "format_message"):
        return say(_usage(error), exits.WRONG)
    if isinstance(error, not_found.NotFound | NotFound):
        return say(str(error), exits.NOT_FOUND)
    if isinstance(error, errors.JobFailed | errors.ResultTimeout):
        return say(str(error), exits.FAILED)
    if isinstance(error, errors.PenstockError | Refused):
        return say(str(error), exits.WRONG)
    kind = type(error).__name__
    return say(f"{kind}: {error}; run it again with --debug for the traceback.", exits.BUG)


def say(sentence: str, code: int) -> int:
    """Write `penstock: sentence` to standard error and pass the code on."""
    # What is said may hold names and errors from elsewhere: nothing in it commands the terminal.
    words = "".join(letter for letter in " ".join(sentence.split()) if letter.isprintable())
    typer.echo(f"penstock: {words}", err=True)
    return code


class Refused(Exception):
    """Input that only the command line can judge."""


class NotFound(Refused):
    """Something named that does not exist."""


def _usage(error: Any) -> str:
    message = str(error.format_message()).rstrip(".").replace("Value error, ", "")
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "penstock"
    if not message:  # a group without a command, whose help was shown
        return f"name a command of `{command}`."
    joint = " See" if message.endswith("?") else "; see"
    return f"{message}{joint} `{command} --help`."
