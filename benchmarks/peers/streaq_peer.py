"""streaq on Redis streams; the setting is its concurrency."""

import logging

from harness import DATA, TALLY, Peer, batches, main
from streaq import Worker

logging.disable(logging.CRITICAL)


async def noop(data: str, sent_ns: int = 0) -> None:  # noqa: ARG001
    TALLY.end(sent_ns)


class Streaq(Peer):
    async def open(self) -> None:
        self._make(1)
        await self._worker.__aenter__()

    async def enqueue(self, jobs: int) -> None:
        for count in batches(jobs):
            await self._worker.enqueue_many([self._task.enqueue(DATA) for _ in range(count)])

    async def enqueue_one(self, sent_ns: int) -> None:
        await self._task.enqueue(DATA, sent_ns)

    def work(self, setting: int) -> None:
        self._make(setting)
        TALLY.wait_for_start()
        self._worker.run_sync()

    def _make(self, concurrency: int) -> None:
        self._worker = Worker(
            redis_url=self.url, concurrency=concurrency, anyio_kwargs={"use_uvloop": True}
        )
        self._task = self._worker.task(name="noop")(noop)


if __name__ == "__main__":
    main(Streaq)
