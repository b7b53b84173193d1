"""The executions of a job on one scale of time, each with the wait before it."""

from collections.abc import Sequence

from markupsafe import Markup
from msgspec import Struct

from penstock.store.contract import Execution

NARROWEST = 0.7
"""In hundredths of the width: what happened is seen, however short it was."""


class Run(Struct, frozen=True):
    """An execution, how its status is called elsewhere, and its part of the scale."""

    execution: Execution
    status: str
    bar: Markup


def runs_of(executions: Sequence[Execution], now: int) -> list[Run]:
    """Executions in the order given, with bars that can be compared by place and by length."""
    begun = min((_queued_at(run) for run in executions), default=now)
    ended = max((_ended_at(run, now) for run in executions), default=now)
    whole = max(1, ended - begun)
    return [
        Run(run, status := _status(run), _bar(run, status, begun, whole, now)) for run in executions
    ]


def _bar(run: Execution, status: str, begun: int, whole: int, now: int) -> Markup:
    waited = 100 * (_queued_at(run) - begun) / whole
    width = max(NARROWEST, 100 * (_ended_at(run, now) - run.started_at) / whole)
    at = min(100 * (run.started_at - begun) / whole, 100 - width)
    return Markup(
        '<svg class="stack took" viewBox="0 0 100 10" preserveAspectRatio="none" '
        'aria-hidden="true">'
        '<rect class="waited" x="{:.2f}" width="{:.2f}" y="3.5" height="3"/>'
        '<rect class="is-{}" x="{:.2f}" width="{:.2f}" height="10"/></svg>'
    ).format(waited, max(0, at - waited), status, at, width)


def _status(run: Execution) -> str:
    return "in_progress" if run.status == "running" else run.status


def _queued_at(run: Execution) -> int:
    return run.started_at - (run.wait_ms or 0)


def _ended_at(run: Execution, now: int) -> int:
    if run.duration_ms is None:
        return max(now, run.started_at)
    return run.started_at + run.duration_ms
