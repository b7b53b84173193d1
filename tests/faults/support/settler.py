"""One of many workers on a graph of jobs: claims, ends its leases by chance, until none is left.

Arguments: the store's file or URL, its name.
"""

import asyncio
import sys
from collections import Counter
from random import Random
from threading import Event

from penstock.model.errors import PenstockError
from tests.faults.support.children import hear, say
from tests.faults.support.work import claim_of, ending, opened

COMPLETED, FAILED, CANCELLED, BURIED, HANDED_BACK = 0, 1, 3, 4, 6
ENDINGS = [COMPLETED] * 40 + [FAILED, CANCELLED, BURIED, HANDED_BACK]


async def main(path: str, name: str) -> None:
    luck, done, errors = Random(name), Counter[str](), list[str]()
    say("ready")
    hear()
    try:
        async with opened(path) as store:
            while True:
                leases = (await store.jobs.claim(claim_of(name, luck.randrange(1, 9)))).leases
                settlements = [ending(lease, luck.choice(ENDINGS)) for lease in leases]
                for _ in range(luck.choice((1, 1, 1, 2))):  # the second time as if unanswered
                    done["stale"] += len(await store.jobs.settle(name, settlements))
                done["settled"] += len(leases)
                if not leases and not await store.reader.waiting(limit=1):
                    break
                if not leases:
                    Event().wait(0.002)
    except PenstockError as error:
        errors.append(f"{error!r} from {error.__cause__!r}")
    say({"errors": errors, **done})


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
