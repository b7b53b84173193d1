"""The processes under torture, and carrying out the plan against them."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec
import psutil

from penstock.model.store_errors import StoreError
from penstock.torture.plan import BARE, CHILDREN, SERVER, SUPERVISOR, Blow, Strike
from penstock.worker.process import WorkerSpec
from penstock.worker.worker import new_owner

_WORKER = "penstock.worker.process"
_SUPERVISOR = "penstock.torture.supervised"


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


READY_SECONDS = 20.0
LOOK_SECONDS = 0.02
TWICE_SECONDS = 0.05


class Chaos:
    """Strikes workers that are at work, and remembers whose leases it cost.

    A server is struck whatever it does; that explains no lost lease of a worker.
    """

    def __init__(
        self,
        crew: Crew,
        plan: list[Strike],
        *,
        freeze_seconds: float,
        harm: Mapping[Blow, Callable[[], None]],
        working: Callable[[], Awaitable[set[str]]],
        busy: Callable[[], Awaitable[set[str]]],
    ) -> None:
        self.done: Counter[Blow] = Counter()
        self.struck: set[str] = set()
        self._crew = crew
        self._plan = plan
        self._freeze_seconds = freeze_seconds
        self._harm = harm
        self._working = working
        self._busy = busy
        self._frozen: dict[str, psutil.Process] = {}
        self._thawing: set[asyncio.Task[None]] = set()

    @property
    def struck_server(self) -> bool:
        """Whether the server was struck as well."""
        return any(self.done[blow] for blow in self._harm)

    async def run(self) -> None:
        """Strike by strike; returns when the last frozen worker goes on again."""
        began = time.monotonic()
        for strike in self._plan:
            await asyncio.sleep(max(0.0, began + strike.at - time.monotonic()))
            if strike.slot == SERVER:
                await asyncio.to_thread(self._harm[strike.blow])
                self.done[strike.blow] += 1
                continue
            # Only a worker frozen in the middle of a job has something stale to say afterwards.
            owners = self._busy if strike.blow is Blow.FREEZE else self._working
            victim = await self._find(strike.slot, owners)
            if victim is not None:
                await self._strike(strike.blow, *victim)
        if self._thawing:
            await asyncio.wait(self._thawing)

    def thaw(self) -> None:
        """Let every frozen process go on."""
        for process in self._frozen.values():
            with suppress(psutil.NoSuchProcess):
                process.resume()
        self._frozen.clear()

    async def _find(
        self, wanted: str, owners: Callable[[], Awaitable[set[str]]]
    ) -> tuple[str, Member] | None:
        """Whoever has the place and is at work; if nobody comes, another worker is struck."""
        deadline = time.monotonic() + READY_SECONDS
        patience = time.monotonic() + READY_SECONDS / 10
        while time.monotonic() < deadline:
            eligible: set[str] = set()
            with suppress(StoreError):  # its server is away
                eligible = await owners()
            late = time.monotonic() > patience
            for slot in (wanted, *BARE, *CHILDREN) if late else (wanted,):
                member = self._crew.member(slot)
                if member is None or slot in self._frozen:
                    continue
                if slot == SUPERVISOR or member.owner in eligible:
                    return slot, member
            await asyncio.sleep(LOOK_SECONDS)
        return None

    async def _strike(self, blow: Blow, slot: str, member: Member) -> None:
        self.struck |= self._crew.owners_under(slot)
        self.done[blow] += 1
        with suppress(psutil.NoSuchProcess):
            match blow:
                case Blow.KILL:
                    member.process.kill()
                case Blow.FREEZE:
                    self._freeze(slot, member.process)
                case Blow.TERM:
                    member.process.terminate()
                case Blow.TERM_TWICE:
                    member.process.terminate()
                    await asyncio.sleep(TWICE_SECONDS)
                    member.process.send_signal(signal.SIGTERM)
                case _:
                    raise ValueError(f"{blow} is no blow against a worker.")

    def _freeze(self, slot: str, process: psutil.Process) -> None:
        process.suspend()
        self._frozen[slot] = process
        task = asyncio.create_task(self._thaw_later(slot, process))
        self._thawing.add(task)

    async def _thaw_later(self, slot: str, process: psutil.Process) -> None:
        await asyncio.sleep(self._freeze_seconds)
        self._frozen.pop(slot, None)
        with suppress(psutil.NoSuchProcess):
            process.resume()
