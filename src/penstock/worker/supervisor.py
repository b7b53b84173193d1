"""Worker processes under one parent: a crash is noticed at once, its jobs rescued, it replaced."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import msgspec
import structlog

from penstock.app.penstock import Penstock
from penstock.model.store_errors import StoreError
from penstock.store.contract import Store
from penstock.upkeep.leader import ROLE
from penstock.upkeep.rescue import report
from penstock.worker import health, respawn
from penstock.worker.process import AT_ONCE, WorkerSpec
from penstock.worker.target import load_app
from penstock.worker.worker import new_owner

log = structlog.get_logger("penstock.supervisor")

PATIENCE_SECONDS = 1.0
ORDERS = (signal.SIGTERM, AT_ONCE, signal.SIGKILL)
"""What a worker is told at the first stop, at the second, and from then on."""
NO_CRASH = frozenset({0, respawn.REPLACE_ME, -signal.SIGTERM, -AT_ONCE})
"""Also of a worker that was told to stop while it still started, and could not hear it."""


class Supervisor:
    """Keeps `processes` workers alive until it is told to stop."""

    def __init__(self, spec: WorkerSpec, processes: int = 1, *, hears_signals: bool = True) -> None:
        self._spec = spec
        self._count = processes
        self._hears_signals = hears_signals
        self._health = None if spec.health is None else health.HealthFolder(Path(spec.health))
        self._children: dict[str, asyncio.subprocess.Process] = {}
        self._stopping = asyncio.Event()
        self._signals = 0
        self._exit_code = 0

    async def run(self) -> int:
        """Supervise until stopped; the exit code for the shell."""
        app = load_app(self._spec.target, self._spec.url)
        app.settings = app.settings.replace(**self._spec.settings)
        self._max_rescues = app.settings.max_rescues
        async with app:
            if self._hears_signals:
                loop = asyncio.get_running_loop()
                for number in (signal.SIGTERM, signal.SIGINT):
                    loop.add_signal_handler(number, self.stop)
            async with self._kept_health():
                await self._supervise(app)
        return self._exit_code

    @asynccontextmanager
    async def _kept_health(self) -> AsyncGenerator[None, None]:
        """Tell those who watch over this process, as long as it and all of its workers are well."""
        health.tell_systemd("READY=1")
        if self._health is None:
            yield
            return
        self._health.prepare()
        health.refresh(self._health.file_of())
        telling = asyncio.create_task(self._tell_health(self._health))
        try:
            yield
        finally:
            telling.cancel()
            self._health.prepare()

    async def _tell_health(self, folder: health.HealthFolder) -> None:
        while True:
            await asyncio.sleep(health.REFRESH_SECONDS)
            health.refresh(folder.file_of())
            if not folder.silent():
                health.tell_systemd("WATCHDOG=1")

    async def _supervise(self, app: Penstock) -> None:
        await asyncio.gather(*(self._keep_alive(index, app.store) for index in range(self._count)))

    def _wants(self, index: int) -> bool:
        """Whether the worker of this number is to go on, or to be replaced."""
        return not self._stopping.is_set()

    def stop(self) -> None:
        """Drain the workers; a second call ends them at once, a third kills what hangs."""
        if not self._signals:
            asyncio.get_running_loop().call_later(PATIENCE_SECONDS, self._explain_the_wait)
        self._signals += 1
        self._stopping.set()
        for child in self._children.values():
            self._tell(child)

    def _explain_the_wait(self) -> None:
        if self._children and sys.stderr.isatty():
            sys.stderr.write("\rFinishing the jobs that run; Ctrl-C again hands them back.\n")

    def _tell(self, child: asyncio.subprocess.Process) -> None:
        if child.returncode is None and self._signals:
            respawn.tell(child, ORDERS[min(self._signals, len(ORDERS)) - 1])

    async def _keep_alive(self, index: int, store: Store) -> None:
        if self._health is not None:
            health.refresh(self._health.file_of(index))
        await respawn.keep(partial(self._run_worker, index, store), self._stopping)
        if self._health is not None:
            self._health.file_of(index).unlink(missing_ok=True)

    async def _run_worker(self, index: int, store: Store) -> bool:
        """Run a worker until it ends; whether it is to be replaced."""
        while True:
            if not self._wants(index):
                return False
            owner = new_owner()
            code = await self._run_child(index, owner)
            await self._recover(store, owner, code)
            if code != respawn.REPLACE_ME or not self._spec.reload:
                break  # else at once: somebody waits for it
        if self._spec.burst or code == respawn.BAD_SPEC:
            self._exit_code = max(self._exit_code, code)
            return False
        return True

    async def _run_child(self, index: int, owner: str) -> int:
        name = self._spec.name or "worker"
        spec = msgspec.structs.replace(
            self._spec,
            owner=owner,
            name=f"{name}-{index + 1}" if self._count > 1 else name,
            parent_pid=os.getpid(),
            health=str(self._health.file_of(index)) if self._health else None,
        )
        # Its name and its owner stand in its arguments for whoever looks at the list of processes.
        shown = (str(spec.name), owner)
        child = await respawn.start("penstock.worker.process", msgspec.json.encode(spec), *shown)
        self._children[owner] = child
        self._tell(child)  # of a stop that came while it was being made
        try:
            return await child.wait()
        finally:
            del self._children[owner]

    async def _recover(self, store: Store, owner: str, code: int) -> None:
        """The process is dead for certain, so its leases need not run out first.

        Also after a clean end, which leaves none: a handler may have called `os._exit(0)`.
        """
        if code not in NO_CRASH:
            log.error("worker_died", worker_id=owner, exit_code=code)
        try:
            while rescued := await store.upkeep.rescue(owner=owner, max_rescues=self._max_rescues):
                report(rescued)
            await store.upkeep.resign(ROLE, owner)
            await store.workers.forget(owner)
        except StoreError as error:
            log.warning("recovery_left_to_upkeep", worker_id=owner, error=str(error))
