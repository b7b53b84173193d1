"""taskiq on a Redis list, without results; the setting is its concurrency. It has no bulk."""

import asyncio
import logging

import uvloop
from harness import DATA, TALLY, Peer, batches, main
from taskiq.receiver import Receiver
from taskiq_redis import ListQueueBroker

logging.disable(logging.CRITICAL)

AT_ONCE = 100


async def noop(data: str, sent_ns: int = 0) -> None:  # noqa: ARG001
    TALLY.end(sent_ns)


class Taskiq(Peer):
    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._broker = ListQueueBroker(url)
        self._task = self._broker.task(task_name="noop")(noop)

    async def open(self) -> None:
        await self._broker.startup()

    async def enqueue(self, jobs: int) -> None:
        for count in batches(jobs, AT_ONCE):
            await asyncio.gather(*(self._task.kiq(DATA) for _ in range(count)))

    async def enqueue_one(self, sent_ns: int) -> None:
        await self._task.kiq(DATA, sent_ns)

    def work(self, setting: int) -> None:
        uvloop.run(self._work(setting))

    async def _work(self, setting: int) -> None:
        self._broker.is_worker_process = True
        receiver = Receiver(self._broker, max_async_tasks=setting, max_prefetch=setting)
        TALLY.wait_for_start()
        await receiver.listen(asyncio.Event())


if __name__ == "__main__":
    main(Taskiq)
