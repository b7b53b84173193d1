import json
import math
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from penstock.bench import run_bench


def measured(directory: Path) -> dict[str, Any]:
    console = Console(file=StringIO(), width=200)
    code = run_bench(
        jobs=40, quick=True, peers=False, as_json=True, directory=directory, console=console
    )
    assert code == 0
    assert isinstance(console.file, StringIO)
    return dict(json.loads(console.file.getvalue()))


# How fast any of it is depends on the machine: no test here looks at a time.
@pytest.mark.timeout(300)
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
