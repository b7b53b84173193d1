"""A pseudo-terminal with a program in it."""

import contextlib
import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

from .conftest import ENVIRONMENT

ALTERNATE, BACK = "\x1b[?1049h", "\x1b[?1049l"


class Terminal:
    """What somebody at a terminal sees of `penstock`, and types into it."""

    def __init__(self, folder: Path, *words: str, columns: int = 80, lines: int = 24) -> None:
        self._master, self._slave = pty.openpty()
        self.resize(columns, lines)
        self.before = self.attributes
        self.seen = ""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "penstock.cli", *words],
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
            cwd=folder,
            env={**ENVIRONMENT, "TERM": "xterm-256color", "COLUMNS": "", "LINES": ""},
            start_new_session=True,
        )

    @property
    def attributes(self) -> list[Any]:
        """How the terminal is set up: echo, line editing and the rest."""
        return termios.tcgetattr(self._slave)

    def resize(self, columns: int, lines: int) -> None:
        """Make the window larger or smaller."""
        size = struct.pack("HHHH", lines, columns, 0, 0)
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, size)

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._master, keys.encode())

    def wait_for(self, text: str, seconds: float = 60) -> None:
        """Read until a text was on the screen since the last wait."""
        start = len(self.seen)
        deadline = time.monotonic() + seconds
        while text not in self.seen[start:]:
            ready, _, _ = select.select([self._master], [], [], deadline - time.monotonic())
            if not ready:
                raise AssertionError(f"{text!r} never came; this did:\n{self.seen[start:]}")
            self._read()

    def ended(self, seconds: float = 60) -> int:
        """Wait for the end of the program; its exit code."""
        code = self.process.wait(seconds)
        while select.select([self._master], [], [], 0)[0]:
            self._read()
        return code

    def close(self) -> None:
        """End what still runs."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        os.close(self._master)
        os.close(self._slave)

    def _read(self) -> None:
        self.seen += os.read(self._master, 65536).decode(errors="replace")
