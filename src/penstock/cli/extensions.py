"""`penstock NAME …`: the commands that extensions bring, made from the functions behind them."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperGroup
from typer.models import ParameterInfo

from penstock.cli import exits
from penstock.cli.output import (
    JsonFlag,
    console,
    json_text,
    plain,
    progress_bars,
    styled,
    table,
    write_json,
)
from penstock.cli.root import say
from penstock.cli.session import actor, bare_app, load, refuse_missing, run, session

if TYPE_CHECKING:
    from penstock.extension import Command, Extension, Group

GIVEN = ("app", "actor", "progress")
"""What a command does not ask the person at the terminal for."""

SHOWN_ALREADY = object()
AppOption = Annotated[
    str | None,
    typer.Option(
        "--app",
        metavar="MODULE:APP",
        help="Where the application is, e.g. shop.jobs:app.",
        show_default=False,
    ),
]


def extensions_of(ctx: Any) -> "dict[str, Extension]":
    """The extensions that are installed or named in the settings, by name."""
    from penstock.app.extensions import installed, load_extension

    named = [load_extension(each) for each in session(ctx).settings.extensions]
    return {**installed(), **{each.name: each for each in named}}


def groups_of(found: "Mapping[str, Extension]") -> dict[str, TyperGroup]:
    """The commands of extensions as groups, by name: one for each, and those that it adds."""
    from penstock.extension import Group

    made: dict[str, TyperGroup] = {}
    for extension in found.values():
        about = extension.help or extension.title
        own = Group(name=extension.name, help=about, commands=extension.commands)
        for group in (own, *extension.groups):
            if group.commands:
                made.setdefault(group.name, ExtensionGroup(extension, group))
    return made


def commands_of(found: "Mapping[str, Extension]") -> dict[str, Callable[[], Any]]:
    """The commands of extensions that stand beside their groups, by name, to be made when used."""
    return {
        each.name: partial(_command_of, extension, each)
        for extension in found.values()
        for each in extension.alone
    }


def _command_of(extension: "Extension", declared: "Command") -> Any:
    alone = typer.Typer(add_completion=False)
    alone.command(declared.name, rich_help_panel=extension.panel)(_function_of(extension, declared))
    made = typer.main.get_command(alone)
    made.name = declared.name
    return made


class ExtensionGroup(TyperGroup):
    """Loads the function behind a command when it is asked for."""

    def __init__(self, extension: "Extension", group: "Group") -> None:
        super().__init__(
            name=group.name,
            help=group.help,
            no_args_is_help=True,
            rich_help_panel=extension.panel,
        )
        self._extension = extension
        self._declared = {each.name: each for each in group.commands}

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names, in the order in which they were declared."""
        return list(self._declared)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """One of them."""
        declared = self._declared.get(cmd_name)
        return None if declared is None else _command_of(self._extension, declared)


