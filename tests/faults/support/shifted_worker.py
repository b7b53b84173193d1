"""A worker whose wall clock is wrong, by libfaketime or by the seconds in its arguments.

Arguments: the store's file, the seconds to add to the wall clock.
"""

import asyncio
import sys
import time

from penstock.model.clock import SystemClock
from tests.faults.support.children import hear, say
from tests.faults.support.work import claim_of, opened


class ShiftedClock(SystemClock):
    """The host's clocks, the wall clock moved."""

    def __init__(self, seconds: int) -> None:
        self._ms = seconds * 1000

    def now(self) -> int:
        """Return the wrong wall clock."""
        return super().now() + self._ms


async def main(path: str, seconds: int) -> None:
    clock = ShiftedClock(seconds)
    async with opened(path, clock) as store:
        say({"now": clock.now(), "monotonic": time.monotonic_ns() // 1_000_000})
        rescued = await store.upkeep.rescue()
        say([r.id for r in rescued])
        hear()
        leases = (await store.jobs.claim(claim_of("shifted:1", 1000))).leases
        say([lease.id for lease in leases])
        hear()
        brief = (await store.jobs.claim(claim_of("shifted:1", 1000, lease_ms=50))).leases
        say([lease.id for lease in brief])
        hear()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
