"""What one client can enqueue into Redis or Valkey, and claim and complete, in batches of 100."""

import time
from importlib.resources import files
from typing import Any

import redis

from penstock.model.clock import SystemClock
from penstock.model.ids import new_ids
from penstock.model.job import (
    DEFAULT_PRIORITY,
    DEFAULT_QUEUE,
    DEFAULT_TIMEOUT_MS,
    rank,
)
from proof.bench.workload import PAYLOAD

BATCH = 100
LEASE_MS = 60_000
OWNER = "raw:limit"
PREFIX = "{raw}:"
DOCUMENT = f'["noop","{DEFAULT_QUEUE}","",null,{DEFAULT_TIMEOUT_MS},null,null]'


def enqueue(url: str, jobs: int) -> float:
    """Jobs per second; their arguments are built before the clock starts."""
    with redis.Redis.from_url(url) as client:
        script = client.register_script(_text("enqueue"))
        calls = _calls(jobs)
        began = time.perf_counter()
        for call in calls:
            script(keys=[PREFIX], args=call)
        return jobs / (time.perf_counter() - began)


def drain(url: str) -> float:
    """Jobs claimed and completed per second."""
    clock = SystemClock()
    with redis.Redis.from_url(url) as client:
        script = client.register_script(_text("turn"))
        total = 0
        settled: list[Any] = []
        began = time.perf_counter()
        while True:
            now = clock.now()
            head = [now, OWNER, BATCH, now + LEASE_MS]
            claimed: Any = script(keys=[PREFIX], args=[*head, *settled])
            if not claimed:
                return total / (time.perf_counter() - began)
            total += len(claimed)
            settled = [part for job in claimed for part in job[:2]]


def _calls(jobs: int) -> list[list[Any]]:
    now = SystemClock().now()
    order = rank(now, DEFAULT_PRIORITY)
    ids = new_ids(jobs)
    return [
        [now, order, *(part for id_ in ids[at : at + BATCH] for part in (id_, DOCUMENT, PAYLOAD))]
        for at in range(0, jobs, BATCH)
    ]


def _text(name: str) -> str:
    return files("proof.bench.limits").joinpath("lua", f"{name}.lua").read_text("utf-8")
