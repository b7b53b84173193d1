"""procrastinate on PostgreSQL with LISTEN; the setting is its concurrency."""

import asyncio
import logging

from harness import DATA, TALLY, Peer, batches, main
from procrastinate import App, PsycopgConnector

logging.disable(logging.CRITICAL)


async def noop(data: str, sent_ns: int = 0) -> None:  # noqa: ARG001
    TALLY.end(sent_ns)


class Procrastinate(Peer):
    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._app = App(connector=PsycopgConnector(conninfo=url))
        self._task = self._app.task(name="noop")(noop)

    async def setup(self) -> None:
        async with self._app.open_async():
            await self._app.schema_manager.apply_schema_async()

    async def open(self) -> None:
        await self._app.open_async()

    async def enqueue(self, jobs: int) -> None:
        for count in batches(jobs):
            await self._task.batch_defer_async(*({"data": DATA} for _ in range(count)))

    async def enqueue_one(self, sent_ns: int) -> None:
        await self._task.defer_async(data=DATA, sent_ns=sent_ns)

    def work(self, setting: int) -> None:
        asyncio.run(self._work(setting))

    async def _work(self, setting: int) -> None:
        async with self._app.open_async():
            TALLY.wait_for_start()
            await self._app.run_worker_async(concurrency=setting)


if __name__ == "__main__":
    main(Procrastinate)
