"""How soon what comes through a Redis Stream is derived, at a steady rate, as a user starts it all.

`penstock ingest` and `penstock consume` run beside the producer. Somebody else looks every few
milliseconds how many events are derived: the n-th was when that many were.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import time
from bisect import bisect_left
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import apsw
import msgspec
import redis

from penstock.app.penstock import Penstock
from penstock.apps.recorder.extension import recorder
from penstock.config import Settings
from penstock.events.event import NewEvent
from penstock.events.health import pipeline_health
from penstock.events.stream import EVENTS, fields_of
from proof.bench.asking import MODEL, THINKING_SECONDS, model
from proof.servers import RedisServer

LOOK_SECONDS = 0.005
TICK_SECONDS = 0.01
"""The producer sends what has become due so often."""
MOST_AT_ONCE = 200
ASKED_PER_SECOND = 100
RECORDED_SECONDS = 12.0
"""Figures of stages are written every ten seconds."""
UNTIL_IT_RUNS = 60.0

STAGES = {
    "fetch": "fetching a batch",
    "prepare": "preparing a batch",
    "apply": "applying a batch",
    "whole": "an event, from its fetch to the commit of its batch,",
}

Figure = tuple[str, str, str]


def derived_figures(
    folder: Path, events: Sequence[NewEvent], *, per_second: int, seconds: int
) -> list[Figure]:
    """Every figure: what, how much, and beside what."""
    found = []
    with RedisServer(options={"appendfsync": "always"}) as server:
        place = folder / "derived"
        place.mkdir()
        with _running(place, server.url, "proof.bench.tallied:app", "tally"):
            delays = _delays(place, server.url, events, per_second, seconds)
        p50, p95, p99 = (statistics.quantiles(delays, n=100)[n - 1] for n in (50, 95, 99))
        told = f"{p50:,.0f} / {p95:,.0f} / {p99:,.0f} ms"
        found.append((f"ingest to derived at {per_second:,} events/s: p50 / p95 / p99", told, ""))
    with RedisServer(options={"appendfsync": "always"}) as server:
        place = folder / "recording"
        place.mkdir()
        names = ("recorder.metrics", "recorder.conversations")
        with _running(place, server.url, "penstock.apps.recorder.app:app", *names):
            _send(redis.Redis.from_url(server.url), events, per_second // 5, seconds)
            time.sleep(RECORDED_SECONDS)
        found += _stages(place, f"at {per_second // 5:,} events/s")
    with RedisServer(options={"appendfsync": "always"}) as server, model() as address:
        place = folder / "asking"
        place.mkdir()
        os.environ[MODEL] = address
        with _running(place, server.url, "proof.bench.asking:app", "asking"):
            _send(redis.Redis.from_url(server.url), events, ASKED_PER_SECOND, seconds)
            time.sleep(RECORDED_SECONDS)
        thinking = f"with a model that thinks for {1_000 * THINKING_SECONDS:.0f} ms"
        found += _stages(place, f"{thinking}, at {ASKED_PER_SECOND} events/s")
    return found


def _stages(place: Path, when: str) -> list[Figure]:
    """How long each stage of the consumers took."""
    return [
        (
            f"{name}, {STAGES.get(stage, stage)} {when}: p50 / p95 / p99",
            f"{p50:.1f} / {p95:.1f} / {p99:.1f} ms",
            "",
        )
        for name, stages in sorted(asyncio.run(_timings(place)).items())
        for stage, (p50, p95, p99) in sorted(stages.items())
    ]


def _delays(
    folder: Path, url: str, events: Sequence[NewEvent], per_second: int, seconds: int
) -> list[float]:
    """Send at a steady rate; the milliseconds after which each event was derived."""
    client = redis.Redis.from_url(url)
    seen_at: list[float] = []
    counts: list[int] = []
    _send(client, events[:1], 1, 1)
    connection = apsw.Connection(str(folder / "work.db"), flags=apsw.SQLITE_OPEN_READONLY)
    connection.set_busy_timeout(1_000)
    _until(lambda: _count(connection) == 1)
    sent_at: list[float] = []

    def send() -> None:
        sent_at.extend(_send(client, events, per_second, seconds))

    producer = Thread(target=send)
    producer.start()
    wanted = per_second * seconds
    while not counts or counts[-1] < wanted:
        counts.append(_count(connection) - 1)
        seen_at.append(time.perf_counter())
        time.sleep(LOOK_SECONDS)
    producer.join()
    connection.close()
    return [1_000 * (seen_at[bisect_left(counts, n)] - sent) for n, sent in enumerate(sent_at, 1)]


def _send(
    client: redis.Redis, events: Sequence[NewEvent], per_second: int, seconds: int
) -> list[float]:
    """Add so many events a second to the stream; when each was handed over."""
    sent_at: list[float] = []
    began = time.perf_counter()
    while len(sent_at) < per_second * seconds:
        due = int((time.perf_counter() - began) * per_second) + 1
        due = min(due, per_second * seconds, len(sent_at) + MOST_AT_ONCE)
        pipe: Any = client.pipeline(transaction=False)
        now = int(time.time() * 1_000)
        for n in range(len(sent_at), due):
            known = msgspec.structs.replace(
                events[n % len(events)], event_id=f"e{began:.6f}.{n}", timestamp=now
            )
            pipe.execute_command("XADD", EVENTS, "*", *fields_of(known, now))
        sent_at.extend([time.perf_counter()] * (due - len(sent_at)))
        pipe.execute()
        time.sleep(TICK_SECONDS)
    return sent_at


def _count(connection: apsw.Connection) -> int:
    try:
        found: Any = connection.execute("SELECT sum(events) FROM tally_sessions").get
    except apsw.SQLError:  # the consumer has not made its table yet
        return 0
    return int(found or 0)


def _until(is_so: Any) -> None:
    ends_at = time.monotonic() + UNTIL_IT_RUNS
    while not is_so():
        if time.monotonic() > ends_at:
            raise TimeoutError("The consumer derived nothing in a minute; see what it printed.")
        time.sleep(LOOK_SECONDS)


@contextmanager
def _running(
    folder: Path, stream: str, application: str, *consumers: str
) -> Generator[None, None, None]:
    told = {
        "PENSTOCK_URL": f"sqlite:///{folder}/work.db",
        "PENSTOCK_EVENTS__STREAM": stream,
        "PENSTOCK_EVENTS__SPOOL": f"{folder}/spool",
    }
    command = [sys.executable, "-m", "penstock.cli"]
    quiet = ["--log-level", "error"]
    with (
        subprocess.Popen(
            [*command, "ingest", application, *quiet], env={**os.environ, **told}
        ) as ingest,
        subprocess.Popen(
            [*command, "consume", application, *consumers, *quiet], env={**os.environ, **told}
        ) as consume,
    ):
        try:
            _until(lambda: (folder / "work.db").exists())
            yield
        finally:
            for process in (consume, ingest):
                process.terminate()


async def _timings(folder: Path) -> dict[str, dict[str, tuple[float, float, float]]]:
    settings = Settings(url=f"sqlite:///{folder}/work.db")
    found: dict[str, dict[str, tuple[float, float, float]]] = {}
    async with Penstock(settings=settings, extensions=["events", recorder]) as reading:
        for each in (await pipeline_health(reading)).timings:
            if each.of != "ingest":
                found.setdefault(each.of, {})[each.stage] = (each.p50, each.p95, each.p99)
    return found
