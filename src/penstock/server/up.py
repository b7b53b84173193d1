"""Everything at once under one parent: the server in one process, workers in others."""

import asyncio
import os
import signal
import socket

import msgspec
import structlog

from penstock.server.serve import ServerSpec
from penstock.worker.process import WorkerSpec
from penstock.worker.respawn import BAD_SPEC, REPLACE_ME, keep, start
from penstock.worker.supervisor import ORDERS, Supervisor

log = structlog.get_logger("penstock.up")

STOP_SECONDS = 10.0


class Up:
    """Starts all parts, replaces one that crashes, and drains them when it is told to stop."""

    def __init__(
        self, server: ServerSpec, taken: socket.socket, workers: WorkerSpec | None, processes: int
    ) -> None:
        self._server = KeptServer(server, taken)
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
        server = asyncio.create_task(self._keep_server())
        try:
            worked = await self._keep_workers()
        finally:
            served = await server
        return max(worked, served)

    def stop(self) -> None:
        """Drain the workers, then end the server, which shows them drain.

        A second call hands their jobs back at once, a third kills what hangs.
        """
        self._stopping.set()
        self._signals += 1
        if self._signals >= len(ORDERS):
            self._server.kill()
        if self._workers is not None:
            self._workers.stop()

    async def _keep_server(self) -> int:
        try:
            return await self._server.run()
        finally:
            self.stop()

    async def _keep_workers(self) -> int:
        try:
            if self._workers is not None:
                return await self._workers.run()
            await self._stopping.wait()
            return 0
        finally:
            self._server.stop()


class KeptServer:
    """A server process that is replaced when it crashes; its socket stays, and so its address."""

    def __init__(self, spec: ServerSpec, taken: socket.socket) -> None:
        self._spec = spec
        self._socket = taken
        self._child: asyncio.subprocess.Process | None = None
        self._stopping = asyncio.Event()
        self._exit_code = 0

    async def run(self) -> int:
        """Keep it alive until stopped; 2 when it can never start."""
        await keep(self._run_once, self._stopping)
        return self._exit_code

    def stop(self) -> None:
        """End it; one that hangs is killed after a while, which loses nothing."""
        self._stopping.set()
        if self._child is not None and self._child.returncode is None:
            self._child.send_signal(signal.SIGTERM)
            asyncio.get_running_loop().call_later(STOP_SECONDS, self.kill)

    def kill(self) -> None:
        """End it at once."""
        self._stopping.set()
        if self._child is not None and self._child.returncode is None:
            self._child.kill()

    async def _run_once(self) -> bool:
        """Run it until it ends; whether it is to be replaced."""
        if self._stopping.is_set():
            return False
        code = await self._run_child()
        while code == REPLACE_ME and not self._stopping.is_set():
            self._spec = msgspec.structs.replace(self._spec, greeting=None, opens_browser=False)
            code = await self._run_child()
        if self._stopping.is_set() or code == BAD_SPEC:
            self._exit_code = 0 if code == REPLACE_ME else code
            return False
        log.error("server_died", exit_code=code)
        self._spec = msgspec.structs.replace(self._spec, greeting=None, opens_browser=False)
        return True

    async def _run_child(self) -> int:
        fd = self._socket.fileno()
        told = msgspec.structs.replace(self._spec, parent_pid=os.getpid())
        spec = msgspec.json.encode(told)
        self._child = await start("penstock.server.process", spec, str(fd), pass_fds=(fd,))
        if self._stopping.is_set():
            self.stop()
        return await self._child.wait()
