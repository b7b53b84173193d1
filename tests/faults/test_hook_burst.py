"""Fault 33: a burst of hooks while what takes their events is down or locked."""

from contextlib import ExitStack
from pathlib import Path

import apsw
import pytest

from penstock import Penstock, Settings
from penstock.events.log import EventFilter
from proof.servers import RedisServer
from tests.events.streams import drain, fast_path, intake_of
from tests.faults.support.children import Child
from tests.faults.support.facts import TORTURE, figure

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]

HOOKS = figure(short=2, full=8)
EACH = figure(short=50, full=500)
P99_SECONDS = 0.1 if TORTURE else 3.0
"""Beside other tests, a disk may take longer than it would alone."""


class Burst:
    """Hooks that append at once, each in a process of its own."""

    def __init__(self, folder: Path, stream: str = "") -> None:
        self.url = f"sqlite:///{folder}/work.db"
        events = {"spool": f"{folder}/spool", **({"stream": stream} if stream else {})}
        self.app = Penstock(settings=Settings(url=self.url, extension={"events": events}))
        self._stack = ExitStack()
        self._told = (self.url, stream, f"{folder}/spool")
        self._hooks: list[Child] = []

    def __enter__(self) -> "Burst":
        for n in range(HOOKS):
            hook = Child("hook", *self._told, f"hook-{n}", EACH)
            self._hooks.append(self._stack.enter_context(hook))
        for hook in self._hooks:
            assert hook.answer() == "ready"
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def p99(self) -> float:
        """Have all of them append; the time that one append in a hundred takes."""
        for hook in self._hooks:
            hook.tell()
        taken = sorted(seconds for hook in self._hooks for seconds in hook.answer())
        return taken[len(taken) * 99 // 100]

    async def seen(self) -> dict[str, list[int]]:
        """What the log has of each hook, in its order."""
        found: dict[str, list[int]] = {}
        for event in await self.app.events.find(EventFilter(limit=10_000)):
            found.setdefault(event.session_id, []).append(event.payload["n"])
        return found


EXPECTED = {f"hook-{n}": list(range(EACH + 1)) for n in range(HOOKS)}


async def test_nothing_is_lost_and_nobody_waits_while_redis_is_down(tmp_path: Path) -> None:
    with RedisServer(options={"appendfsync": "always"}) as server:
        with Burst(tmp_path, server.url) as burst:
            server.kill()
            assert burst.p99() < P99_SECONDS
        server.start()
        async with burst.app as app:
            assert await intake_of(app).flush()
            async with fast_path(app) as path:
                await drain(path)
            assert await burst.seen() == EXPECTED


async def test_nothing_is_lost_and_nobody_waits_while_the_store_is_locked(tmp_path: Path) -> None:
    with Burst(tmp_path) as burst:
        locking = apsw.Connection(str(tmp_path / "work.db"))
        locking.execute("BEGIN IMMEDIATE")
        assert burst.p99() < P99_SECONDS
        locking.execute("ROLLBACK")
        locking.close()
    async with burst.app as app:
        await intake_of(app).flush()
        assert await burst.seen() == EXPECTED
