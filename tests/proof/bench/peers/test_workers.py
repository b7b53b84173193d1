import os
import sys
from pathlib import Path

import pytest

from proof.bench.peers import workers
from proof.bench.peers.workers import worker_group
from proof.bench.processes import ProbeFailed

READY = "print('{\"ready\":true}', flush=True); input()"
DONE = 'print(\'{"done":3,"last_ns":7,"pickups":[1.5]}\', flush=True)'


def command(*lines: str) -> list[str]:
    return [sys.executable, "-c", "\n".join(lines)]


def test_workers_begin_together_and_their_jobs_are_added_up(tmp_path: Path) -> None:
    told = command("print('noise')", READY, DONE, "input()")

    with worker_group("peer", told, dict(os.environ), 2, tmp_path / "log") as group:
        assert group.release() > 0
        assert group.wait_for(6) == 7

    assert group.pickups == [1.5, 1.5]
    assert group.done == 6


def test_a_worker_that_ends_early_is_quoted(tmp_path: Path) -> None:
    told = command(READY, "raise SystemExit('no such server')")

    with worker_group("peer", told, dict(os.environ), 1, tmp_path / "log") as group:
        group.release()
        with pytest.raises(ProbeFailed, match="peer failed: no such server"):
            group.wait_for(1)


def test_a_worker_that_does_nothing_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "STALLED_SECONDS", 0.05)

    told = command(READY, "input()")

    with worker_group("peer", told, dict(os.environ), 1, tmp_path / "log") as group:
        group.release()
        with pytest.raises(ProbeFailed, match="with 0 jobs done"):
            group.wait_for(1)
