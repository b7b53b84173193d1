"""`penstock autoscale`: as many worker processes as there is work for."""

from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.root import Refused
from penstock.cli.session import run
from penstock.cli.values import parse_span
from penstock.cli.worker import HealthFolder, LogLevel, Queues, Target, Types, worker_spec

if TYPE_CHECKING:
    from penstock.worker.autoscale.decide import Policy
    from penstock.worker.process import WorkerSpec


def autoscale(
    ctx: typer.Context,
    target: Target,
    least: Annotated[int, typer.Option("--min", min=0, help="Workers at least.")] = 1,
    most: Annotated[int, typer.Option("--max", min=1, help="Workers at most.")] = 4,
    up_depth: Annotated[
        int, typer.Option(metavar="N", min=1, help="More above so many queued jobs.")
    ] = 100,
    down_depth: Annotated[
        int, typer.Option(metavar="N", min=0, help="Fewer below so many queued jobs.")
    ] = 10,
    up_wait: Annotated[
        str, typer.Option(metavar="SPAN", help="More when jobs waited longer.")
    ] = "5m",
    up_cpu: Annotated[
        float, typer.Option(metavar="PERCENT", min=1, help="More when workers use more of a core.")
    ] = 80,
    cool_down: Annotated[
        str, typer.Option(metavar="SPAN", help="No change so soon after another.")
    ] = "60s",
    calm: Annotated[str, typer.Option(metavar="SPAN", help="Fewer only after so long.")] = "2m",
    interval: Annotated[str, typer.Option(metavar="SPAN", help="Look so often.")] = "5s",
    concurrency: Annotated[
        int | None, typer.Option(min=1, help="Jobs at once per process.", show_default="20")
    ] = None,
    queues: Queues = None,
    types: Types = None,
    name: Annotated[str | None, typer.Option(help="Their name in `workers ls`.")] = None,
    health: HealthFolder = None,
    log_json: Annotated[bool, typer.Option("--log-json", help="Log JSON, one object a line.")] = (
        False
    ),
    log_level: Annotated[LogLevel, typer.Option(help="How much to log.")] = LogLevel.INFO,
) -> None:
    """Run workers, more or fewer as the load has it; those that are stopped finish their jobs."""
    from penstock.logs import configure_logs
    from penstock.worker.autoscale.decide import Policy

    _refuse(least > most, "min", least, f"at most --max, which is {most}")
    _refuse(down_depth > up_depth, "down-depth", down_depth, f"at most --up-depth {up_depth}")
    seconds = parse_span(interval, "interval") / 1000
    _refuse(seconds <= 0, "interval", interval, "longer than nothing")
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
    from penstock.worker.autoscale.crew import Crew

    return await Crew(spec, policy, interval).run()


def _refuse(wrong: bool, option: str, value: object, expected: str) -> None:
    if wrong:
        raise Refused(f"Option {option!r} is {value!r}, but it must be {expected}.")
