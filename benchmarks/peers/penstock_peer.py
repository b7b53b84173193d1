"""penstock on whatever store its URL names; the setting is its concurrency.

A second URL after a blank names the Redis beside PostgreSQL.
"""

import logging

from harness import DATA, TALLY, Peer, batches, main

from penstock import Penstock
from penstock.config import Settings
from penstock.worker import loop
from penstock.worker.worker import Worker

logging.disable(logging.CRITICAL)


async def noop(data: str, sent_ns: int = 0) -> None:  # noqa: ARG001
    TALLY.end(sent_ns)


class PenstockPeer(Peer):
    def __init__(self, url: str) -> None:
        super().__init__(url)
        # Given whole, so that neither the environment nor a penstock.toml changes what is measured.
        store, _, dispatch = url.partition(" ")
        beside = {"dispatch": dispatch} if dispatch else {}
        self._app = Penstock(settings=Settings(url=store, queue_limit=0, **beside))
        self._job = self._app.job(noop)

    async def setup(self) -> None:
        async with self._app:
            pass

    async def open(self) -> None:
        await self._app.__aenter__()

    async def enqueue(self, jobs: int) -> None:
        for count in batches(jobs):
            await self._app.enqueue_many([self._job.new(DATA) for _ in range(count)])

    async def enqueue_one(self, sent_ns: int) -> None:
        await self._job.enqueue(DATA, sent_ns)

    def enqueue_one_plainly(self, sent_ns: int) -> None:
        self._app.sync.enqueue(self._job.new(DATA, sent_ns))

    def work(self, setting: int) -> None:
        loop.run(self._work(setting))

    async def _work(self, setting: int) -> None:
        async with self._app:
            worker = Worker(self._app, concurrency=setting)
            TALLY.wait_for_start()
            await worker.run()


if __name__ == "__main__":
    main(PenstockPeer)
