"""One of many writers: enqueues, claims and settles as fast as it can, then says what it did.

Arguments: the store's file, its name, how many rounds.
"""

import asyncio
import sys
from collections import Counter

from penstock.model.store_errors import StoreError
from tests.faults.support.children import hear, say
from tests.faults.support.work import claim_of, completed, new_jobs, opened

BATCH = 4
PAYLOAD = '"' + "x" * 20_000 + '"'


async def main(path: str, name: str, rounds: int) -> None:
    done = Counter[str]()
    errors: list[str] = []
    say("ready")
    hear()
    try:
        async with opened(path) as store:
            for _ in range(rounds):
                await store.jobs.enqueue(new_jobs(BATCH, payload=PAYLOAD))
                done["enqueued"] += BATCH
                leases = (await store.jobs.claim(claim_of(name, BATCH - 1))).leases
                stale = await store.jobs.settle(name, [completed(lease) for lease in leases])
                done["completed"] += len(leases) - len(stale)
                done["stale"] += len(stale)
    except StoreError as error:
        errors.append(f"{error!r} from {error.__cause__!r}")
    say({"errors": errors, **done})


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
