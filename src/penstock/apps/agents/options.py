"""The eighteen types of jobs and how each is run: one table, which the guide shows.

`per_worker` is how many of a type run at once in one worker, and `rate_per_worker` how many begin
there; a fleet has as many times that. `retry_delay` is the first one's; with `backoff` 2 each
further one is twice as long, with 1 they are all the same.
"""

from typing import cast

from msgspec import Struct, structs

from penstock.app.options import Registration

QUEUE = "agents"
WEBHOOKS = "webhooks"
"""Deliveries have a queue of their own, so that no training holds them up."""

MINUTE = 60.0
HOUR = 3_600.0
DAY = 24 * HOUR


class Options(Struct, frozen=True, kw_only=True):
    """How jobs of one type are run."""

    priority: int
    max_retries: int
    retry_delay: float
    timeout: float
    backoff: float = 2.0
    retry_cap: float = HOUR
    per_worker: int = 2
    rate_per_worker: str | None = None
    queue: str = QUEUE
    critical: bool = False

    def registration(self) -> Registration:
        """Return them as `@app.job` takes them."""
        return cast("Registration", structs.asdict(self))


OPTIONS: dict[str, Options] = {
    "memory-consolidation": Options(
        priority=4,
        max_retries=2,
        retry_delay=5,
        timeout=5 * MINUTE,
        per_worker=5,
        rate_per_worker="10/s",
    ),
    "memory-cleanup": Options(priority=6, max_retries=2, retry_delay=10, timeout=5 * MINUTE),
    "memory-importance-decay": Options(
        priority=8, max_retries=2, retry_delay=10, timeout=5 * MINUTE
    ),
    "embedding-batch": Options(
        priority=2,
        max_retries=4,
        retry_delay=2,
        timeout=MINUTE,
        per_worker=3,
        rate_per_worker="5/s",
    ),
    "embedding-reindex": Options(
        priority=8, max_retries=3, retry_delay=30, timeout=HOUR, per_worker=1
    ),
    "trajectory-process": Options(priority=6, max_retries=3, retry_delay=5, timeout=5 * MINUTE),
    "pattern-training": Options(
        priority=8, max_retries=1, retry_delay=MINUTE, backoff=1, timeout=HOUR, per_worker=1
    ),
    "ewc-consolidation": Options(
        priority=8, max_retries=1, retry_delay=MINUTE, backoff=1, timeout=HOUR, per_worker=1
    ),
    "session-cleanup": Options(priority=6, max_retries=2, retry_delay=10, timeout=2 * MINUTE),
    "session-archive": Options(priority=8, max_retries=3, retry_delay=30, timeout=30 * MINUTE),
    "index-optimization": Options(
        priority=9, max_retries=2, retry_delay=MINUTE, timeout=HOUR, per_worker=1
    ),
    "index-rebalance": Options(
        priority=9, max_retries=2, retry_delay=MINUTE, timeout=HOUR, per_worker=1
    ),
    "webhook-dispatch": Options(
        priority=1,
        max_retries=9,
        retry_delay=1,
        timeout=30,
        queue=WEBHOOKS,
        critical=True,
        per_worker=20,
        rate_per_worker="100/s",
    ),
    "slack-sync": Options(priority=6, max_retries=5, retry_delay=5, timeout=10 * MINUTE),
    "quota-check": Options(priority=4, max_retries=2, retry_delay=10, timeout=MINUTE),
    "audit-export": Options(priority=6, max_retries=3, retry_delay=30, timeout=HOUR, critical=True),
    "data-export": Options(priority=6, max_retries=3, retry_delay=30, timeout=HOUR),
    "data-deletion": Options(
        priority=4, max_retries=5, retry_delay=30, timeout=HOUR, critical=True, per_worker=1
    ),
}
