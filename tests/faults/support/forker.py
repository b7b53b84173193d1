"""Opens a store, forks, and says what became of every use in the child.

Argument: the store's file.
"""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from penstock.model.outcome import Completed
from penstock.operate.backup import backup
from penstock.store.contract import Held, JobFilter, Retention, Store
from penstock.store.open import open_store
from tests.faults.support.children import say
from tests.faults.support.work import claim_of, new_jobs

SECONDS = 5


def uses(store: Store, path: str) -> dict[str, Callable[[], Any]]:
    """One of everything a child might try."""
    ended = Completed(id="x", fence=1, type="work", queue="default", started_at=0)
    return {
        "enqueue": lambda: store.jobs.enqueue(new_jobs(1)),
        "claim": lambda: store.jobs.claim(claim_of("child:1", 1)),
        "settle": lambda: store.jobs.settle("child:1", [ended]),
        "cancel": lambda: store.jobs.cancel(["x"], "no"),
        "renew": lambda: store.leases.renew("child:1", [Held("x", 1, 1)]),
        "cancel_requests": lambda: store.leases.cancel_requests("child:1"),
        "get": lambda: store.reader.get(["x"]),
        "find": lambda: store.reader.find(JobFilter()),
        "dead": lambda: store.dead.find(),
        "depths": lambda: store.metrics.depths(),
        "rescue": lambda: store.upkeep.rescue(),
        "prune": lambda: store.upkeep.prune(Retention()),
        "workers": lambda: store.workers.list(),
        "inspect": lambda: store.inspect(),
        "backup": lambda: backup(store, Path(path + ".backup")),
        "migrate": lambda: store.migrate(),
        "connection": lambda: store.connection(),
        "subscribe": lambda: _subscribe(store),
        "open again": lambda: store.open(),
        "open anew": lambda: open_store(f"sqlite:///{path}").open(),
    }


async def _subscribe(store: Store) -> None:
    store.subscribe()


async def attempt(use: Callable[[], Any]) -> str:
    try:
        async with asyncio.timeout(SECONDS):
            answer = use()
            if isinstance(answer, Awaitable):
                await answer
    except Exception as error:
        return type(error).__name__
    return "allowed"


def in_child(store: Store, path: str) -> dict[str, str]:
    return {name: asyncio.run(attempt(use)) for name, use in uses(store, path).items()}


def forked(store: Store, path: str) -> dict[str, str]:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.write(writer, json.dumps(in_child(store, path)).encode())
        os.close(writer)
        asyncio.run(store.close())
        sys.exit(0)  # the ordinary way, which lets go of every object
    os.close(writer)
    with os.fdopen(reader) as pipe:
        said: dict[str, str] = json.loads(pipe.read() or "{}")
    _, status = os.waitpid(child, 0)
    return said | {"exit": str(os.waitstatus_to_exitcode(status))}


def main(path: str) -> None:
    store = open_store(f"sqlite:///{path}")
    asyncio.run(store.open())
    # So that the fork inherits reading connections, of other threads and of this one.
    asyncio.run(store.reader.find(JobFilter()))
    store.leases.cancel_requests("parent:1")
    before, after = new_jobs(50), new_jobs(50)
    asyncio.run(store.jobs.enqueue(before))
    said = forked(store, path)
    asyncio.run(store.jobs.enqueue(after))
    read = asyncio.run(store.reader.get([job.id for job in before + after]))
    asyncio.run(store.close())
    say({"child": said, "parent reads": len(read), "ids": [job.id for job in before + after]})


if __name__ == "__main__":
    main(sys.argv[1])
