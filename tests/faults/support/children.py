"""Child processes that run a script of `support/`, spoken to by lines over pipes."""

import json
import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from typing import Any, Self

from tests.support.fork_server import PATHS, ROOT, ForkedProcess, run_module


class Child:
    """`with Child("producer", path) as child:` runs it, and ends it for certain."""

    def __init__(self, script: str, *arguments: object, env: dict[str, str] | None = None) -> None:
        module, words = f"tests.faults.support.{script}", list(map(str, arguments))
        whole = os.environ | {"PYTHONPATH": os.pathsep.join(PATHS)} | (env or {})
        self._process: ForkedProcess | subprocess.Popen[bytes]
        if "LD_PRELOAD" in whole:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                cwd=ROOT,
                env=whole,
                bufsize=0,
                start_new_session=True,
            )
        else:
            pipe = subprocess.PIPE
            self._process = run_module(module, words, stdin=pipe, stdout=pipe, stderr=2, env=whole)
        self._heard = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(ProcessLookupError):  # its own children too, if it has any
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    @property
    def lives(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def tell(self, message: object = None) -> None:
        """Send a line; the child waits for it in `hear()`."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")

    def answer(self, seconds: float = 60) -> Any:
        """The next line the child said."""
        assert self._process.stdout is not None
        while b"\n" not in self._heard:
            ready, _, _ = select.select([self._process.stdout], [], [], seconds)
            more = os.read(self._process.stdout.fileno(), 65_536) if ready else b""
            if not more:
                raise AssertionError(f"the child said nothing more; it ended with {self.wait(1)}")
            self._heard += more
        line, _, self._heard = self._heard.partition(b"\n")
        return json.loads(line)

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def wait(self, seconds: float = 60) -> int:
        """Its exit code."""
        return self._process.wait(seconds)


def say(message: object) -> None:
    """In the child: send a line to the test."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def hear() -> Any:
    """In the child: wait for the test's next line."""
    return json.loads(sys.stdin.readline() or "null")
