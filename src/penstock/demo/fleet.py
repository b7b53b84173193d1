"""The worker processes of the demonstration: the command a user would type."""

import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

STOP_SECONDS = 10.0


class Fleet:
    """`penstock worker penstock.demo.jobs:app`, as a child of this process."""

    def __init__(self, url: str, log_file: Path, *, processes: int, concurrency: int) -> None:
        self._arguments = (
            "--url",
            url,
            "worker",
            "penstock.demo.jobs:app",
            f"--processes={processes}",
            f"--concurrency={concurrency}",
            "--name=demo",
            "--log-json",
        )
        self._log_file = log_file
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start the supervisor; it starts the workers."""
        with self._log_file.open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "penstock.cli",
                *self._arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
            )

    @property
    def failed(self) -> str | None:
        """The last thing it said, if it ended by itself."""
        if self._process is None or self._process.returncode is None:
            return None
        lines = self._log_file.read_text("utf-8", errors="replace").splitlines()
        return lines[-1] if lines else f"it exited with code {self._process.returncode}"

    async def stop(self) -> None:
        """Drain; then, if need be, at once; then, if need be, by force."""
        process = self._process
        if process is None:
            return
        for number, seconds in (
            (signal.SIGTERM, STOP_SECONDS),
            (signal.SIGTERM, 3.0),
            (signal.SIGKILL, 3.0),
        ):
            if process.returncode is not None:
                return
            with suppress(ProcessLookupError):
                process.send_signal(number)
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), seconds)


def kill(pid: int) -> bool:
    """End a process the hard way; false when it had already gone."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True
