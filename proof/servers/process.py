"""One server process: started, waited for, stopped, killed, started again."""

import atexit
import os
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from penstock.model.errors import PenstockError
from proof.servers import places, shared_memory
from proof.servers.account import Account
from proof.servers.leash import Leash

START_SECONDS = 60.0
ASK_AGAIN_SECONDS = 1.0
STOP_SECONDS = 30.0
SUMMARY_SECONDS = 0.005
LAST_LINES = 5


class ServerDidNotStart(PenstockError):
    """A server that ended, or did not answer, when it was started."""

    def __init__(self, server: str, log: Path) -> None:
        self.log = log
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        said = " / ".join(lines[-LAST_LINES:]) or "nothing"
        super().__init__(f"{server} did not start; the end of its log {log} says: {said}")


class Server(ABC):
    """A server of one's own: `with server:` runs it, and nothing of it is left afterwards."""

    name = "A server"
    ending = signal.SIGTERM
    """The signal that makes it stop in good order."""
    abandoned = signal.SIGKILL
    """The signal it gets when the process that owns it was killed."""
    postgres_data: Path | None = None
    """The data directory of a PostgreSQL, whose segment of shared memory survives a SIGKILL."""

    def __init__(self, account: Account, directory: Path | None) -> None:
        self.account = account
        self.home = places.given(directory, account) if directory else places.temporary(account)
        self.sockets = places.temporary(account) if directory else self.home
        self.log = self.home / "log"
        self._litter = [self.sockets]
        self._process: subprocess.Popen[bytes] | None = None
        self._leash: Leash | None = None
        self._owner = os.getpid()
        atexit.register(self._close_at_exit)

    @property
    def pid(self) -> int:
        """The process of the server."""
        if self._process is None:
            raise RuntimeError(f"{self.name} is not running; call start() first.")
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the server was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start on the data that is there; returns when the server answers."""
        if self.running:
            return
        self._forget()
        self._prepare()
        self._process = self.account.popen(self._command(), self.log)
        self._leash = Leash(self._process.pid, self.abandoned, self._litter, self.postgres_data)
        try:
            await_condition(self._settled, START_SECONDS)
        except TimeoutError:
            self.kill()
        if not self.running:
            self._forget()
            raise ServerDidNotStart(self.name, self.log)

    def stop(self) -> None:
        """Stop in good order."""
        self._end(self.ending)

    def kill(self) -> None:
        """End at once, with everything it started, as a power cut would."""
        if self.running:
            kill_family(self.pid)
        self._forget()

    def restart(self) -> None:
        """Stop, then start on the same data and the same addresses."""
        self.stop()
        self.start()

    def close(self) -> None:
        """Kill the server and remove the directories it made for itself."""
        self.kill()
        for directory in self._litter:
            places.remove(directory)
        atexit.unregister(self._close_at_exit)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @abstractmethod
    def _prepare(self) -> None:
        """Make what must be there before the program starts."""

    @abstractmethod
    def _command(self) -> Sequence[str | Path]:
        """The program and its arguments."""

    @abstractmethod
    def _answers(self) -> bool:
        """Whether the server takes connections."""

    def _close_at_exit(self) -> None:
        # A forked child has inherited this, and the server is not its own.
        if os.getpid() == self._owner:
            self.close()

    def _settled(self) -> bool:
        return not self.running or self._answers()

    def _end(self, number: signal.Signals) -> None:
        until = time.monotonic() + STOP_SECONDS
        while self._process is not None and self.running:
            if time.monotonic() > until:
                self.kill()
                return
            # More than once: Redis refuses it while it writes its first append-only file.
            self._process.send_signal(number)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(ASK_AGAIN_SECONDS)
        self._forget()

    def _forget(self) -> None:
        if self._process is not None:
            self._process.wait()
            if self.postgres_data is not None:
                shared_memory.release(self.account, self._process.pid, self.postgres_data)
            self._process = None
        if self._leash is not None:
            self._leash.untie()
            self._leash = None


def await_condition(holds: Callable[[], bool], seconds: float) -> None:
    """Look until something holds; TimeoutError when it takes longer."""
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            raise TimeoutError
        time.sleep(SUMMARY_SECONDS)


def kill_family(pid: int) -> None:
    """Kill a process and all it started, and wait until none of them runs."""
    with suppress(psutil.NoSuchProcess):
        parent = psutil.Process(pid)
        # Stopped first, so that it starts no more children while they are counted.
        parent.suspend()
        family = [parent, *parent.children(recursive=True)]
        for member in family:
            with suppress(psutil.NoSuchProcess):
                member.kill()
        await_condition(lambda: not any(map(runs, family)), STOP_SECONDS)


def runs(process: psutil.Process) -> bool:
    """Whether a process has not ended; one that nobody has waited for yet has."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
