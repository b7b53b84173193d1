"""Enqueues until it is killed; writes an id down, synced, only after `enqueue` returned.

Arguments: the store's file or URL, the log of acknowledged ids, and at how many changes to the disk
after opening it kills itself (0: never, the test does).
"""

import asyncio
import os
import sys
import time

from penstock.model.ids import new_id
from penstock.model.job import NewJob
from tests.faults.support.children import say
from tests.faults.support.disk import Disk, mounted
from tests.faults.support.work import opened

PRODUCERS = 4
BATCHES = 2_000


class Failpoint(Disk):
    """Ends the process, as SIGKILL would, at one chosen change to the disk."""

    def __init__(self) -> None:
        self.remaining = 0

    def write(self, path: str, offset: int, data: bytes) -> None:
        """Count."""
        self._count()

    def sync(self, path: str) -> None:
        """Count."""
        self._count()

    def synced(self, path: str) -> None:
        """Count."""
        self._count()

    def _count(self) -> None:
        self.remaining -= 1
        if self.remaining == 0:
            # Time for an acknowledgement that came too early to be written down.
            time.sleep(0.03)
            os._exit(9)


async def main(path: str, log_path: str, failpoint: int) -> None:
    log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    disk = Failpoint()

    async def produce(size: int) -> None:
        for _ in range(BATCHES):
            batch = new_id()
            jobs = [NewJob(id=new_id(), type="work", created_by=batch) for _ in range(size)]
            await store.jobs.enqueue(jobs)
            os.write(log, "".join(f"{job.id} {batch} {size}\n" for job in jobs).encode())
            os.fsync(log)

    with mounted(disk):
        async with opened(path) as store:
            say("ready")
            disk.remaining = failpoint
            await asyncio.gather(*(produce(size) for size in range(1, PRODUCERS + 1)))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
