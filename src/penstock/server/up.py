"""Everything at once under one parent: the server in one process, workers in others."""

import asyncio
import os
import signal
import socket
import sys
import time

import msgspec
import structlog

from penstock.server.spec import ServerSpec
from penstock.worker.process import WorkerSpec
from penstock.worker.supervisor import BAD_SPEC, HEALTHY_SECONDS, MAX_PAUSE_SECONDS, Supervisor

log = structlog.get_logger("penstock.up")


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

    async def run(self) -> int:
        """Run until stopped; the exit code for the shell."""
        running = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            running.add_signal_handler(number, self.stop)
        codes = await asyncio.gather(self._keep_server(), self._keep_workers())
        return max(codes)

    def stop(self) -> None:
        """Drain the workers, then end the server, which shows them drain; twice is at once."""
        self._stopping.set()
        if self._workers is not None:
            self._workers.stop()

    async def _keep_server(self) -> int:
        code = await self._server.run()
        self.stop()
        return code

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

    async def run(self) -> int:
        """Keep it alive until stopped; 2 when it can never start."""
        spec, pause = self._spec, 0.1
        while not self._stopping.is_set():
            started = time.monotonic()
            code = await self._run_child(spec)
            if self._stopping.is_set() or code == BAD_SPEC:
                return code
            log.error("server_died", exit_code=code)
            spec = msgspec.structs.replace(spec, greeting=None, opens_browser=False)
            healthy = time.monotonic() - started > HEALTHY_SECONDS
            pause = 0.1 if healthy else min(pause * 2, MAX_PAUSE_SECONDS)
            await until(self._stopping, pause)
        return 0

    def stop(self) -> None:
        """End it."""
        self._stopping.set()
        if self._child is not None and self._child.returncode is None:
            self._child.send_signal(signal.SIGTERM)

    async def _run_child(self, spec: ServerSpec) -> int:
        fd = self._socket.fileno()
        told = msgspec.structs.replace(spec, parent_pid=os.getpid())
        self._child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "penstock.server.process",
            msgspec.json.encode(told).decode(),
            str(fd),
            stdin=asyncio.subprocess.DEVNULL,
            pass_fds=(fd,),
            start_new_session=True,
        )
        if self._stopping.is_set():
            self.stop()
        return await self._child.wait()


async def until(event: asyncio.Event, seconds: float) -> None:
    """Wait for an event, but no longer than that."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
