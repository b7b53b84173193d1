import json
import math
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from proof.bench import run, run_bench
from proof.bench.stages.enqueue import bulk_enqueue
from tests.support.places import LONG


def measured(directory: Path) -> dict[str, Any]:
    console = Console(file=StringIO(), width=200)
    code = run_bench(
        jobs=40, quick=True, peers=False, as_json=True, directory=directory, console=console
    )
    assert code == 0
    assert isinstance(console.file, StringIO)
    return dict(json.loads(console.file.getvalue()))


# How fast any of it is depends on the machine: no test here looks at a time.
def test_a_stage_is_measured_in_processes_of_its_own_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "_stages", lambda bench, *_: [bulk_enqueue(bench)])
    monkeypatch.setattr(run, "figures", lambda *_: [])
    outcome = measured(tmp_path)

    found = numbers(outcome["readings"])
    assert len(found) >= 3
    assert all(math.isfinite(value) for value in found)
    assert str(tmp_path) not in json.dumps(outcome)
    assert list(tmp_path.iterdir()) == []


def numbers(part: Any) -> list[float]:
    """Every number in a part of the answer."""
    if isinstance(part, dict):
        return numbers(list(part.values()))
    if isinstance(part, list):
        return [number for each in part for number in numbers(each)]
    return [part] if isinstance(part, int | float) else []


@pytest.mark.skipif(not LONG, reason="some thirty processes one after the other: make long")
@pytest.mark.timeout(1800)
def test_a_short_run_has_every_figure_and_leaves_nothing_behind(tmp_path: Path) -> None:
    outcome = measured(tmp_path)

    topics = {figure["topic"] for figure in outcome["figures"]}
    assert topics == {
        "bulk enqueue",
        "single enqueue",
        "drain of 40 by one process",
        "pickup by another process",
        "idle",
        "flows",
        "schedules",
        "explain",
        "memory",
        "server",
        "claims on PostgreSQL",
        "import penstock",
    }
    for figure in outcome["figures"]:
        assert math.isfinite(figure["measured"]), figure
        assert (
            figure["topic"] in ("idle", "import penstock", "schedules") or figure["measured"] > 0
        ), figure
        has_verdict = figure["met"] is not None or figure["doubt"] is not None
        assert figure["target"] is None or has_verdict, figure
        assert (figure["reference"] is None) == (figure["ratio"] is None), figure
    assert outcome["machine"]["SQLite"]
    assert str(tmp_path) not in json.dumps(outcome)
    assert list(tmp_path.iterdir()) == []
