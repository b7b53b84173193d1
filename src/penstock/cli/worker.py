"""`penstock worker`: run jobs, under a supervisor."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.root import Refused
from penstock.cli.session import load, run, session
from penstock.cli.values import name_list

if TYPE_CHECKING:
    from penstock.worker.process import WorkerSpec


class LogLevel(StrEnum):
    """How much a worker says."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


Target = Annotated[
    str, typer.Argument(metavar="MODULE:APP", help="Where the application is, e.g. shop.jobs:app.")
]

Queues = Annotated[
    list[str] | None, name_list(metavar="A,B", help="Only these queues.", default="all")
]
Types = Annotated[
    list[str] | None, name_list(metavar="X,Y", help="Only these job types.", default="all")
]
HealthFolder = Annotated[
    Path | None,
    typer.Option(
        "--health",
        metavar="FOLDER",
        help="Keep files there, for nobody else, that `penstock health --worker` judges.",
        show_default=False,
    ),
]


def worker(
    ctx: typer.Context,
    target: Target,
    concurrency: Annotated[
        int | None, typer.Option(min=1, help="Jobs at once per process.", show_default="20")
    ] = None,
    processes: Annotated[int, typer.Option(min=1, help="Worker processes.")] = 1,
    queues: Queues = None,
    types: Types = None,
    max_priority: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=10,
            help="Only jobs of priority 1 (most urgent) to N.",
            show_default="10",
        ),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Its name in `workers ls`.")] = None,
    burst: Annotated[bool, typer.Option("--burst", help="End when no job is left.")] = False,
    health: HealthFolder = None,
    log_json: Annotated[bool, typer.Option("--log-json", help="Log JSON, one object a line.")] = (
        False
    ),
    log_level: Annotated[LogLevel, typer.Option(help="How much to log.")] = LogLevel.INFO,
    log_jobs: Annotated[
        bool, typer.Option("--log-jobs", help="Log each job as it is claimed and as it ends.")
    ] = False,
) -> None:
    """Run jobs until SIGTERM or Ctrl-C, which drain; a second signal ends at once."""
    from penstock.logs import configure_logs

    spec = worker_spec(
        ctx,
        target,
        queues=queues,
        types=types,
        name=name,
        concurrency=concurrency,
        max_priority=max_priority,
        burst=burst,
        health=health,
        log_json=log_json,
        log_level=log_level,
        log_jobs=log_jobs,
    )
    configure_logs(json=log_json, level=log_level)
    raise typer.Exit(run(_supervise(spec, processes)))


async def _supervise(spec: "WorkerSpec", processes: int) -> int:
    """Made here, because a supervisor needs the running event loop."""
    from penstock.worker.supervisor import Supervisor

    return await Supervisor(spec, processes).run()


def worker_spec(
    ctx: typer.Context,
    target: str,
    types: list[str] | None = None,
    queues: list[str] | None = None,
    name: str | None = None,
    health: Path | None = None,
    log_jobs: bool = False,
    **fields: Any,
) -> "WorkerSpec":
    """What a worker process is told; types that the application does not have are refused.

    What no flag says, the settings of the application say.
    """
    from penstock.worker.process import WorkerSpec

    app, chosen = load(ctx, target), session(ctx)
    if not app.types:
        raise Refused(f"The application {target!r} has no job type; register one with @app.job.")
    served = tuple(types or app.settings.worker_types)
    for each in served:
        app.find_type(each)
    beside = {"dispatch": chosen.dispatch, "log_jobs": log_jobs or None}
    return WorkerSpec(
        target=target,
        url=chosen.url,
        settings=beside,
        types=served or None,
        queues=tuple(queues or app.settings.worker_queues) or None,
        name=name or app.settings.worker_name,
        health=None if health is None else str(health.absolute()),
        **fields,
    )
