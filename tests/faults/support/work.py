"""Jobs to enqueue and ways to end their leases."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from penstock.model.clock import Clock
from penstock.model.failure import Failure
from penstock.model.ids import new_id
from penstock.model.job import Lease, NewJob
from penstock.model.outcome import (
    Buried,
    Cancelled,
    Completed,
    Crashed,
    Failed,
    HandedBack,
    Settlement,
    Snoozed,
)
from penstock.model.retry import ErrorClass
from penstock.store.contract import Claim, Store
from penstock.store.open import open_store

FAILURE = Failure.because(ErrorClass.UNKNOWN, "Broken", "it broke")


def settings_of(address: str) -> dict[str, str]:
    """The settings for an address: a URL, or those of a store and its dispatch with a + between."""
    url, _, dispatch = address.partition(" + ")
    return {"url": url, "dispatch": dispatch} if dispatch else {"url": url}


@asynccontextmanager
async def opened(place: Path | str, clock: Clock | None = None) -> AsyncIterator[Store]:
    """The store at an address, or in a file, open for a while."""
    named = settings_of(str(place) if "://" in str(place) else f"sqlite:///{place}")
    store = open_store(named["url"], clock, dispatch=named.get("dispatch"))
    await store.open()
    try:
        yield store
    finally:
        await store.close()


def new_jobs(count: int, *, job_type: str = "work", payload: str = "{}") -> list[NewJob]:
    """Jobs that are due at once."""
    return [NewJob(id=new_id(), type=job_type, payload=payload) for _ in range(count)]


def claim_of(
    owner: str, limit: int, *, lease_ms: int = 60_000, types: Sequence[str] = ("work",)
) -> Claim:
    """A claim that starts all it gets."""
    return Claim(owner=owner, types=types, limit=limit, start=limit, lease_ms=lease_ms)


def completed(lease: Lease) -> Settlement:
    """The plain ending."""
    return ending(lease, 0)


def ending(lease: Lease, kind: int) -> Settlement:
    """The seven ways a lease can end, by number."""
    facts: dict[str, Any] = {
        "id": lease.id,
        "fence": lease.fence,
        "type": lease.type,
        "queue": lease.queue,
        "started_at": lease.started_at or 0,
    }
    endings: tuple[Callable[[], Settlement], ...] = (
        lambda: Completed(**facts),
        lambda: Failed(**facts, failure=FAILURE, retry_in_ms=0),
        lambda: Snoozed(**facts, delay_ms=0, reason="later"),
        lambda: Cancelled(**facts, reason="no more"),
        lambda: Buried(**facts, failure=FAILURE),
        lambda: Crashed(**facts, failure=FAILURE),
        lambda: HandedBack(**facts),
    )
    return endings[kind % len(endings)]()