def _function_of(extension: "Extension", command: "Command") -> Callable[..., None]:
    """The function that typer reads: the parameters of the command, and `--json`."""
    from penstock.app.extensions import loaded_part
    from penstock.extension import load as load_part

    work = loaded_part(extension, command.run)
    parameters = inspect.signature(work).parameters
    asked = [_explained(each, work) for name, each in parameters.items() if name not in GIVEN]
    by_whom = {"actor": actor()} if "actor" in parameters else {}
    rest = next((name for name, each in parameters.items() if each.kind == each.VAR_POSITIONAL), "")

    def called(ctx: typer.Context, as_json: bool, target: str | None = None, **given: Any) -> None:
        named = session(ctx).names_a_store
        home = None
        if extension.home and not (named or target):
            home = load_part(extension.home)(command.writes)
        app = bare_app(ctx, home) if target is None else load(ctx, target)
        app.extensions.enable_installed()
        app.extensions.enable(extension)
        create = command.writes and (named or home is not None)

        async def opened() -> Any:
            if not command.opens:
                return await called_with()
            if not create:
                await refuse_missing(app.store)
            async with app:
                return await called_with()

        async def called_with() -> Any:
            words = (given.pop(rest) or ()) if rest else ()
            if "progress" not in parameters:
                return await _ended(work(app, *words, **by_whom, **given), as_json=as_json)
            with progress_bars() as progress:
                return await work(app, *words, progress=progress, **by_whom, **given)

        answer = run(opened())
        if answer is not SHOWN_ALREADY:
            show(answer, as_json=as_json)

    own = inspect.Parameter
    context = own("ctx", own.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    keywords = [each.replace(kind=own.KEYWORD_ONLY) for each in asked]
    if command.loads:
        keywords.append(own("target", own.KEYWORD_ONLY, default=None, annotation=AppOption))
    keywords.append(own("as_json", own.KEYWORD_ONLY, default=False, annotation=JsonFlag))
    called.__signature__ = inspect.Signature([context, *keywords])  # type: ignore[attr-defined]
    called.__annotations__ = {p.name: p.annotation for p in (context, *keywords)}
    called.__doc__ = inspect.getdoc(work)
    return called


async def _ended(answering: Any, *, as_json: bool) -> Any:
    """What a command returns in the end; what a generator yields is shown as it comes."""
    from penstock.extension import Shown

    if not inspect.isasyncgen(answering):
        return await answering
    async for each in answering:
        if as_json:
            document = each.document if isinstance(each, Shown) else each
            typer.echo(json_text(_plain_data(document), indent=None))
        else:
            show(each, as_json=False)
    return SHOWN_ALREADY


def _explained(parameter: inspect.Parameter, work: Any) -> inspect.Parameter:
    """A parameter with what typer needs: texts in `Annotated` are its help, and `--x` its name."""
    # One by one: what only a type checker knows, such as that of `app`, cannot be looked up.
    alone = SimpleNamespace(__annotations__={parameter.name: parameter.annotation})
    names = inspect.unwrap(work).__globals__
    hint = get_type_hints(alone, names, include_extras=True)[parameter.name]
    annotation = _annotated(parameter, hint)
    if parameter.kind == parameter.VAR_POSITIONAL:
        return parameter.replace(annotation=annotation, kind=parameter.KEYWORD_ONLY, default=None)
    return parameter.replace(annotation=annotation)


def _annotated(parameter: inspect.Parameter, hint: Any) -> Any:
    kind, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    if any(isinstance(note, ParameterInfo) for note in notes):
        return hint
    texts = [note for note in notes if isinstance(note, str)]
    names = [text for text in texts if text.startswith("-")]
    words = " ".join(text for text in texts if not text.startswith("-")) or None
    if parameter.kind == parameter.VAR_POSITIONAL:
        several = typer.Argument(metavar=f"[{parameter.name.upper()}]...", help=words)
        return Annotated[list[kind] | None, several]  # type: ignore[valid-type]
    if parameter.default is inspect.Parameter.empty:
        return Annotated[kind, typer.Argument(metavar=parameter.name.upper(), help=words)]
    if kind is bool and not names:
        names = [f"--{parameter.name.replace('_', '-')}"]
    return Annotated[kind, typer.Option(*names, help=words)]


def show(answer: Any, *, as_json: bool) -> None:
    """Print what a command returned."""
    from penstock.extension import Shown

    people, document = answer, answer
    if isinstance(answer, Shown):
        people, document = answer.people, answer.document
    if as_json:
        write_json(_plain_data(document))
    else:
        for part in people if isinstance(people, tuple) else (people,):
            _print(part)
    if isinstance(answer, Shown) and answer.failed:
        raise typer.Exit(say(answer.failed, exits.FAILED))


def _print(part: Any) -> None:
    if part is None:
        return
    if isinstance(part, str):
        typer.echo(part)
        return
    data = _plain_data(part)
    out = console()
    if isinstance(data, list):
        rows = [row if isinstance(row, Mapping) else {"value": row} for row in data]
        if rows:
            out.print(_table(rows))
        else:
            typer.echo("There is none.")
    elif isinstance(data, Mapping):
        for name, value in data.items():
            out.print(f"[bold]{plain(_title(name))}[/]  {plain(_cell(value))}")
    else:
        typer.echo(_cell(data))


def _table(rows: list[Mapping[str, Any]]) -> Any:
    """One line per record; the last column takes what room is left."""
    *names, last = rows[0]
    numbers = {n for n in names if all(_is_number(row.get(n)) for row in rows)}
    made = table(*(_title(n).upper() + "#" * (n in numbers) for n in names), note=last.upper())
    for row in rows:
        made.add_row(*_cells(row, (*names, last)))
    return made


def _cells(row: Mapping[str, Any], names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        text = plain(_cell(row.get(name)))
        yield styled(text) if name in ("state", "status") else text


def _title(name: str) -> str:
    return name.replace("_", " ")


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if _is_number(value):
        return f"{value:,g}" if isinstance(value, float) else f"{value:,}"
    if isinstance(value, list):
        return ", ".join(map(_cell, value))
    return str(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _plain_data(value: Any) -> Any:
    import msgspec

    return msgspec.to_builtins(value)
