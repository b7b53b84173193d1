"""Measuring single claims, one process at work."""

import time

from penstock.model.ids import new_id
from penstock.model.job import Lease, NewJob
from penstock.model.outcome import Completed
from penstock.store.contract import Claim
from penstock.store.open import open_store
from proof.bench.workload import PAYLOAD

TYPE = "noop"
OWNER = "bench:1:claims"
WARM_UP = 5


async def claims(url: str, jobs: int, batch: int) -> list[float]:
    """Milliseconds of every claim while a backlog is claimed and settled, batch by batch."""
    store = open_store(url)
    await store.open()
    try:
        for _ in range(0, jobs, 1000):
            made = [NewJob(id=new_id(), type=TYPE, payload=PAYLOAD) for _ in range(1000)]
            await store.jobs.enqueue(made)
        asked = Claim(owner=OWNER, types=(TYPE,), limit=batch, start=batch, lease_ms=60_000)
        taken: list[float] = []
        while True:
            began = time.perf_counter()
            leases = (await store.jobs.claim(asked)).leases
            if not leases:
                return taken[min(WARM_UP, len(taken) // 2) :]
            taken.append((time.perf_counter() - began) * 1000)
            await store.jobs.settle(OWNER, [_done(lease) for lease in leases])
    finally:
        await store.close()


async def make(url: str) -> None:
    """Make an installation."""
    store = open_store(url)
    await store.open()
    await store.close()


def _done(lease: Lease) -> Completed:
    return Completed(
        id=lease.id,
        fence=lease.fence,
        type=lease.type,
        queue=lease.queue,
        started_at=lease.started_at or 0,
        wait_ms=0,
        duration_ms=0,
        result="null",
    )
