"""A process of the pipeline: ingest, or the consumers; and the application of both.

Arguments: `ingest` or `consume`, the store's URL, the URL of the stream's Redis.
"""

import asyncio
import os
import random
import sys
import threading
import time

from penstock import Penstock, Settings
from penstock.events import feed, pool
from penstock.events.ingest import ingest
from penstock.events.pool import consume
from proof.tally import Tally, tally

# What a consumer held that crashed is taken over soon, and so more often.
feed.LEASE_MS, pool.RENEW_SECONDS = 1_000, 0.25


def made(url: str, stream: str) -> Penstock:
    """The application, which counts what happened in every session."""
    settings = Settings(url=url, extension={"events": {"stream": stream}})
    app = Penstock(settings=settings, extensions=[tally])
    app.consumer.add(Tally(folds=True).consumer(workers=2))
    return app


def crash_at_random(seconds: float) -> None:
    """End this process without a word, somewhere in what it does."""

    def crash() -> None:
        time.sleep(random.uniform(0, seconds))
        os._exit(9)

    threading.Thread(target=crash, daemon=True).start()


async def main(what: str, url: str, stream: str) -> None:
    """Run until killed."""
    async with made(url, stream) as app:
        await (ingest(app) if what == "ingest" else consume(app))


if __name__ == "__main__":
    if sys.argv[1] == "consume" and len(sys.argv) > 4:
        crash_at_random(float(sys.argv[4]))
    asyncio.run(main(*sys.argv[1:4]))
