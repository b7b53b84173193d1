import json
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from penstock import load_settings
from penstock.worker.process import WorkerSpec
from tests.cli import shop

from .conftest import ENVIRONMENT, Cli
from .terminal import Terminal

APP = "tests.cli.shop:app"


def test_a_burst_runs_everything_and_ends(penstock: Cli, cli: Cli, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'work.db'}"
    made = cli("enqueue", "greet", "--payload", '{"name": "ada"}', "--json").json
    answer = penstock("worker", APP, "--burst", "--url", url, "--log-json", "--concurrency", "2")
    assert answer.code == 0
    events = [json.loads(line)["event"] for line in answer.err.splitlines()]
    assert {"worker_started", "worker_stopped"} <= set(events)
    assert cli("jobs", "show", made["id"], "--json").json["result"] == "hello ada"


def test_the_environment_says_what_a_worker_serves_and_flags_say_it_again(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[WorkerSpec] = []

    async def noted(spec: WorkerSpec, processes: int) -> int:
        seen.append(spec)
        return 0

    monkeypatch.setattr("penstock.cli.worker._supervise", noted)
    monkeypatch.setenv("PENSTOCK_WORKER_TYPES", "greet,doomed")
    monkeypatch.setenv("PENSTOCK_WORKER_QUEUES", "mail")
    monkeypatch.setenv("PENSTOCK_WORKER_NAME", "w1")
    monkeypatch.setattr(shop.app, "settings", load_settings())
    assert cli("worker", APP).code == 0
    assert cli("worker", APP, "--types", "greet", "--queues", "a,b", "--name", "w2").code == 0
    several = ("--queues", "a", "--queues", "b, c", "--types", "greet", "--types", "doomed")
    assert cli("worker", APP, *several, "--name", "w3").code == 0
    assert [(spec.types, spec.queues, spec.name) for spec in seen] == [
        (("greet", "doomed"), ("mail",), "w1"),
        (("greet",), ("a", "b"), "w2"),
        (("greet", "doomed"), ("a", "b", "c"), "w3"),
    ]
    monkeypatch.setattr(shop.app, "settings", load_settings(worker_types=["nothing"]))
    assert cli("worker", APP).says("'nothing'")


def test_a_running_worker_answers_a_waiting_enqueue_and_drains_at_sigterm(
    cli: Cli, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'work.db'}"
    command = (sys.executable, "-m", "penstock.cli", "worker", APP, "--url", url, "--name", "w1")
    with subprocess.Popen(command, cwd=tmp_path, env=ENVIRONMENT, stderr=subprocess.PIPE) as worker:
        assert worker.stderr is not None
        next(line for line in worker.stderr if b"worker_started" in line)
        done = cli("enqueue", "greet", "--payload", '{"name": "ada"}', "--wait", "60s", "--json")
        listed = cli("workers", "ls", "--json").json
        table = cli("workers", "ls").out
        dead = cli("enqueue", "doomed", "--payload", '{"order": "B-1"}', "--wait", "60s")
        worker.send_signal(signal.SIGTERM)
        worker.stderr.read()
    assert done.json["result"] == "hello ada"
    assert [(found["name"], found["alive"]) for found in listed] == [("w1", True)]
    assert "w1" in table
    assert dead.code == 1
    assert "order B-1 can never be done" in dead.err
    assert worker.returncode == 0
    assert cli("workers", "ls", "--json").json == []


SLOW = """
import asyncio

from penstock import Penstock

app = Penstock("sqlite:///work.db")


@app.job
async def slow() -> None:
    await asyncio.sleep(60)
"""


@pytest.mark.thorough
def test_at_a_terminal_it_says_what_a_drain_waits_for_and_how_to_end_it(
    cli: Cli, tmp_path: Path
) -> None:
    (tmp_path / "work.py").write_text(SLOW)
    cli("enqueue", "slow")
    with closing(Terminal(tmp_path, "worker", "work:app", "--log-level", "debug")) as terminal:
        terminal.wait_for("job_claimed")
        terminal.process.send_signal(signal.SIGINT)
        terminal.wait_for("Ctrl-C again hands them back")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.ended() == 0
    (job,) = cli("jobs", "ls", "--json").json
    assert (job["status"], job["attempts"]) == ("queued", 0)


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("none.here:app",), "start in the folder that holds 'none'"),
        (("tests.cli.shop:build",), "module:name of a Penstock application"),
        (("tests.cli.shop:empty",), "register one with @app.job"),
        ((APP, "--types", "unknown"), "known types are"),
        ((APP, "--queues", ","), "at least one"),
        ((APP, "--concurrency", "0"), "--concurrency"),
        ((APP, "--processes", "0"), "--processes"),
        ((APP, "--max-priority", "11"), "--max-priority"),
        ((APP, "--log-level", "loud"), "--log-level"),
        ((), "MODULE:APP"),
    ],
)
def test_wrong_input_is_one_sentence(cli: Cli, words: tuple[str, ...], part: str) -> None:
    answer = cli("worker", *words)
    assert answer.code == 2
    assert answer.says(part)
