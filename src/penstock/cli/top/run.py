"""`penstock top`: look, show, and do what the keys say."""

import asyncio
import os
import signal
import sys
import termios
import tty
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live

from penstock.cli import exits
from penstock.cli.top.state import Actions, State, look
from penstock.cli.top.view import screen
from penstock.model.errors import PenstockError

if TYPE_CHECKING:
    from penstock.operate.actor import Operator

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


STEPS = {"up": -1, "down": 1}
TURNS = {"tab": 1, "back": -1}


class Top:
    """One showing; the terminal is as it was when it ends, however it ends."""

    def __init__(self, operator: "Operator", name: str, interval: float) -> None:
        self._store = operator.app.store
        self._name = name
        self._interval = interval
        self._out = Console()
        self._state = State()
        self._actions = Actions(operator)
        self._code = exits.OK
        self._over = asyncio.Event()
        self._again = asyncio.Event()

    async def run(self) -> int:
        """Show it until somebody quits; the exit code."""
        self._heed_signals()
        self._snapshot = await look(self._store, self._name)
        async with Keys() as keys:
            with Live(console=self._out, auto_refresh=False, screen=True) as live:
                self._live = live
                asyncio.get_running_loop().add_signal_handler(signal.SIGWINCH, self._show)
                self._show()
                works = (self._over.wait(), self._watch(), self._obey(keys))
                tasks = [asyncio.create_task(work) for work in works]
                try:
                    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                    for task in tasks:
                        if task.done():
                            task.result()
                finally:
                    for task in tasks:
                        task.cancel()
                    await asyncio.gather(*tasks, return_exceptions=True)
        return self._code

    def _heed_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number, code in (
            (signal.SIGINT, exits.INTERRUPTED),
            (signal.SIGTERM, exits.OK),
            (signal.SIGHUP, exits.OK),
        ):
            loop.add_signal_handler(number, self._quit, code)
        # Stopped in the middle of a frame, the terminal would be left as it is now.
        signal.signal(signal.SIGTSTP, signal.SIG_IGN)

    def _quit(self, code: int) -> None:
        self._code = code
        self._over.set()

    async def _watch(self) -> None:
        """Look again and again; a store that is away for a while is said to be."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._interval):
                    await self._again.wait()
            self._again.clear()
            await self._said(self._look)
            self._show()

    async def _look(self) -> str | None:
        self._snapshot = await look(self._store, self._name)
        return None

    async def _obey(self, keys: Keys) -> None:
        while True:
            await self._press(await keys.next())
            if not keys.more:  # a frame for each key of a paste would take seconds
                self._show()

    async def _press(self, key: str) -> None:
        state = self._state
        if state.asking is not None:
            state.asking, state.message = None, ""
            if key in ("y", "Y"):
                await self._said(self._actions.confirmed)
                self._again.set()
            return
        state.message = ""
        if key == "q":
            self._quit(exits.OK)
        elif key in ("?", "escape"):
            state.help = key == "?" and not state.help
        elif key in STEPS:
            state.move(self._snapshot, STEPS[key])
        elif key in TURNS:
            state.turn(TURNS[key])
        else:
            await self._act(key)

    async def _act(self, key: str) -> None:
        self._state.asking = self._actions.question(key, self._snapshot, self._state)
        if self._state.asking is None:
            await self._said(lambda: self._actions.do(key, self._snapshot, self._state))
            self._again.set()

    async def _said(self, action: Callable[[], Awaitable[str | None]]) -> None:
        """Do something, and show the sentence it answers or is refused with."""
        try:
            said = await action()
        except PenstockError as error:
            said = str(error)
        if said is not None:
            self._state.message = said

    def _show(self) -> None:
        width, height = self._out.size
        self._live.update(screen(self._snapshot, self._state, width, height), refresh=True)
