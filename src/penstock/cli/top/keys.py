"""Keys as they are pressed: the terminal in its cbreak mode, and back as it was."""

import asyncio
import os
import sys
import termios
import tty
from types import TracebackType

NAMES = {
    "\x1b[A": "up",
    "\x1bOA": "up",
    "k": "up",
    "\x1b[B": "down",
    "\x1bOB": "down",
    "j": "down",
    "\t": "tab",
    "\x1b[Z": "back",
    "\x1b": "escape",
    "\x03": "q",
    "\x04": "q",
}


class Keys:
    """`async with Keys() as keys: key = await keys.next()`; nothing that is typed is echoed."""

    def __init__(self, fd: int | None = None) -> None:
        self._fd = sys.stdin.fileno() if fd is None else fd
        self._pressed: asyncio.Queue[str] = asyncio.Queue()

    async def __aenter__(self) -> "Keys":
        self._before = termios.tcgetattr(self._fd)
        tty.setcbreak(self._fd, termios.TCSANOW)
        asyncio.get_running_loop().add_reader(self._fd, self._read)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        asyncio.get_running_loop().remove_reader(self._fd)
        termios.tcsetattr(self._fd, termios.TCSANOW, self._before)

    async def next(self) -> str:
        """The name of the next key that is pressed."""
        return await self._pressed.get()

    @property
    def more(self) -> bool:
        """Whether other keys have been pressed already."""
        return not self._pressed.empty()

    def _read(self) -> None:
        try:
            typed = os.read(self._fd, 64)
        except OSError:
            typed = b""
        if not typed:  # the terminal is gone
            asyncio.get_running_loop().remove_reader(self._fd)
            self._pressed.put_nowait("q")
        for key in split(typed.decode(errors="ignore")):
            self._pressed.put_nowait(NAMES.get(key, key))


def split(typed: str) -> list[str]:
    """What was typed, key by key; an arrow is three characters."""
    keys: list[str] = []
    at = 0
    while at < len(typed):
        length = next((n for n in (3, 1) if typed[at : at + n] in NAMES), 1)
        keys.append(typed[at : at + length])
        at += length
    return keys
