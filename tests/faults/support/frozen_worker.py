"""Claims, is stopped past its leases, and when it goes on tries every write under them.

Arguments: the store's file or URL, how many jobs to claim, the length of the leases.
"""

import asyncio
import sys

from penstock.store.contract import Held, Report
from tests.faults.support.children import hear, say
from tests.faults.support.work import claim_of, ending, opened

OWNER = "frozen:1"


async def main(path: str, count: int, lease_ms: int) -> None:
    async with opened(path) as store:
        claim = claim_of(OWNER, count, lease_ms=lease_ms)
        leases = (await store.jobs.claim(claim)).leases
        say(len(leases))
        hear()
        # What it gets back now is its own again, by name: only the fence tells the two apart.
        again = (await store.jobs.claim(claim_of(OWNER, count))).leases
        say(len(again))
        hear()
        settled = await store.jobs.settle(OWNER, [ending(x, n) for n, x in enumerate(leases)])
        reported = await store.jobs.report(
            OWNER,
            [
                Report(id=x.id, fence=x.fence, checkpoint='"stale"', logs=[(0, "info", "stale")])
                for x in leases
            ],
        )
        renewed = store.leases.renew(OWNER, [Held(x.id, x.fence, 999_000) for x in leases])
        await store.jobs.start(OWNER, [(x.id, x.fence) for x in leases])
        say([len(set(stale)) for stale in (settled, reported, renewed.lost)])
        hear()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
