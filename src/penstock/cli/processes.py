"""`penstock NAME`: what an extension runs in processes of its own."""

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.root import Refused
from penstock.cli.session import load, pass_on, run, session
from penstock.cli.worker import LogLevel, ReloadFlag

if TYPE_CHECKING:
    from penstock.extension import Extension, Process
    from penstock.worker.extension_process import ProcessSpec

Target = Annotated[
    str | None,
    typer.Argument(
        metavar="MODULE:APP",
        help="Where the application is, e.g. shop.jobs:app.",
        show_default=False,
    ),
]


def processes_of(extensions: "Mapping[str, Extension]") -> "dict[str, Process]":
    """The processes of all extensions, by name."""
    return {each.name: each for found in extensions.values() for each in found.processes}


def process_spec(ctx: typer.Context, name: str, target: str | None, **fields: Any) -> "ProcessSpec":
    """What a process is told."""
    from penstock.worker.extension_process import ProcessSpec

    chosen = session(ctx)
    settings = {"dispatch": chosen.dispatch}
    return ProcessSpec(name=name, target=target, url=chosen.url, settings=settings, **fields)


def command_of(process: "Process") -> Any:
    """The command that runs it."""

    def called(
        ctx: typer.Context,
        target: Target = None,
        words: Annotated[
            list[str] | None,
            typer.Argument(metavar=process.takes, help="Only these.", show_default="all"),
        ] = None,
        processes: Annotated[int, typer.Option(min=1, help="How many processes.")] = 1,
        reload: ReloadFlag = False,
        log_json: Annotated[
            bool, typer.Option("--log-json", help="Log one JSON object per line.")
        ] = False,
        log_level: Annotated[
            LogLevel, typer.Option(help="The least severe messages to log.")
        ] = LogLevel.INFO,
    ) -> None:
        from penstock.logs import configure_logs

        further = words or []
        if target is not None and ":" not in target:
            further = [target, *further]
            target = None
        if further and not process.takes:
            raise Refused(f"`penstock {process.name}` takes a MODULE:APP, not {further[0]!r}.")
        if target is None:
            pass_on(session(ctx))
        else:
            load(ctx, target)
        spec = process_spec(
            ctx,
            process.name,
            target,
            words=tuple(further),
            reload=reload and target is not None,
            log_json=log_json,
            log_level=log_level.value,
        )
        configure_logs(json=log_json, level=log_level)
        raise typer.Exit(run(_supervise(spec, processes)))

    if not process.takes:
        signature = inspect.signature(called)
        kept = [each for each in signature.parameters.values() if each.name != "words"]
        called.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
    called.__doc__ = process.help
    alone = typer.Typer(add_completion=False)
    alone.command(process.name, rich_help_panel=process.panel)(called)
    made = typer.main.get_command(alone)
    made.name = process.name
    return made


async def _supervise(spec: "ProcessSpec", processes: int) -> int:
    """Made here, because a supervisor needs the running event loop."""
    from penstock.worker.extension_process import ProcessSupervisor

    return await ProcessSupervisor(spec, processes).run()
