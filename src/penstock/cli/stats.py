"""`penstock stats`: figures from the store's roll-ups."""

from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.output import (
    Fitted,
    JsonFlag,
    console,
    parse_span,
    plain,
    sparkline,
    table,
    write_json,
)
from penstock.cli.root import Refused
from penstock.cli.session import ask_now
from penstock.model.clock import iso
from penstock.model.wording import counted, span
from penstock.operate.documents import document

if TYPE_CHECKING:
    from rich.table import Table

    from penstock.store.contract import QueueDepth, Store, Window

BARS = 60

Series = list[tuple[int, dict[str, float]]]


def stats(
    ctx: typer.Context,
    window: Annotated[str, typer.Option(metavar="SPAN", help="Look back: 5m, 1h, 7d.")] = "1h",
    tenant: Annotated[str | None, typer.Option(help="Only of this tenant's jobs.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show depths, throughput, success rate and durations."""
    from penstock.operate.stats import open_letters, total_jobs
    from penstock.store.contract.metrics import LONGEST_MS, SHORTEST_MS, resolution_for

    span_ms = parse_span(window, "window")
    if not SHORTEST_MS <= span_ms <= LONGEST_MS:
        raise Refused(f"Option 'window' is {window!r}, but it must be from 10s to 1000d.")
    step = resolution_for(span_ms)

    async def look(store: "Store") -> "tuple[list[QueueDepth], list[Window], int, Series]":
        metrics = store.metrics
        return (
            await metrics.depths(tenant),
            await metrics.window(span_ms, tenant),
            await open_letters(store, tenant),
            await metrics.series(step, span_ms, tenant_id=tenant),
        )

    (depths, windows, dead, series), now = ask_now(ctx, look)
    jobs = total_jobs(windows[0], depths)
    if as_json:
        write_json(
            {
                "at": iso(now),
                "window_ms": span_ms,
                "total_jobs": jobs,
                "total": document(windows[0]),
                "types": [document(row) for row in windows[1:]],
                "queues": [document(depth) for depth in depths],
                "dead_letters": dead,
                "series": [{"at": iso(at)} | values for at, values in series],
            }
        )
        return
    out = console()
    out.print(headline(windows[0], jobs, dead, window))
    width, bars = bars_of(series, step, span_ms, now)
    if any(bars):
        out.print(f"[green]{sparkline(bars)}[/] [dim]completed per {span(width)}[/]")
    if depths:
        out.print()
        out.print(depth_table(depths))
    if len(windows) > 1:
        out.print()
        out.print(window_table(windows[1:]))
    if not depths and len(windows) == 1:
        out.print("Nothing waits and nothing ran; enqueue a job, or try a longer --window.")


def headline(total: "Window", jobs: int, dead: int, window: str) -> str:
    """The figures of all types in a sentence or two."""
    took = ""
    if total.duration_max_ms is not None:
        average, longest = span(total.duration_avg_ms), span(total.duration_max_ms)
        took = f" Executions took {average} on average, {longest} at most."
    rate = "" if total.success_rate is None else f", {total.success_rate:.1%} of jobs succeeded"
    letters = f"[red]{counted(dead, 'dead letter')}[/]" if dead else "no dead letters"
    return (
        f"[bold]{total.completed:,} completed[/] of {counted(jobs, 'job')} in the last "
        f"{plain(window)} ({total.per_minute:,.0f} a minute){rate}; {letters}.{took}"
    )


def bars_of(series: Series, step: int, span_ms: int, now: int) -> tuple[int, list[float]]:
    """Completed jobs in bars of equal width, and that width."""
    width = step * max(1, -(-span_ms // (step * BARS)))
    last = now // width
    bars = [0.0] * max(1, span_ms // width)
    for at, values in series:
        index = len(bars) - 1 - (last - at // width)
        if index >= 0:
            bars[index] += values.get("completed", 0.0)
    return width, bars


def depth_table(depths: "list[QueueDepth]") -> "Table":
    """What stands in each queue."""
    made = table("QUEUE", "QUEUED#", "RUNNING#", "RETRYING#", "PENDING#", "OLDEST QUEUED#")
    for depth in depths:
        made.add_row(
            plain(depth.queue),
            f"{depth.queued:,}",
            f"{depth.in_progress:,}",
            f"{depth.failed:,}",
            f"{depth.pending:,}",
            span(depth.oldest_queued_ms),
        )
    return made


def window_table(windows: "list[Window]") -> Fitted:
    """What each type did."""
    made = table(
        "TYPE",
        "QUEUE",
        "COMPLETED#",
        "FAILED#",
        "DEAD#",
        "RATE#",
        "TOOK#",
        "P50#",
        "P95#",
        "P99#",
        "MAX#",
        "WAITED P95#",
    )
    for row in windows:
        made.add_row(
            plain(row.type),
            plain(row.queue),
            f"{row.completed:,}",
            f"{row.failed:,}",
            f"{row.dead:,}",
            "–" if row.success_rate is None else f"{row.success_rate:.0%}",
            span(row.duration_avg_ms),
            span(row.duration_p50_ms),
            span(row.duration_p95_ms),
            span(row.duration_p99_ms),
            span(row.duration_max_ms),
            span(row.wait_p95_ms),
        )
    return Fitted(made, "P99", "P50", "WAITED P95", "MAX", "QUEUE", "TOOK")
