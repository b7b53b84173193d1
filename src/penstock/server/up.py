"""Everything at once under one parent: the server in one process, workers in others."""

import asyncio
import os
import signal
import socket
from collections.abc import Sequence

import msgspec

from penstock.server.serve import ServerSpec
from penstock.worker.extension_process import KeptProcess, ProcessSpec
from penstock.worker.process import WorkerSpec
from penstock.worker.respawn import KeptChild, start
from penstock.worker.supervisor import ORDERS, Supervisor


class Up:
    """Starts all parts, replaces one that crashes, and drains them when it is told to stop."""

    def __init__(
        self,
        server: ServerSpec,
        taken: socket.socket,
        workers: WorkerSpec | None,
        processes: int,
        beside: Sequence[ProcessSpec] = (),
    ) -> None:
        self._server = KeptServer(server, taken)
        self._beside = [KeptProcess(each) for each in beside]
        self._workers = None
        if workers is not None:
            self._workers = Supervisor(workers, processes, hears_signals=False)
        self._stopping = asyncio.Event()
        self._signals = 0

    async def run(self) -> int:
        """Run until stopped; the exit code for the shell."""
        running = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            running.add_signal_handler(number, self.stop)
        kept = [asyncio.create_task(self._keep(each)) for each in (self._server, *self._beside)]
        try:
            worked = await self._keep_workers()
        finally:
            ended = await asyncio.gather(*kept)
        return max(worked, *ended)

    def stop(self) -> None:
        """Drain the workers and what runs beside them, then end the server, which shows them drain.

        A second call hands their jobs back at once, a third kills what hangs.
        """
        self._stopping.set()
        self._signals += 1
        for each in self._beside:
            each.stop()
        if self._signals >= len(ORDERS):
            for kept in (self._server, *self._beside):
                kept.kill()
        if self._workers is not None:
            self._workers.stop()

    async def _keep(self, child: KeptChild) -> int:
        try:
            return await child.run()
        finally:
            if not self._stopping.is_set():
                self.stop()  # it can never start, and without it nothing is everything

    async def _keep_workers(self) -> int:
        try:
            if self._workers is not None:
                return await self._workers.run()
            await self._stopping.wait()
            return 0
        finally:
            for each in (*self._beside, self._server):
                each.stop()


class KeptServer(KeptChild):
    """A server process; its socket stays when it is replaced, and so its address."""

    def __init__(self, spec: ServerSpec, taken: socket.socket) -> None:
        super().__init__("server")
        self._spec = spec
        self._socket = taken

    async def start_child(self, *, again: bool) -> asyncio.subprocess.Process:
        """Start it; only the first one greets."""
        told = msgspec.structs.replace(self._spec, parent_pid=os.getpid())
        if again:
            told = msgspec.structs.replace(told, greeting=None, opens_browser=False)
        fd = self._socket.fileno()
        spec = msgspec.json.encode(told)
        return await start("penstock.server.process", spec, str(fd), pass_fds=(fd,))
