"""A command of the real program that goes on until it is told to stop."""

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx
import psutil

from .conftest import ENVIRONMENT

SECONDS = 60.0


class Running:
    """`with Running(tmp_path, "server", "--port", "0") as server: server.get("/healthz")`."""

    def __init__(self, folder: Path, *words: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "penstock.cli", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,
            env={**ENVIRONMENT, **environment},
        )
        self.out = self.err = ""
        self.address = ""

    def __enter__(self) -> "Running":
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.out += line
            found = re.search(r"https?://[^ ;]+", line)
            if found:
                self.address = found[0]
                return self
        raise AssertionError(f"it ended: {self.out}{self.process.communicate(timeout=SECONDS)[1]}")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Signal it and wait; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        out, err = self.process.communicate(timeout=SECONDS)
        self.out, self.err = self.out + out, self.err + err
        return self.process.returncode

    def family(self, part: str = "") -> list[psutil.Process]:
        """Its children, or those whose command line has a part."""
        found = psutil.Process(self.process.pid).children(recursive=True)
        return [child for child in found if part in " ".join(command_of(child))]

    def get(self, path: str, **how: Any) -> httpx.Response:
        """Ask it for something."""
        return httpx.get(f"{self.address}{path}", timeout=SECONDS, **self._trusting(how))

    def post(self, path: str, document: Any, **how: Any) -> httpx.Response:
        """Send it a document."""
        how = self._trusting(how)
        return httpx.post(f"{self.address}{path}", json=document, timeout=SECONDS, **how)

    def _trusting(self, how: dict[str, Any]) -> dict[str, Any]:
        # To read the certificates of the machine takes longer than most answers.
        return {"verify": self.address.startswith("https"), **how}


def command_of(process: psutil.Process) -> list[str]:
    """What a process was started with; nothing if it is gone."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def until(condition: Callable[[], Any], seconds: float = SECONDS) -> Any:
    """Wait for what another process does; what the condition then gives."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError("it did not come about in time")
