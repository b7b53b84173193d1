"""Adds edges to jobs whose parents are being settled at the same moment.

Arguments: the store's file or URL, its name, how many rounds.
"""

import asyncio
import sys
from collections import Counter
from random import Random

from penstock.model.dependency import Edge
from penstock.model.errors import IllegalTransition, PenstockError
from penstock.model.ids import new_id
from penstock.model.job import NewJob
from tests.faults.support.children import hear, say
from tests.faults.support.graph import chance_edge
from tests.faults.support.work import new_jobs, opened


async def main(path: str, name: str, rounds: int) -> None:
    luck, done, errors = Random(name), Counter[str](), list[str]()
    say("ready")
    hear()
    try:
        async with opened(path) as store:
            for _ in range(rounds):
                parents = new_jobs(3)
                held = NewJob(id=new_id(), type="work", delay_ms=luck.randrange(20))
                await store.jobs.enqueue([*parents, held])
                late = NewJob(id=new_id(), type="work", after=(chance_edge(luck, parents[0].id),))
                await store.jobs.enqueue([late])
                edges: list[Edge] = [chance_edge(luck, parent.id) for parent in parents]
                for child_id in (held.id, late.id):
                    try:
                        await store.jobs.depend(child_id, edges)
                        done["linked"] += 1
                    except IllegalTransition:  # it was queued, or had ended, before
                        done["too_late"] += 1
    except PenstockError as error:
        errors.append(f"{error!r} from {error.__cause__!r}")
    say({"errors": errors, **done})


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
