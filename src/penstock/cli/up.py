"""`penstock up`: everything at once, on one store."""

from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.output import parse_span
from penstock.cli.processes import process_spec
from penstock.cli.server import (
    AccessLog,
    Certificate,
    Host,
    Key,
    LogJson,
    OpenFlag,
    Port,
    Proxies,
    RootPath,
    Target,
    bind_of,
    has_screen,
    served_app,
    server_spec,
)
from penstock.cli.session import run
from penstock.cli.worker import LogJobs, LogLevel, ReloadFlag, worker_spec

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.server.serve import ServerSpec
    from penstock.worker.extension_process import ProcessSpec
    from penstock.worker.process import WorkerSpec

GREETING = "Penstock is up at {address} on {store}; Ctrl-C stops everything."
WITHOUT_WORKERS = (
    "Penstock is up at {address} on {store}, without workers: "
    "`penstock up module:app` runs the jobs of an application. Ctrl-C stops everything."
)


def up(
    ctx: typer.Context,
    target: Target = None,
    processes: Annotated[
        int, typer.Option(min=1, help="Worker processes; none without an application.")
    ] = 1,
    concurrency: Annotated[
        int | None, typer.Option(min=1, help="Jobs at once per process.", show_default="20")
    ] = None,
    host: Host = None,
    port: Port = None,
    certificate: Certificate = None,
    key: Key = None,
    proxies: Proxies = None,
    root_path: RootPath = None,
    opens: OpenFlag = False,
    reload: ReloadFlag = False,
    stop_after: Annotated[
        str | None,
        typer.Option("--for", metavar="SPAN", help="Stop after this long: 90s, 15m."),
    ] = None,
    access_log: AccessLog = False,
    log_json: LogJson = False,
    log_level: Annotated[
        LogLevel | None,
        typer.Option(
            help="The least severe messages to log.",
            show_default="info of workers, warning of the server",
        ),
    ] = None,
    log_jobs: LogJobs = False,
) -> None:
    """Start the API, the dashboard, workers and upkeep; a part that crashes is replaced."""
    from penstock.logs import configure_logs
    from penstock.worker.extension_process import wanted_processes

    seconds = None if stop_after is None else parse_span(stop_after, "for") / 1000
    app = served_app(ctx, target, reload=reload)
    level = log_level or LogLevel.INFO
    logged = {"log_json": log_json, "log_level": level.value, "reload": reload}
    beside = [process_spec(ctx, each.name, target, **logged) for each in wanted_processes(app)]
    workers: WorkerSpec | None = None
    if target is not None and (app.types or not beside):
        workers = worker_spec(
            ctx,
            target,
            concurrency=concurrency,
            log_json=log_json,
            log_level=level,
            log_tracebacks=not log_json,
            log_jobs=log_jobs,
            reload=reload,
        )
    server = server_spec(
        ctx,
        target,
        bind_of(app.settings, host, port, certificate, key, proxies, root_path),
        upkeep=True,
        greeting=GREETING if workers or beside else WITHOUT_WORKERS,
        opens_browser=opens and has_screen(),
        access_log=access_log,
        reload=reload and target is not None,
        log_json=log_json,
        log_level=(log_level or LogLevel.WARNING).value,
    )
    configure_logs(json=log_json, level=log_level or LogLevel.WARNING)
    raise typer.Exit(run(_everything(app, server, workers, processes, beside, seconds)))


async def _everything(
    app: "Penstock",
    server: "ServerSpec",
    workers: "WorkerSpec | None",
    processes: int,
    beside: "list[ProcessSpec]",
    seconds: float | None,
) -> int:
    """Made here, because the parts need the running event loop."""
    import asyncio

    from penstock.server.serve import bind_socket
    from penstock.server.up import Up

    with await bind_socket(app, server.bind) as taken:
        everything = Up(server, taken, workers, processes, beside)
        if seconds is not None:
            asyncio.get_running_loop().call_later(seconds, everything.stop)
        return await everything.run()
