"""One of several processes that fire schedules, at the wall times it is told.

Arguments: the store's file, its name, the seconds of a leader's term. Every line it hears is one
pass: `now`, the wall clock in milliseconds, and `die`, where in the pass it shall be killed if it
leads: before, inside or after the transaction that fires.
"""

import asyncio
import os
import signal
import sys
from typing import Any

from penstock import Penstock, Settings
from penstock.logs import configure_logs
from penstock.model.clock import SystemClock
from penstock.store.relational import schedules
from penstock.upkeep.leader import Leader
from penstock.upkeep.schedules import FireSchedules
from tests.faults.support.children import hear, say


class ToldClock(SystemClock):
    """The host's monotonic clock and boot, and a wall clock that shows what it is told."""

    def __init__(self, wall: int = 0) -> None:
        self.wall = wall

    def now(self) -> int:
        """Return the wall clock as it was told."""
        return self.wall


def die(*_: Any, **__: Any) -> Any:
    """What the kernel does to a process that is killed."""
    os.kill(os.getpid(), signal.SIGKILL)


def set_trap(app: Penstock, place: str) -> None:
    """Have the next firing killed at one place."""
    store: Any = app.store
    fire = store.schedules.fire
    if place == "before":
        store.schedules.fire = die
    elif place == "inside":
        schedules.enqueue = die  # the schedule is advanced, nothing is committed
    else:

        async def fired(*args: Any, **more: Any) -> None:
            await fire(*args, **more)
            die()

        store.schedules.fire = fired


async def main(path: str, name: str, term: float) -> None:
    configure_logs(level="warning")
    clock = ToldClock()
    app = Penstock(f"sqlite:///{path}", settings=Settings(), clock=clock)
    async with app:
        leader = Leader(app, name, term)
        service = FireSchedules(app, leader)
        say("ready")
        while (told := hear()) is not None:
            clock.wall = told["now"]
            await leader.run_once()
            if leader.leads and told["die"]:
                set_trap(app, told["die"])
            await service.run_once()
            say(leader.leads)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3])))
