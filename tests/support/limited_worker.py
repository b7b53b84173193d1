"""A worker process under a limit: claims, writes down what starts and ends, settles.

`python -m tests.support.limited_worker URL FILE NAME` until nothing comes any more.
"""

import asyncio
import os
import sys

from penstock.store.open import open_store
from proof.conformance.build import completed
from proof.conformance.fleet import Member

CONCURRENCY = 4
IDLE_ROUNDS = 200


async def work(url: str, file: str, name: str) -> None:
    """Run jobs; the file gets a `+` after each start and a `-` before each end."""
    journal = os.open(file, os.O_WRONLY | os.O_APPEND)
    store = open_store(url)
    await store.open()
    member = Member(store, name, ("work",), CONCURRENCY)
    noted: set[str] = set()
    idle = 0
    while idle < IDLE_ROUNDS:
        await member.claim(ahead=1)
        idle = 0 if member.running else idle + 1
        for lease in list(member.running):
            started = {running.id for running in member.running} - noted
            os.write(journal, b"+" * len(started))
            noted |= started
            os.write(journal, b"-")
            await member.settle(lease, completed)
    await store.close()
    os.close(journal)


if __name__ == "__main__":
    asyncio.run(work(*sys.argv[1:]))
