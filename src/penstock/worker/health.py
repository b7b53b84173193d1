"""Whether the processes of one supervisor are well, told by files that each of them keeps fresh.

A file's time of change is when its process last looked for work. A look that the store refuses
counts, too: no restart brings a store back.
"""

import os
import socket
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

REFRESH_SECONDS = 0.5
MAX_AGE_SECONDS = 120.0
SUPERVISOR = "supervisor"


class ProcessHealth(Struct, frozen=True):
    """A process, and how long ago it last gave a sign of life."""

    name: str
    age_seconds: float


def refresh(file: Path, silent_seconds: float = 0.0) -> None:
    """Note that a process looked for work so many seconds ago."""
    seen_at = time.time() - silent_seconds
    # A folder that is gone or full must not end a worker: the check finds a file too old.
    with suppress(OSError):
        if not file.exists():
            file.touch(0o600)
        os.utime(file, (seen_at, seen_at))


@contextmanager
def kept_fresh(
    path: str | None, silent_seconds: Callable[[], float]
) -> Generator[None, None, None]:
    """Keep a file as fresh as its process is, from a thread that nothing else can hold up."""
    if path is None:
        yield
        return
    file, ended = Path(path), threading.Event()

    def run() -> None:
        while not ended.wait(REFRESH_SECONDS):
            refresh(file, silent_seconds())

    thread = threading.Thread(target=run, name="penstock-health", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


class HealthFolder:
    """The files of a supervisor and its workers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def prepare(self) -> None:
        """Make the folder, or empty it of what a supervisor before this one left."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in (SUPERVISOR, "worker-*"):
            for file in self.folder.glob(name):
                file.unlink(missing_ok=True)

    def file_of(self, index: int | None = None) -> Path:
        """The file of a worker, counted from 0, or of the supervisor itself."""
        return self.folder / (SUPERVISOR if index is None else f"worker-{index + 1}")

    def read(self) -> list[ProcessHealth]:
        """Every process that should be alive; none if no supervisor keeps the folder."""
        if not self.file_of().exists():
            return []
        now = time.time()
        found: list[ProcessHealth] = []
        for file in sorted(self.folder.iterdir()):
            with suppress(FileNotFoundError):  # a worker that has ended well in this moment
                age = max(0.0, now - file.stat().st_mtime)
                found.append(ProcessHealth(file.name, age))
        return found

    def silent(self, max_age_seconds: float = MAX_AGE_SECONDS) -> list[ProcessHealth]:
        """The processes that gave no sign of life for too long."""
        return [each for each in self.read() if each.age_seconds > max_age_seconds]


def tell_systemd(*words: str) -> None:
    """Say something to the service manager, if it listens: `READY=1`, `WATCHDOG=1`."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
        line.sendto("\n".join(words).encode(), address)
