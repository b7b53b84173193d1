"""Carrying out the plan."""

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

import psutil

from penstock.model.errors import StoreError
from penstock.testing.torture.crew import Crew, Member
from penstock.testing.torture.plan import BARE, CHILDREN, SERVER, SUPERVISOR, Blow, Strike

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
