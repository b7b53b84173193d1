import re
from typing import Any

from penstock.server.dashboard.views.job import NARROWEST, runs_of
from penstock.store.contract import Execution


def an_execution(fence: int, started_at: int, duration_ms: int | None, **fields: Any) -> Execution:
    empty = dict.fromkeys(Execution.__struct_fields__)
    facts = {"job_id": "a", "fence": fence, "status": "failed", "wait_ms": 0}
    placed = {"started_at": started_at, "duration_ms": duration_ms}
    return Execution(**{**empty, **facts, **placed, **fields})  # type: ignore[arg-type]


def bar(drawn: str) -> tuple[float, float]:
    [(x, width)] = re.findall(r'class="is-\w+" x="([\d.]+)" width="([\d.]+)"', drawn)
    return float(x), float(width)


def test_executions_stand_on_one_scale() -> None:
    runs = runs_of([an_execution(2, 900, 100), an_execution(1, 0, 500)], now=1_000)
    assert [bar(run.bar) for run in runs] == [(90, 10), (0, 50)]


def test_what_was_short_is_seen_and_stays_inside() -> None:
    first, last = runs_of([an_execution(1, 0, 0), an_execution(2, 1_000_000, 0)], now=0)
    assert bar(first.bar) == (0, NARROWEST)
    assert bar(last.bar) == (100 - NARROWEST, NARROWEST)


def test_one_that_runs_goes_on_until_now_and_its_wait_is_drawn() -> None:
    [run] = runs_of([an_execution(1, 500, None, status="running", wait_ms=500)], now=1_000)
    assert run.status == "in_progress"
    assert bar(run.bar) == (50, 50)
    assert 'class="waited" x="0.00" width="50.00"' in run.bar
