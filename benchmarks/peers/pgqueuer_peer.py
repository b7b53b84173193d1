"""pgqueuer on PostgreSQL through asyncpg; the setting is its batch size."""

import logging
from datetime import timedelta

import asyncpg
import uvloop
from harness import DATA, TALLY, Peer, batches, main
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

logging.disable(logging.CRITICAL)

PAYLOAD = DATA.encode()


async def noop(job: Job) -> None:
    sent = job.payload or b""
    TALLY.end(int(sent) if sent.isdigit() else 0)


class Pgqueuer(Peer):
    async def setup(self) -> None:
        await self.open()
        await self._queries.install()

    async def open(self) -> None:
        self._queries = Queries(AsyncpgDriver(await asyncpg.connect(self.url)))

    async def enqueue(self, jobs: int) -> None:
        for count in batches(jobs):
            await self._queries.enqueue(["noop"] * count, [PAYLOAD] * count, [0] * count)

    async def enqueue_one(self, sent_ns: int) -> None:
        await self._queries.enqueue("noop", str(sent_ns).encode())

    def work(self, setting: int) -> None:
        uvloop.run(self._work(setting))

    async def _work(self, setting: int) -> None:
        queuer = PgQueuer.from_asyncpg_connection(await asyncpg.connect(self.url))
        queuer.entrypoint("noop")(noop)
        TALLY.wait_for_start()
        await queuer.run(dequeue_timeout=timedelta(seconds=30), batch_size=setting)


if __name__ == "__main__":
    main(Pgqueuer)
