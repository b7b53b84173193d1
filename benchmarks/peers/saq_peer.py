"""saq on Redis; the setting is its concurrency. It has no bulk enqueue."""

import asyncio
import logging
from typing import Any

import uvloop
from harness import DATA, TALLY, Peer, batches, main
from saq import Queue, Worker

logging.disable(logging.CRITICAL)

AT_ONCE = 100


async def noop(_context: Any, *, data: str, sent_ns: int = 0) -> None:  # noqa: ARG001
    TALLY.end(sent_ns)


class Saq(Peer):
    async def open(self) -> None:
        self._queue = Queue.from_url(self.url)

    async def enqueue(self, jobs: int) -> None:
        for count in batches(jobs, AT_ONCE):
            await asyncio.gather(*(self._queue.enqueue("noop", data=DATA) for _ in range(count)))

    async def enqueue_one(self, sent_ns: int) -> None:
        await self._queue.enqueue("noop", data=DATA, sent_ns=sent_ns)

    def work(self, setting: int) -> None:
        uvloop.run(self._work(setting))

    async def _work(self, setting: int) -> None:
        await self.open()
        worker = Worker(self._queue, functions=[("noop", noop)], concurrency=setting)
        TALLY.wait_for_start()
        await worker.start()


if __name__ == "__main__":
    main(Saq)
