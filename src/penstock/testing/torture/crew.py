"""The processes under torture: bare workers, and a supervisor with workers of its own."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec
import psutil

from penstock.testing.torture.plan import BARE, CHILDREN, SUPERVISOR
from penstock.worker.process import WorkerSpec
from penstock.worker.worker import new_owner

_WORKER = "penstock.worker.process"
_SUPERVISOR = "penstock.testing.torture.supervised"


class Member(msgspec.Struct, frozen=True):
    """A live worker process and the name it leases under; the supervisor leases nothing."""

    process: psutil.Process
    owner: str | None


class Crew:
    """Starts the processes, replaces the dead, and ends them all for certain."""

    def __init__(self, spec: WorkerSpec, log: Path) -> None:
        self.started = 0
        self._spec = msgspec.structs.replace(spec, parent_pid=os.getpid(), log_json=True)
        self._log = log.open("ab")
        self._held: dict[str, subprocess.Popen[bytes]] = {}
        self._owners: dict[str, str] = {}
        self._seen: dict[int, psutil.Process] = {}

    def revive(self) -> None:
        """Start whoever is missing."""
        for slot in (*BARE, SUPERVISOR):
            if slot not in self._held or self._held[slot].poll() is not None:
                self._held[slot] = self._start(slot)
                self.started += 1

    def member(self, slot: str) -> Member | None:
        """Who has this place now, if anybody."""
        if slot in CHILDREN:
            return self._children().get(slot)
        held = self._held.get(slot)
        if held is None or held.poll() is not None:
            return None
        with suppress(psutil.NoSuchProcess):
            return Member(psutil.Process(held.pid), self._owners.get(slot))
        return None

    def owners_under(self, slot: str) -> set[str]:
        """Whose leases suffer when this place is struck."""
        if slot == SUPERVISOR:
            return {child.owner for child in self._children().values() if child.owner}
        member = self.member(slot)
        return {member.owner} if member is not None and member.owner else set()

    def end(self, seconds: float) -> None:
        """Ask everybody to stop, then make sure."""
        self._children()
        for held in self._held.values():
            if held.poll() is None:
                held.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + seconds
        for held in self._held.values():
            with suppress(subprocess.TimeoutExpired):
                held.wait(max(0.0, deadline - time.monotonic()))
        self.kill()

    def kill(self) -> None:
        """End everybody at once, orphans included."""
        self._children()
        for held in self._held.values():
            held.kill()
            held.wait()
        for process in self._seen.values():
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self._log.close()

    def _start(self, slot: str) -> "subprocess.Popen[bytes]":
        if slot == SUPERVISOR:
            module, spec = _SUPERVISOR, self._spec
        else:
            self._owners[slot] = new_owner()
            module = _WORKER
            spec = msgspec.structs.replace(self._spec, owner=self._owners[slot], name=slot)
        return subprocess.Popen(
            [sys.executable, "-m", module, msgspec.json.encode(spec).decode()],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )

    def _children(self) -> dict[str, Member]:
        held = self._held.get(SUPERVISOR)
        if held is None or held.poll() is not None:
            return {}
        with suppress(psutil.NoSuchProcess):
            return dict(self._workers(psutil.Process(held.pid).children()))
        return {}

    def _workers(self, processes: Iterable[psutil.Process]) -> Iterable[tuple[str, Member]]:
        for process in processes:
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                command = process.cmdline()
                if _WORKER in command:
                    self._seen[process.pid] = process
                    name, owner = command[-2:]
                    yield f"child-{name.rpartition('-')[2]}", Member(process, owner)
