"""A child of this process, and the socket between them: messages with their length in front.

Whatever ends its parent, a child ends with it.
"""

import asyncio
import ctypes
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress

PR_SET_PDEATHSIG = 1
HEADER = 4


def framed(message: bytes) -> bytes:
    """A message with its length in front."""
    return len(message).to_bytes(HEADER, "big") + message


class ChildProcess:
    """A child that runs a module of ours."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    @classmethod
    async def start(cls, module: str) -> "ChildProcess":
        """Start one; its first message tells that it is ready."""
        ours, theirs = socket.socketpair()
        with theirs:
            # Not from a thread of a pool: the child would be told to end when that thread ends.
            process = subprocess.Popen(  # noqa: ASYNC220
                [sys.executable, "-m", module, str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
                start_new_session=True,
            )
        child = cls(process)
        ours.setblocking(False)
        try:
            child._reader, child._writer = await asyncio.open_connection(sock=ours)
        except BaseException:
            child.kill()
            raise
        return child

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def send(self, message: bytes) -> None:
        """Say something to it; one that has ended hears nothing."""
        assert self._writer is not None
        self._writer.write(framed(message))

    async def receive(self) -> bytes | None:
        """Hear what it says next; None when it has ended."""
        assert self._reader is not None
        try:
            size = int.from_bytes(await self._reader.readexactly(HEADER), "big")
            return await self._reader.readexactly(size)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    async def exit_code(self) -> int | None:
        """How it ended; None if it does not end."""
        with suppress(subprocess.TimeoutExpired):
            return await asyncio.to_thread(self._process.wait, 5)
        return None

    def kill(self) -> None:
        """End it now, with whatever it runs."""
        if self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def close(self) -> None:
        """End it and collect what is left of it."""
        self.kill()
        if self._writer is not None:
            self._writer.close()
        await asyncio.to_thread(self._process.wait)


def end_with(parent_pid: int) -> None:
    """Have Linux end this process with its parent, even inside a C call that holds the GIL."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent_pid:  # it was gone before the kernel knew
            os._exit(0)


def parent() -> socket.socket:
    """The way to the parent, for a child: the file descriptor that its first argument names."""
    end_with(os.getppid())
    return socket.socket(fileno=int(sys.argv[1]))


def hear(connection: socket.socket) -> bytes:
    """The next message of the parent; without a parent, this process ends."""
    return _received(connection, int.from_bytes(_received(connection, HEADER), "big"))


def _received(connection: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        try:
            part = connection.recv(size - len(received))
        except OSError:
            part = b""
        if not part:
            os._exit(0)
        received += part
    return bytes(received)
