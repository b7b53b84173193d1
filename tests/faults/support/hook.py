"""A hook: a process that appends events one after another and says how long each took.

Arguments: the store's URL, the URL of the stream's Redis or "", the spool, its name, how many.
"""

import asyncio
import sys
import time

import structlog

from penstock import Penstock, Settings
from tests.faults.support.children import hear, say


async def main(url: str, stream: str, spool: str, name: str, count: int) -> None:
    """Append when told to."""
    events = {"spool": spool, **({"stream": stream} if stream else {})}
    app = Penstock(settings=Settings(url=url, extension={"events": events}))
    async with app:
        await app.events.append("trace", session_id=name, payload={"n": 0})
        say("ready")
        hear()
        taken = []
        for n in range(1, count + 1):
            began = time.perf_counter()
            await app.events.append("trace", session_id=name, payload={"n": n})
            taken.append(time.perf_counter() - began)
        say(taken)


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    asyncio.run(main(*sys.argv[1:5], int(sys.argv[5])))
