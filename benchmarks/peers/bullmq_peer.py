"""The Python port of bullmq on Redis; the setting is its concurrency."""

import logging

import uvloop
from bullmq import Job, Queue, Worker
from harness import DATA, TALLY, Peer, batches, main

logging.disable(logging.CRITICAL)


async def noop(job: Job, _token: str) -> None:
    TALLY.end(job.data.get("sent_ns", 0))


class Bullmq(Peer):
    async def open(self) -> None:
        self._queue = Queue("bench", {"connection": self.url})

    async def enqueue(self, jobs: int) -> None:
        for count in batches(jobs):
            await self._queue.addBulk([{"name": "noop", "data": {"data": DATA}}] * count)

    async def enqueue_one(self, sent_ns: int) -> None:
        await self._queue.add("noop", {"data": DATA, "sent_ns": sent_ns})

    def work(self, setting: int) -> None:
        uvloop.run(self._work(setting))

    async def _work(self, setting: int) -> None:
        TALLY.wait_for_start()
        worker = Worker(
            "bench",
            noop,
            {"connection": self.url, "concurrency": setting, "autorun": False},
        )
        await worker.run()


if __name__ == "__main__":
    main(Bullmq)
