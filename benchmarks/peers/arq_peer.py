"""arq on Redis; the setting is its concurrency. It has no bulk enqueue."""

import asyncio
import logging
from typing import Any

import uvloop
from arq import create_pool
from arq.connections import RedisSettings
from arq.worker import Worker, func
from harness import DATA, TALLY, Peer, batches, main

logging.disable(logging.CRITICAL)

AT_ONCE = 100
POLL_SECONDS = 0.01  # it has no wake-up, and its default of half a second bounds its drain too


async def noop(_context: Any, data: str, sent_ns: int = 0) -> None:  # noqa: ARG001
    TALLY.end(sent_ns)


class Arq(Peer):
    async def open(self) -> None:
        self._redis = await create_pool(RedisSettings.from_dsn(self.url))

    async def enqueue(self, jobs: int) -> None:
        for count in batches(jobs, AT_ONCE):
            await asyncio.gather(*(self._redis.enqueue_job("noop", DATA) for _ in range(count)))

    async def enqueue_one(self, sent_ns: int) -> None:
        await self._redis.enqueue_job("noop", DATA, sent_ns)

    def work(self, setting: int) -> None:
        uvloop.run(self._work(setting))

    async def _work(self, setting: int) -> None:
        worker = Worker(
            [func(noop, name="noop")],
            redis_settings=RedisSettings.from_dsn(self.url),
            max_jobs=setting,
            poll_delay=POLL_SECONDS,
            handle_signals=False,
        )
        TALLY.wait_for_start()
        await worker.async_run()


if __name__ == "__main__":
    main(Arq)
