"""How fast `penstock ingest` brings events from a Redis Stream into the log, as a user starts it.

Valkey writes every command to its append-only file and waits for the disk. Beside it is a reader
of the same entries that writes them nowhere: what Redis Streams alone can give.
"""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import redis

from penstock.app.penstock import Penstock
from penstock.config import Settings
from penstock.events.event import NewEvent
from penstock.events.stream import EVENTS, GROUP, fields_of
from proof.servers import RedisServer

AT = 1_700_000_000_000
BATCH = 100
PAGE = 1_000
LOOK_SECONDS = 0.005
TELLS_SECONDS = 4.0
STAGES = ("read", "parse", "compress", "write", "feed", "acknowledge", "whole")

Figure = tuple[str, str, str]


def stream_figures(folder: Path, events: Sequence[NewEvent]) -> list[Figure]:
    """Every figure: what, how much, and beside what."""
    with RedisServer(options={"appendfsync": "always"}) as server:
        client = redis.Redis.from_url(server.url)
        fill(client, events)
        unacknowledged = alone(client, len(events), acknowledges=False)
        client.flushall()
        fill(client, events)
        acknowledged = alone(client, len(events), acknowledges=True)
        client.flushall()
        fill(client, events)
        rate, stages = ingested(folder, server, client, len(events))
    beside = f"{acknowledged:,.0f} read and acknowledged, {unacknowledged:,.0f} only read"
    found = [("ingest from a Redis Stream", f"{rate:,.0f} events/s", beside)]
    for stage in STAGES:
        if stage in stages:
            own = stages.get(f"{stage}_cpu")
            beside = f"of processor time {_in_turn(own)}" if own else ""
            what = f"{stage}, a batch of {BATCH}: p50 / p95 / p99"
            found.append((what, _in_turn(stages[stage]), beside))
    return found


def _in_turn(percentiles: Sequence[float]) -> str:
    return " / ".join(f"{each:.2f}" for each in percentiles) + " ms"


def fill(client: redis.Redis, events: Sequence[NewEvent]) -> None:
    """Add events to the stream, as other programs do."""
    for first in range(0, len(events), PAGE):
        pipe: Any = client.pipeline(transaction=False)
        for n, event in enumerate(events[first : first + PAGE], first):
            known = msgspec.structs.replace(event, event_id=f"e{n}", timestamp=AT + n)
            pipe.execute_command("XADD", EVENTS, "*", *fields_of(known, AT))
        pipe.execute()


def alone(client: redis.Redis, count: int, *, acknowledges: bool) -> float:
    """Read all entries and write them nowhere; entries/s."""
    asked: Any = client
    asked.xgroup_create(EVENTS, GROUP, "0")
    began, left = time.perf_counter(), count
    while left:
        [[_, page]] = asked.xreadgroup(
            GROUP, "alone", {EVENTS: ">"}, count=BATCH, noack=not acknowledges
        )
        left -= len(page)
        if acknowledges:
            ids = [entry_id for entry_id, _ in page]
            pipe = asked.pipeline()
            pipe.xack(EVENTS, GROUP, *ids)
            pipe.xdel(EVENTS, *ids)
            pipe.execute()
    return count / (time.perf_counter() - began)


def ingested(
    folder: Path, server: RedisServer, client: redis.Redis, count: int
) -> tuple[float, dict[str, list[float]]]:
    """Have `penstock ingest` write all of them; events/s, and the times of its stages."""
    url = f"sqlite:///{folder}/stream.db"
    with _ingesting(folder, url, server.url):
        while (left := int(client.xlen(EVENTS))) == count:
            time.sleep(LOOK_SECONDS)
        began = time.perf_counter()
        while client.xlen(EVENTS):
            time.sleep(LOOK_SECONDS)
        took = time.perf_counter() - began
        time.sleep(TELLS_SECONDS)  # it tells of its stages every few seconds
    return left / took, asyncio.run(_stages(url))


@contextmanager
def _ingesting(folder: Path, url: str, stream: str) -> Generator[None, None, None]:
    told = {
        "PENSTOCK_URL": url,
        "PENSTOCK_EVENTS__STREAM": stream,
        "PENSTOCK_EVENTS__SPOOL": f"{folder}/spool",
    }
    command = [sys.executable, "-m", "penstock.cli", "ingest", "--log-level", "error"]
    with subprocess.Popen(command, env={**os.environ, **told}, cwd=folder) as process:
        try:
            yield
        finally:
            process.terminate()


async def _stages(url: str) -> dict[str, list[float]]:
    async with Penstock(settings=Settings(url=url)) as app:
        rows = await app.read(lambda tx: tx.events.queries.rows("ingests"))
    found: dict[str, list[float]] = msgspec.json.decode(rows[0][-1])
    return found
