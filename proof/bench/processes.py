"""Starting the processes that are measured, and ending them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import msgspec
import psutil

from penstock.server.serve import Bind, ServerSpec, listen
from penstock.worker.process import WorkerSpec
from proof.bench.call import Call
from proof.bench.workload import TARGET

STOP_SECONDS = 20.0
READY_SECONDS = 60.0
PROBE_SECONDS = 1_800.0
SETTLING_SECONDS = 1.0


class ProbeFailed(RuntimeError):
    """A measured process ended badly."""

    def __init__(self, name: str, output: str) -> None:
        last = output.strip().splitlines()[-1:] or ["it said nothing"]
        super().__init__(f"The measurement {name} failed: {last[0]}")
        self.output = output


def probe(name: str, path: Path, **arguments: Any) -> Any:
    """Run a probe on a file in a fresh process; its answer."""
    return ask_probe(name, {"path": str(path), **arguments})


def ask_probe(name: str, arguments: Mapping[str, Any]) -> Any:
    """Run a probe in a fresh process; its answer."""
    return answer(name, _command(name, arguments))


def answer(name: str, command: list[str], environment: Mapping[str, str] | None = None) -> Any:
    """Run a command that prints JSON on its last line."""
    ended = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=PROBE_SECONDS,
        check=False,
        env={**os.environ, **(environment or {})},
    )
    if ended.returncode != 0:
        raise ProbeFailed(name, ended.stderr or ended.stdout)
    return msgspec.json.decode(ended.stdout.splitlines()[-1])


@contextmanager
def worker_process(path: Path, concurrency: int) -> Generator[psutil.Process, None, None]:
    """A worker on a file, as `penstock worker` starts it."""
    spec = WorkerSpec(
        target=TARGET, url=f"sqlite:///{path}", concurrency=concurrency, log_level="error"
    )
    text = msgspec.json.encode(spec).decode()
    with _running([sys.executable, "-m", "penstock.worker.process", text]) as process:
        probe("client.wait_for_worker", path)
        yield psutil.Process(process.pid)


@contextmanager
def supervised_worker(path: Path) -> Generator[tuple[psutil.Process, psutil.Process], None, None]:
    """A supervisor on a file and its one worker."""
    with _running(_command("worker.supervise", {"path": str(path)})) as process:
        probe("client.wait_for_worker", path)
        supervisor = psutil.Process(process.pid)
        yield supervisor, supervisor.children()[0]


@contextmanager
def server_process(path: Path) -> Generator[tuple[psutil.Process, str], None, None]:
    """A server on a file, as `penstock up` starts it, and its address; nobody asks too often."""
    bind = Bind(host="127.0.0.1", port=0)
    spec = ServerSpec(
        bind=bind,
        target=TARGET,
        url=f"sqlite:///{path}",
        settings={"requests_per_minute": 0},
        log_level="error",
        parent_pid=os.getpid(),
    )
    text = msgspec.json.encode(spec).decode()
    with listen(bind) as taken:
        address, number = bind.address(taken.getsockname()[1]), taken.fileno()
        command = [sys.executable, "-m", "penstock.server.process", text, str(number)]
        with _running(command, number) as process:
            # Whoever asks a server that died should be refused, not kept waiting.
            taken.close()
            _wait_for_server(address)
            yield psutil.Process(process.pid), address


def _wait_for_server(address: str) -> None:
    asked = HTTPConnection(address.removeprefix("http://"), timeout=READY_SECONDS)
    try:
        asked.request("GET", "/healthz")
        asked.getresponse()
    except (OSError, HTTPException) as error:
        raise ProbeFailed("of the server", f"it did not answer: {error}") from error
    finally:
        asked.close()


def cpu_percents(seconds: float, *processes: psutil.Process) -> list[float]:
    """How much of a core each of them uses for so long, once they have settled."""
    time.sleep(SETTLING_SECONDS)
    before = [_cpu_seconds(process) for process in processes]
    began = time.perf_counter()
    time.sleep(seconds)
    passed = time.perf_counter() - began
    return [
        100 * (_cpu_seconds(process) - used) / passed
        for process, used in zip(processes, before, strict=True)
    ]


def _cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


@contextmanager
def _running(
    command: list[str], *inherited: int
) -> Generator["subprocess.Popen[bytes]", None, None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, pass_fds=inherited)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _command(name: str, arguments: Mapping[str, Any]) -> list[str]:
    call = msgspec.json.encode(Call(name, dict(arguments))).decode()
    return [sys.executable, "-m", "proof.bench.child", call]
