"""Worker processes under one parent: a crash is noticed at once, its jobs rescued, it replaced."""

import asyncio
import os
import signal
import sys
import time

import msgspec
import structlog

from penstock.client.app import Penstock
from penstock.model.errors import StoreError
from penstock.store.contract import Store
from penstock.upkeep.leader import ROLE
from penstock.upkeep.rescue import report
from penstock.worker.process import AT_ONCE, WorkerSpec, load_app
from penstock.worker.recycle import EXIT_CODE
from penstock.worker.worker import new_owner

log = structlog.get_logger("penstock.supervisor")

BAD_SPEC = 2
HEALTHY_SECONDS = 10.0
MAX_PAUSE_SECONDS = 30.0


class Supervisor:
    """Keeps `processes` workers alive until it is told to stop."""

    def __init__(self, spec: WorkerSpec, processes: int = 1, *, hears_signals: bool = True) -> None:
        self._spec = spec
        self._count = processes
        self._hears_signals = hears_signals
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
            await self._supervise(app)
        return self._exit_code

    async def _supervise(self, app: Penstock) -> None:
        await asyncio.gather(*(self._keep_alive(index, app.store) for index in range(self._count)))

    def _wants(self, index: int) -> bool:
        """Whether the worker of this number is to go on, or to be replaced."""
        return not self._stopping.is_set()

    def stop(self) -> None:
        """Drain the workers; a second call ends them at once."""
        self._signals += 1
        self._stopping.set()
        for child in self._children.values():
            self._tell(child)

    def _tell(self, child: asyncio.subprocess.Process) -> None:
        if child.returncode is None and self._signals:
            child.send_signal(signal.SIGTERM if self._signals == 1 else AT_ONCE)

    async def _keep_alive(self, index: int, store: Store) -> None:
        pause = 0.1
        while self._wants(index):
            owner = new_owner()
            started = time.monotonic()
            code = await self._run_child(index, owner)
            await self._recover(store, owner, code)
            if self._spec.burst or code == BAD_SPEC:
                self._exit_code = max(self._exit_code, code)
                return
            healthy = time.monotonic() - started > HEALTHY_SECONDS
            pause = 0.1 if healthy else min(pause * 2, MAX_PAUSE_SECONDS)
            await self._sleep(pause)

    async def _run_child(self, index: int, owner: str) -> int:
        name = self._spec.name or "worker"
        spec = msgspec.structs.replace(
            self._spec,
            owner=owner,
            name=f"{name}-{index + 1}" if self._count > 1 else name,
            parent_pid=os.getpid(),
        )
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "penstock.worker.process",
            msgspec.json.encode(spec).decode(),
            stdin=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
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
        if code not in (0, EXIT_CODE):
            log.error("worker_died", worker_id=owner, exit_code=code)
        try:
            while rescued := await store.upkeep.rescue(owner=owner, max_rescues=self._max_rescues):
                report(rescued)
            await store.upkeep.resign(ROLE, owner)
            await store.workers.forget(owner)
        except StoreError as error:
            log.warning("recovery_left_to_upkeep", worker_id=owner, error=str(error))

    async def _sleep(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return
