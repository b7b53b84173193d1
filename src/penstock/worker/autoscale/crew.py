"""Worker processes on this machine, more or fewer as the load has it."""

import asyncio
import os
import signal
from contextlib import suppress
from hashlib import sha256

import structlog
from msgspec.json import encode

from penstock.client.app import Penstock
from penstock.model.errors import StoreError
from penstock.worker import keeping
from penstock.worker.autoscale.decide import Decision, Memory, Policy, decide
from penstock.worker.autoscale.load import Load, measure
from penstock.worker.process import WorkerSpec
from penstock.worker.supervisor import Supervisor
from penstock.worker.worker import new_owner

log = structlog.get_logger("penstock.autoscale")

LOOK_SECONDS = 5.0
TERM_SECONDS = 15.0


class Crew(Supervisor):
    """A supervisor that starts and stops workers; those it stops finish what they run.

    Of several with the same work on one machine one acts, or they would add up; the others stand
    by.
    """

    def __init__(self, spec: WorkerSpec, policy: Policy, interval: float = LOOK_SECONDS) -> None:
        super().__init__(spec, policy.most)
        self._policy = policy
        self._interval = interval
        self._memory = Memory()
        self._kept: dict[int, asyncio.Task[None]] = {}
        self._owners: dict[int, str] = {}
        self._leaving: set[int] = set()
        self._dismissed: set[str] = set()
        self._owner = new_owner()
        self._term_ms = int(max(TERM_SECONDS, 3 * interval) * 1000)
        self._stands_by = False

    @property
    def workers(self) -> int:
        """How many are meant to go on."""
        return len(self._kept.keys() - self._leaving)

    async def _supervise(self, app: Penstock) -> None:
        while not self._stopping.is_set():
            await self._look(app)
            await keeping.until(self._stopping, self._interval)
        await asyncio.gather(*self._kept.values())
        with suppress(StoreError):
            await app.store.upkeep.resign(role_of(self._spec), self._owner)

    async def _look(self, app: Penstock) -> None:
        self._forget_gone()
        if self._exit_code:
            self.stop()  # a worker that cannot start would not start the next time either
            return
        try:
            if not await self._leads(app):
                self._shrink_to(0)
                return
            owners = [owner for index, owner in self._owners.items() if index not in self._leaving]
            load = await measure(app.store, queues=self._spec.queues, owners=owners)
        except StoreError as error:
            log.warning("autoscale_blind", error=str(error))
            return
        now = app.store.clock.monotonic()
        decision = decide(load, self.workers, self._memory, self._policy, now)
        self._memory = decision.memory
        if decision.reason:
            _say(load, decision, self.workers)
        self._grow_to(decision.workers, app)
        self._shrink_to(decision.workers)

    async def _leads(self, app: Penstock) -> bool:
        """Whether this crew is the one that acts; said when that changes."""
        leads = await app.store.upkeep.lead(role_of(self._spec), self._owner, self._term_ms)
        if self._stands_by is leads:
            self._stands_by = not leads
            log.info("autoscale_acts" if leads else "autoscale_stands_by", worker_id=self._owner)
        return leads

    def _grow_to(self, workers: int, app: Penstock) -> None:
        """Start some; those that still finish count, so that there are never too many."""
        for index in range(self._policy.most):
            if self.workers >= workers:
                return
            if index not in self._kept:
                self._kept[index] = asyncio.create_task(self._keep_alive(index, app.store))

    def _shrink_to(self, workers: int) -> None:
        for index in sorted(self._kept.keys() - self._leaving, reverse=True):
            if self.workers <= workers:
                break
            self._leaving.add(index)
        for index in self._leaving:
            self._dismiss(self._owners.get(index))

    def _dismiss(self, owner: str | None) -> None:
        """Let a worker drain; asked once, for a second signal would end it at once."""
        child = self._children.get(owner or "")
        if owner is not None and child is not None and owner not in self._dismissed:
            self._dismissed.add(owner)
            if child.returncode is None:
                child.send_signal(signal.SIGTERM)

    def _forget_gone(self) -> None:
        for index in [index for index, task in self._kept.items() if task.done()]:
            del self._kept[index]
            self._leaving.discard(index)
        self._dismissed &= self._children.keys()

    def _wants(self, index: int) -> bool:
        return super()._wants(index) and index not in self._leaving

    async def _run_child(self, index: int, owner: str) -> int:
        self._owners[index] = owner
        try:
            return await super()._run_child(index, owner)
        finally:
            del self._owners[index]


def role_of(spec: WorkerSpec) -> str:
    """What only one crew does at a time: these workers, under this name, on this machine."""
    work = encode([spec.target, spec.name, spec.queues, spec.types])
    return f"autoscale:{os.uname().nodename}:{sha256(work).hexdigest()[:16]}"


def _say(load: Load, decision: Decision, workers: int) -> None:
    log.info(
        "autoscale_up" if decision.workers > workers else "autoscale_down",
        workers=decision.workers,
        before=workers,
        reason=decision.reason,
        queued=load.queued,
        wait_seconds=load.wait_seconds,
        cpu_percent=load.cpu_percent,
    )
