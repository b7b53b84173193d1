"""What a worker says of itself."""

from typing import Any

from penstock.store.contract import Beat


def beat(**changes: Any) -> Beat:
    """A heartbeat of a worker named mailer."""
    given: dict[str, Any] = {
        "owner": "host:1",
        "name": "mailer",
        "node": "host",
        "pid": 1,
        "queues": None,
        "types": ("task",),
        "concurrency": 1,
        "running": 0,
        "completed": 0,
        "failed": 0,
        "cpu_percent": 0.0,
        "memory_mb": 1.0,
        "poll_age_ms": 0,
    }
    return Beat(**given | changes)
