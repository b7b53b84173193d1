import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from penstock.demo.screen import Account

from .conftest import ENVIRONMENT, Cli


@pytest.mark.timeout(300)
@pytest.mark.thorough
def test_without_a_terminal_it_tells_the_story_in_lines_and_adds_up(
    penstock: Cli, tmp_path: Path
) -> None:
    answer = penstock("demo", "--seconds", "5", timeout=280)
    assert answer.code == 0, answer.out + answer.err
    for part in (
        "The bank is away",
        "dead letter",
        "kill -9",
        "Rescued",
        "Why does it",
        "It adds up",
    ):
        assert part in answer.out
    assert "\x1b" not in answer.out
    assert not list(tmp_path.glob("penstock-demo-*"))


@pytest.mark.thorough
def test_interrupted_it_leaves_no_process_and_no_file_behind(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "penstock.cli", "demo", "--plain"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**ENVIRONMENT, "TMPDIR": str(tmp_path)},
    )
    assert process.stdout is not None
    for line in process.stdout:
        if "workers are up" in line:
            break
    children = psutil.Process(process.pid).children(recursive=True)
    assert children
    process.send_signal(signal.SIGINT)
    rest = process.communicate(timeout=60)[0]
    assert process.returncode == 130
    assert "no worker is left behind" in rest
    _, alive = psutil.wait_procs(children, timeout=60)
    assert not alive
    assert not list(tmp_path.glob("penstock-demo-*"))


@pytest.mark.parametrize(
    ("changes", "adds_up"),
    [
        ({}, True),
        ({"lost": 1}, False),
        ({"unfinished": 1}, False),
        ({"completed": 8}, False),
    ],
)
def test_the_numbers_add_up_only_if_every_job_ended(changes: dict[str, int], adds_up: bool) -> None:
    counts = {
        "enqueued": 10,
        "completed": 9,
        "dead": 1,
        "unfinished": 0,
        "lost": 0,
        "retried": 2,
        "rescued": 1,
        "executions": 12,
    }
    assert Account(**(counts | changes)).adds_up is adds_up


def test_too_short_a_play_is_one_sentence(cli: Cli) -> None:
    answer = cli("demo", "--seconds", "1")
    assert answer.code == 2
    assert answer.says("--seconds")
