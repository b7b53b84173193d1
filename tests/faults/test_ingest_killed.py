"""Fault 18 for events: ingest is killed, Valkey restarted, a consumer crashes; nothing is lost.

In the full form a million events while ingest is killed 20 times and Valkey restarted twice.
"""

import asyncio
import json
from contextlib import ExitStack, suppress
from random import Random
from typing import Any

import pytest
import redis

from penstock import Penstock
from penstock.events.event import Event
from penstock.events.log import EventFilter
from penstock.events.pool import catch_up
from penstock.events.rebuild import rebuild
from proof.servers import RedisServer
from proof.tally import totals
from tests.faults.support.children import Child
from tests.faults.support.facts import TORTURE, figure
from tests.faults.support.pipeline import made
from tests.faults.support.waiting import eventually
from tests.support.places import find_place

pytestmark = [pytest.mark.faults, pytest.mark.timeout(3600)]

EVENTS = figure(short=4_000, full=1_000_000)
KILLS = figure(short=3, full=20)
RESTARTS = figure(short=1, full=2)
PAGE = 500
SESSIONS = 97
AT = 1_700_000_000_000
CRASHES_WITHIN = figure(short=2, full=20)


class Producer:
    """Another program that adds events, and adds them again when it got no answer."""

    def __init__(self, url: str) -> None:
        self._client = redis.Redis.from_url(url, retry=None)
        self.added = 0

    def add(self, until: int) -> None:
        """Add events up to a number."""
        while self.added < until:
            numbers = range(self.added, min(self.added + PAGE, until))
            with suppress(redis.RedisError):
                pipe = self._client.pipeline(transaction=False)
                for n in numbers:
                    pipe.xadd("telemetry:events", _fields(n))
                pipe.execute()
                self.added = numbers[-1] + 1

    def waiting(self) -> int:
        """How many entries are still to be ingested."""
        with suppress(redis.RedisError):
            return int(self._client.xlen("telemetry:events"))  # type: ignore[arg-type]
        return EVENTS


def _fields(n: int) -> dict[str, Any]:
    return {
        "event_id": f"{n:x}",
        "timestamp": str(AT + n),
        "session_id": f"s{n % SESSIONS}",
        "event_type": "tool_use",
        "payload": json.dumps({"amount": n % 1_000}),
    }


@pytest.mark.parametrize("kind", ["sqlite", "postgres"] if TORTURE else ["sqlite"])
@pytest.mark.quick
async def test_nothing_is_lost_or_there_twice_whoever_is_killed(
    kind: str, request: pytest.FixtureRequest
) -> None:
    place = find_place(kind, request)
    luck = Random(15)
    # What happens, and after how many events were added.
    moments = ["kill"] * KILLS + ["restart"] * RESTARTS
    marks = sorted((luck.randrange(EVENTS), what) for what in moments)
    with RedisServer(options={"appendfsync": "always"}) as server, ExitStack() as children:
        producer = Producer(server.url)
        app = made(place.url, server.url)

        def start(what: str, *more: object) -> Child:
            return children.enter_context(Child("pipeline", what, place.url, server.url, *more))

        async with app:
            await app.events.latest()  # which makes the tables, once
            ingesting, consuming = start("ingest"), start("consume", CRASHES_WITHIN)
            for number, what in marks:
                await asyncio.to_thread(producer.add, number)
                await asyncio.sleep(luck.uniform(0, 0.5))
                if what == "restart":
                    await asyncio.to_thread(server.restart)
                else:
                    ingesting.__exit__()
                    ingesting = start("ingest")
                if not consuming.lives:
                    consuming = start("consume", CRASHES_WITHIN)
            await asyncio.to_thread(producer.add, EVENTS)
            await eventually(lambda: not producer.waiting(), 3_000)
            consuming.__exit__()
            ingesting.__exit__()
            await _account(app)


async def _account(app: Penstock) -> None:
    """Count, sum and XOR of ids are those that were added, and what was derived is what follows."""
    count = total = mixed = last = 0
    while page := await _page(app, last):
        last = page[-1].sequence
        for event in page:
            number = int(event.event_id, 16)
            count, total, mixed = count + 1, total + number, mixed ^ number
    expected = 0
    for n in range(EVENTS):
        expected ^= n
    assert (count, total, mixed) == (EVENTS, EVENTS * (EVENTS - 1) // 2, expected)
    assert await app.read(lambda tx: tx.events.queries.rows("count_dead")) == []

    await _slots_are_free(app)
    await catch_up(app)
    derived = await totals(app)
    assert sum(events for events, _, _ in derived.values()) == EVENTS
    await rebuild(app, app.consumer.get("tally"))
    assert await totals(app) == derived


async def _page(app: Penstock, after: int) -> list[Event]:
    found: list[Event] = await app.events.find(EventFilter(after=after, limit=5_000))
    return found


async def _slots_are_free(app: Penstock) -> None:
    """Wait for the leases of consumers that were killed."""

    async def free() -> bool:
        rows = await app.read(lambda tx: tx.events.queries.rows("cursors", ("tally",)))
        now = app.store.clock.now()
        return all(owner is None or until < now for _, _, owner, until in rows)

    await eventually(free)
