"""Enrichment: what a consumer looks up elsewhere, behind a breaker, and left out under pressure.

    async def prepare(self, events):
        names = await enrich("directory", look_up, [event.person for event in events])

It is None while it is left out. The sessions of those events are marked, and made anew when the
pressure is over and the breaker closed, so that in the end nothing is missing.
"""

import asyncio
import inspect
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import structlog
from msgspec import Struct

from penstock.model.errors import PenstockError
from penstock.model.redact import redact

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.events.consumer import Consumer
    from penstock.events.event import Event

log = structlog.get_logger("penstock.events")

FAILURES = 5
OPEN_MS = 30_000
SECONDS = 5.0


class NotEnriched(PenstockError):
    """A session that cannot be made anew now, as what it is enriched by does not answer."""

    def __init__(self, consumer: str, enrichments: Sequence[str]) -> None:
        self.consumer = consumer
        self.enrichments = enrichments
        super().__init__(
            f"Consumer {consumer!r} cannot rebuild now: {', '.join(enrichments)} does not answer; "
            "rebuild when it does."
        )


class Breaker:
    """Opens after some failures in a row; after a while it lets one call through to see."""

    def __init__(self) -> None:
        self.failures = 0
        self.closes_at = 0

    def lets_through(self, now: int) -> bool:
        """Whether to call; one that is let through to see keeps others out meanwhile."""
        if self.failures < FAILURES:
            return True
        if now < self.closes_at:
            return False
        self.closes_at = now + OPEN_MS
        return True

    def worked(self) -> None:
        """Close it."""
        self.failures = 0

    def failed(self, now: int) -> None:
        """Count a failure, which may open it."""
        self.failures += 1
        self.closes_at = now + OPEN_MS


class _Enriching(Struct):
    """What one call of `prepare` may do, and what it left out."""

    allowed: bool
    breakers: dict[str, Breaker]
    now: Callable[[], int]
    left_out: set[str]


_current: ContextVar[_Enriching | None] = ContextVar("enriching", default=None)


async def enrich(
    name: str,
    call: Callable[..., Any],
    *args: Any,
    critical: bool = False,
    seconds: float = SECONDS,
) -> Any:
    """Call something, plain or async, within `prepare`; None if it is left out or has failed.

    One that is `critical` is never left out, and its failure is the batch's.
    """
    enriching = _current.get()
    if critical or enriching is None:
        return await _called(call, args, seconds)
    breaker = enriching.breakers.setdefault(name, Breaker())
    if not enriching.allowed or not breaker.lets_through(enriching.now()):
        enriching.left_out.add(name)
        return None
    try:
        answer = await _called(call, args, seconds)
    except Exception as error:
        breaker.failed(enriching.now())
        enriching.left_out.add(name)
        log.warning("not_enriched", enrichment=name, error=redact(repr(error)))
        return None
    breaker.worked()
    return answer


async def prepared_with(
    app: "Penstock", consumer: "Consumer", events: Sequence["Event"], *, allowed: bool = True
) -> tuple[Any, list[str]]:
    """What `prepare` makes of events, and which enrichments were left out."""
    breakers: dict[str, Breaker] = app.consumer.breakers
    enriching = _Enriching(allowed, breakers, app.store.clock.monotonic, set())
    token = _current.set(enriching)
    try:
        return await consumer.prepared(events), sorted(enriching.left_out)
    finally:
        _current.reset(token)


async def _called(call: Callable[..., Any], args: Sequence[Any], seconds: float) -> Any:
    async with asyncio.timeout(seconds):
        answer = call(*args)
        return await answer if inspect.isawaitable(answer) else answer
