"""Enqueues the jobs of a torture run: `python -m penstock.torture.producer ORDER`.

An id is written down, synced, only after `enqueue` returned: these are the ids that must not get
lost.
"""

import asyncio
import os
import random
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

import msgspec

from penstock.app.job_type import Prepared
from penstock.logs import configure_logs
from penstock.model.store_errors import StoreFull, StoreUnavailable
from penstock.torture.work import app, in_loop, in_process, in_thread

MAX_BATCH = 20
RUNNING_AT_ONCE = 6
LONGEST_MEAN_SECONDS = 0.5
RETRY_SECONDS = 0.05

T = TypeVar("T")


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What to enqueue, where to, and over how long."""

    store: dict[str, str]
    acknowledged: str
    effects: str
    jobs: int
    seconds: float
    seed: int


async def produce(order: Order) -> None:
    """Enqueue all jobs, evenly over the time, in batches of changing size."""
    chance = random.Random(order.seed)
    log = os.open(order.acknowledged, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    app.settings = app.settings.replace(**order.store, queue_limit=0)
    mean = min(LONGEST_MEAN_SECONDS, RUNNING_AT_ONCE * order.seconds / order.jobs)
    began = time.monotonic()
    await _insist(app.open)
    try:
        made = 0
        while made < order.jobs:
            size = min(chance.randint(1, MAX_BATCH), order.jobs - made)
            calls = [_call(chance, order.effects, mean) for _ in range(size)]
            handles = await _insist(partial(app.enqueue_many, calls))
            os.write(log, "".join(f"{handle.id}\n" for handle in handles).encode())
            os.fsync(log)
            made += size
            due = began + order.seconds * made / order.jobs
            await asyncio.sleep(max(0.0, due - time.monotonic()))
    finally:
        await app.close()
    os.close(log)


async def _insist(call: Callable[[], Awaitable[T]]) -> T:
    """Try until the store answers: the jobs have their ids, so a second try makes no second job."""
    while True:
        try:
            return await call()
        except (StoreUnavailable, StoreFull):
            await asyncio.sleep(RETRY_SECONDS)


def _call(chance: random.Random, effects: str, mean: float) -> Prepared[int]:
    seconds = chance.uniform(0, 2 * mean)
    kind = chance.random()
    if kind < 0.90:
        return in_loop.new(effects, seconds)
    if kind < 0.98:
        return in_thread.new(effects, seconds)
    return in_process.new(effects, seconds)


if __name__ == "__main__":
    configure_logs(level="error")
    asyncio.run(produce(msgspec.json.decode(sys.argv[1], type=Order)))
