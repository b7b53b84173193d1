"""Workers: what they say of themselves, and how a store tells of them."""

from typing import Any

from penstock.store.contract import Beat, WorkerInfo

SAID: dict[str, Any] = {
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


def beat(**changes: Any) -> Beat:
    """A heartbeat of a worker named mailer."""
    return Beat(**SAID | changes)


def a_worker(name: str = "w", **changes: Any) -> WorkerInfo:
    """A worker that lives and polls."""
    facts: dict[str, Any] = {
        "owner": f"node:{name}",
        "name": name,
        "types": ("add",),
        "started_at": 0,
        "heartbeat_at": 0,
        "heartbeat_age_ms": 100,
    }
    return WorkerInfo(**SAID | facts | changes)
