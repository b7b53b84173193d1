"""`penstock worker`, `workers` and `autoscale`: running jobs, and who does."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.output import (
    Fitted,
    JsonFlag,
    console,
    name_list,
    parse_span,
    plain,
    table,
    write_json,
)
from penstock.cli.root import Refused
from penstock.cli.session import ask_now, load, run, session
from penstock.model.wording import ago, span
from penstock.operate.documents import document

if TYPE_CHECKING:
    from penstock.store.contract import WorkerInfo
    from penstock.worker.autoscale import Policy
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
        help="Write health files into this folder, for `penstock health --worker`.",
        show_default=False,
    ),
]


LogJobs = Annotated[
    bool, typer.Option("--log-jobs", help="Log each job as it is claimed and as it ends.")
]
ReloadFlag = Annotated[
    bool,
    typer.Option("--reload", help="For development: restart when the application's code changes."),
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
    reload: ReloadFlag = False,
    health: HealthFolder = None,
    log_json: Annotated[bool, typer.Option("--log-json", help="Log one JSON object per line.")] = (
        False
    ),
    log_level: Annotated[
        LogLevel, typer.Option(help="The least severe messages to log.")
    ] = LogLevel.INFO,
    log_jobs: LogJobs = False,
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
        reload=reload,
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
    reload: bool = False,
    **fields: Any,
) -> "WorkerSpec":
    """What a worker process is told; types that the application does not have are refused.

    What no flag says, the settings of the application say.
    """
    from penstock.worker.process import WorkerSpec

    app, chosen = load(ctx, target, reload=reload), session(ctx)
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
        reload=reload,
        **fields,
    )


app = typer.Typer(no_args_is_help=True, help="See the workers.")


@app.callback()
def workers() -> None:
    """See the workers."""


@app.command("ls")
def ls(ctx: typer.Context, as_json: JsonFlag = False) -> None:
    """List the workers that are, or recently were, alive."""
    found, now = ask_now(ctx, lambda store: store.workers.list())
    if as_json:
        write_json([document(worker) | {"alive": worker.alive} for worker in found])
    elif found:
        console().print(worker_table(found, now))
    else:
        typer.echo("No workers; start one with `penstock worker module:app`.")


def worker_table(found: "list[WorkerInfo]", now: int) -> Fitted:
    """One line per worker."""
    made = table(
        "NAME",
        "PID#",
        "STATE",
        "BUSY#",
        "COMPLETED#",
        "FAILED#",
        "CPU#",
        "MEMORY#",
        "LAST POLL",
        "UPTIME",
        note="QUEUES",
    )
    for worker in found:
        made.add_row(
            plain(worker.name),
            str(worker.pid),
            state(worker),
            f"{worker.running}/{worker.concurrency}",
            f"{worker.completed:,}",
            f"{worker.failed:,}",
            f"{worker.cpu_percent:.0f} %",
            f"{worker.memory_mb:.0f} MB",
            f"{span(worker.poll_age_ms + worker.heartbeat_age_ms)} ago",
            ago(worker.started_at, now).removesuffix(" ago"),
            plain(", ".join(worker.queues)) if worker.queues else "all",
        )
    return Fitted(made, "UPTIME", "CPU", "LAST POLL", "PID")


def state(worker: "WorkerInfo") -> str:
    """Running, draining, degraded (the store fails it), or silent for too long."""
    if not worker.alive:
        return f"[red]silent {ago(0, worker.heartbeat_age_ms).removesuffix(' ago')}[/]"
    return f"[{'green' if worker.state == 'running' else 'yellow'}]{worker.state}[/]"


def autoscale(
    ctx: typer.Context,
    target: Target,
    least: Annotated[int, typer.Option("--min", min=0, help="At least this many workers.")] = 1,
    most: Annotated[int, typer.Option("--max", min=1, help="At most this many workers.")] = 4,
    up_depth: Annotated[
        int, typer.Option(metavar="N", min=1, help="Start a worker above this many queued jobs.")
    ] = 100,
    down_depth: Annotated[
        int, typer.Option(metavar="N", min=0, help="Stop a worker below this many queued jobs.")
    ] = 10,
    up_wait: Annotated[
        str, typer.Option(metavar="SPAN", help="Start a worker when jobs wait longer than this.")
    ] = "5m",
    up_cpu: Annotated[
        float,
        typer.Option(metavar="PERCENT", min=1, help="Start a worker when they use more of a core."),
    ] = 80,
    cool_down: Annotated[
        str, typer.Option(metavar="SPAN", help="Wait this long between two changes.")
    ] = "60s",
    calm: Annotated[
        str, typer.Option(metavar="SPAN", help="Stop a worker only after this much calm.")
    ] = "2m",
    interval: Annotated[str, typer.Option(metavar="SPAN", help="How often to look.")] = "5s",
    concurrency: Annotated[
        int | None, typer.Option(min=1, help="Jobs at once per process.", show_default="20")
    ] = None,
    queues: Queues = None,
    types: Types = None,
    name: Annotated[str | None, typer.Option(help="Their name in `workers ls`.")] = None,
    health: HealthFolder = None,
    log_json: Annotated[bool, typer.Option("--log-json", help="Log one JSON object per line.")] = (
        False
    ),
    log_level: Annotated[
        LogLevel, typer.Option(help="The least severe messages to log.")
    ] = LogLevel.INFO,
) -> None:
    """Run more or fewer workers as the load changes; a worker that is stopped finishes its jobs."""
    from penstock.logs import configure_logs
    from penstock.worker.autoscale import Policy

    _refuse(least > most, "min", least, f"at most --max, which is {most}")
    _refuse(down_depth > up_depth, "down-depth", down_depth, f"at most --up-depth {up_depth}")
    seconds = parse_span(interval, "interval") / 1000
    _refuse(seconds <= 0, "interval", interval, "more than 0")
    policy = Policy(
        least=least,
        most=most,
        up_depth=up_depth,
        down_depth=down_depth,
        up_wait=parse_span(up_wait, "up-wait") / 1000,
        up_cpu=up_cpu,
        cool_down=parse_span(cool_down, "cool-down") / 1000,
        calm=parse_span(calm, "calm") / 1000,
    )
    spec = worker_spec(
        ctx,
        target,
        queues=queues,
        types=types,
        name=name,
        concurrency=concurrency,
        health=health,
        log_json=log_json,
        log_level=log_level,
    )
    configure_logs(json=log_json, level=log_level)
    raise typer.Exit(run(_scale(spec, policy, seconds)))


async def _scale(spec: "WorkerSpec", policy: "Policy", interval: float) -> int:
    """Made here, because a crew needs the running event loop."""
    from penstock.worker.autoscale import Crew

    return await Crew(spec, policy, interval).run()


def _refuse(wrong: bool, option: str, value: object, expected: str) -> None:
    if wrong:
        raise Refused(f"Option {option!r} is {value!r}, but it must be {expected}.")
