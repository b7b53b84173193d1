"""`penstock health --worker`: of real processes that are frozen, killed, or without their store."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from proof.servers import RedisServer

from .conftest import ENVIRONMENT, Answer, Cli
from .running import command_of, until

APP = "tests.cli.shop:app"


@contextmanager
def worker(folder: Path, url: str, *words: str) -> Iterator[psutil.Process]:
    """A worker that keeps files in the folder `health`."""
    command = [sys.executable, "-m", "penstock.cli", "worker", APP, "--url", url, *words]
    process = subprocess.Popen(
        [*command, "--health", "health"], cwd=folder, env=ENVIRONMENT, stderr=subprocess.DEVNULL
    )
    try:
        yield psutil.Process(process.pid)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(60)


def children(parent: psutil.Process) -> list[psutil.Process]:
    """Its worker processes."""
    return [child for child in parent.children() if "penstock.worker.process" in command_of(child)]


def name_of(child: psutil.Process) -> str:
    """What the files call a worker process."""
    return command_of(child)[-2]


def looks(folder: Path, *names: str, after: float) -> None:
    """Wait until these processes looked for work after that time."""
    files = [folder / "health" / name for name in names]
    until(lambda: all(file.exists() and file.stat().st_mtime > after for file in files))


@pytest.mark.thorough
def test_every_process_of_a_worker_counts(cli: Cli, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'work.db'}"
    check = ("health", "--worker", "health")
    with worker(tmp_path, url, "--processes", "2") as parent:
        until(lambda: len(children(parent)) == 2)
        for _ in range(2):  # first they have started, then they have looked
            looks(tmp_path, "supervisor", "worker-1", "worker-2", after=time.time())
        well = cli(*check)
        assert (well.code, well.out) == (0, "supervisor, worker-1, worker-2: healthy.\n")

        first, second = children(parent)
        first.suspend()
        until(lambda: name_of(first) in _unwell(cli(*check, "--max-age", "1s", "--json")))
        first.resume()
        second.kill()
        second.wait(60)
        looks(tmp_path, "worker-1", "worker-2", after=time.time())

        parent.suspend()
        until(lambda: "supervisor" in _unwell(cli(*check, "--max-age", "1s", "--json")))
        parent.resume()
        looks(tmp_path, "supervisor", after=time.time())
    ended = cli(*check)
    assert (ended.code, list((tmp_path / "health").iterdir())) == (1, [])
    assert "No worker keeps health" in ended.out


def _unwell(answer: Answer) -> list[str]:
    """The names of the processes that the answer calls too silent."""
    assert (answer.json["status"] == "unhealthy") is (answer.code == 1)
    return [p["name"] for p in answer.json["processes"] if answer.code and p["age_seconds"] > 1]


@pytest.mark.thorough
def test_a_store_that_is_away_makes_no_worker_unhealthy(cli: Cli, tmp_path: Path) -> None:
    with RedisServer() as server, worker(tmp_path, server.url) as parent:
        until(lambda: children(parent))
        for _ in range(2):
            looks(tmp_path, "worker-1", after=time.time())
        server.kill()
        looks(tmp_path, "worker-1", after=time.time() + 1)
        (child,) = children(parent)
        child.kill()  # the one that takes its place cannot even open the store
        child.wait(60)
        looks(tmp_path, "worker-1", after=time.time())
        assert cli("health", "--worker", "health").code == 0
