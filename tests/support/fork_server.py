"""A process with Penstock already imported that forks a child for each module a test runs.

Most of what a short test process costs is its imports. `run_module` starts a module as
`python -m module` would, in a child of a server that imported the libraries once. There is one
server for each process of pytest. It starts with the first call and ends when its socket closes,
so also when pytest is killed.

At the time of a fork the server has no thread, no event loop, no open store and none of the modules
of the tests. The child gets its own session, environment, standard streams and no other descriptor.
Its exit runs through the end of the interpreter like any other. It is a child of the server, and
its command line is the server's: use `subprocess` for tests that look at either, and for variables
that Python or the loader read at start-up, such as `LD_PRELOAD`.
"""

import atexit
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parents[2]
PATHS = (str(ROOT), str(ROOT / "src"))
IMPORTED = (
    "penstock.worker.process",
    "penstock.store.sqlite.store",
    "penstock.store.postgres.store",
    "penstock.store.redis.store",
    "penstock.upkeep.leader",
)
NUMBER = struct.Struct("i")
REQUEST_LIMIT_BYTES = 128 * 1024
"""A datagram of a local socket, which holds a request, can have no more than about 200 KB."""


class ForkedProcess:
    """A module that runs in a child of the fork server; used like a `subprocess.Popen`."""

    def __init__(self, status: int, stdin: IO[bytes] | None, stdout: IO[bytes] | None) -> None:
        self._status = os.fdopen(status, "rb", buffering=0)
        self.stdin = stdin
        self.stdout = stdout
        self.returncode: int | None = None
        self.pid = self._read_number()

    def poll(self) -> int | None:
        """Return the exit code, or None while the process runs."""
        if self.returncode is None and select.select([self._status], [], [], 0)[0]:
            self._finish()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code; raise `subprocess.TimeoutExpired` if it takes too long."""
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("forked process", timeout or 0)
            self._finish()
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Signal the process unless it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL unless the process has ended."""
        self.send_signal(signal.SIGKILL)

    def _finish(self) -> None:
        self.returncode = os.waitstatus_to_exitcode(self._read_number())
        self._status.close()

    def _read_number(self) -> int:
        data = self._status.read(NUMBER.size)
        if len(data) != NUMBER.size:
            raise RuntimeError("The fork server ended.")
        return int(NUMBER.unpack(data)[0])


def run_module(
    module: str,
    arguments: Sequence[str],
    *,
    stdin: int,
    stdout: int,
    stderr: int,
    env: Mapping[str, str],
) -> ForkedProcess:
    """Run a module in the root of the repository, in a session of its own.

    A stream is a descriptor; `stdin` and `stdout` may also be `subprocess.PIPE`.
    """
    status, reported = os.pipe()
    ours: dict[str, IO[bytes]] = {}
    theirs = [reported]
    if stdin == subprocess.PIPE:
        stdin, writing = os.pipe()
        ours["stdin"] = os.fdopen(writing, "wb", buffering=0)
        theirs.append(stdin)
    if stdout == subprocess.PIPE:
        reading, stdout = os.pipe()
        ours["stdout"] = os.fdopen(reading, "rb", buffering=0)
        theirs.append(stdout)
    request = json.dumps([module, list(arguments), dict(env)]).encode()
    assert len(request) < REQUEST_LIMIT_BYTES, "The arguments are too long for the fork server."
    socket.send_fds(_server(), [request], [stdin, stdout, stderr, reported])
    for descriptor in theirs:
        os.close(descriptor)
    return ForkedProcess(status, ours.get("stdin"), ours.get("stdout"))


@cache
def _server() -> socket.socket:
    """Start the fork server of this process and return the socket for requests."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.fork_server", str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(PATHS)},
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


def _fork_for_each_request(requests: socket.socket) -> str:
    """Fork a child for each request; in the child, return the module to run.

    In the server, exit when the other end of the socket is closed.
    """
    running: dict[int, tuple[int, int]] = {}
    poller = select.poll()
    poller.register(requests, select.POLLIN)
    while True:
        for ready, _ in poller.poll():
            if ready in running:
                pid, reported = running.pop(ready)
                poller.unregister(ready)
                os.close(ready)
                with suppress(BrokenPipeError):  # nobody waits for it any more
                    os.write(reported, NUMBER.pack(os.waitpid(pid, 0)[1]))
                os.close(reported)
                continue
            request, descriptors, _, _ = socket.recv_fds(requests, REQUEST_LIMIT_BYTES, 4)
            if not request:
                sys.exit()
            pid = os.fork()
            if not pid:
                return _become(request, descriptors)
            *streams, reported = descriptors
            for descriptor in streams:
                os.close(descriptor)
            watched = os.pidfd_open(pid)
            running[watched] = pid, reported
            poller.register(watched, select.POLLIN)


def _become(request: bytes, descriptors: list[int]) -> str:
    """Make this child look like a new process and return the module that it is to run."""
    module, arguments, env = json.loads(request)
    os.setsid()
    *streams, reported = descriptors
    os.write(reported, NUMBER.pack(os.getpid()))
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
    os.closerange(3, max(map(int, os.listdir("/proc/self/fd"))) + 1)
    sys.stdin = sys.__stdin__ = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = sys.__stdout__ = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(  # noqa: SIM115
        2, "w", buffering=1, errors="backslashreplace", closefd=False
    )
    os.environ.clear()
    os.environ.update(env)
    sys.argv[1:] = arguments
    sys.modules.pop(module, None)
    return str(module)


def main() -> None:
    """Import the libraries, serve requests, and in each child run the module."""
    requests = socket.socket(fileno=int(sys.argv[1]))
    for name in IMPORTED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # a collection would write to, and so copy, every page that children share
    runpy.run_module(_fork_for_each_request(requests), run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
