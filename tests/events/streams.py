"""An application whose events go through a stream, and what others add to it."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import redis

from penstock import Penstock, Settings
from penstock.events.event import Event
from penstock.events.fast_path import FastPath
from penstock.events.log import Appended, EventFilter
from penstock.events.spool import Intake
from penstock.events.stream import Stream
from penstock.store.redis.connect import address_of
from tests.support.places import Place

AT = 1_700_000_000_000


def envelope(n: int, **changed: Any) -> dict[str, Any]:
    """The fields of an entry, as another program adds it."""
    return {
        "event_id": f"e{n}",
        "timestamp": str(AT + n),
        "platform": "claude_code",
        "session_id": f"s{n % 3}",
        "event_type": "tool_use",
        "hook_type": "PostToolUse",
        "metadata": "{}",
        "payload": json.dumps({"n": n}),
        "enqueued_at": str(AT + n),
        "retry_count": "0",
        **changed,
    }


class Others:
    """Another program that adds to the streams of a Redis, and looks at them."""

    def __init__(self, url: str) -> None:
        self._prefix = address_of(url).prefix
        self.client = redis.Redis.from_url(url.partition("?")[0])

    def key(self, name: str) -> str:
        return self._prefix + name

    def add(self, *entries: dict[str, Any]) -> list[str]:
        key = self.key("telemetry:events")
        return [self.client.xadd(key, entry).decode() for entry in entries]  # type: ignore[union-attr]

    def length(self, name: str = "telemetry:events") -> int:
        return int(self.client.xlen(self.key(name)))  # type: ignore[arg-type]

    def pending(self) -> int:
        summary: Any = self.client.xpending(self.key("telemetry:events"), "processors")
        return int(summary["pending"])

    def entries(self, name: str) -> list[dict[str, str]]:
        found: Any = self.client.xrange(self.key(name))
        return [{n.decode(): v.decode() for n, v in fields.items()} for _, fields in found]


@asynccontextmanager
async def streaming(
    place: Place, stream: str | None, folder: Path, **events: Any
) -> AsyncGenerator[Penstock, None]:
    """An application on a store; tables beside it where it has none."""
    told = {"stream": stream, "spool": str(folder / "spool"), **events}
    tables = f"sqlite:///{folder}/tables.db" if place.kind == "valkey" else None
    settings = Settings(
        **place.settings,
        tables=tables,
        extension={"events": {name: value for name, value in told.items() if value is not None}},
    )
    async with Penstock(settings=settings) as app:
        yield app


def stream_of(app: Penstock) -> Stream:
    """The stream of an application that has one."""
    assert app.events.stream is not None
    return app.events.stream


def intake_of(app: Penstock) -> "Intake[Appended]":
    """What spools the events of an application."""
    assert app.events.intake is not None
    return app.events.intake


@asynccontextmanager
async def fast_path(app: Penstock, name: str | None = None) -> AsyncGenerator[FastPath, None]:
    """One consumer of the group, which a test drives."""
    found = FastPath(app, stream_of(app), name)
    try:
        await found.take_name()
        yield found
    finally:
        await found.close()


async def drain(path: FastPath) -> None:
    """Write all that the stream holds."""
    while await path.run_once():
        continue


async def events_of(app: Penstock) -> list[Event]:
    """What is in the log."""
    found: list[Event] = await app.events.find(EventFilter(limit=10_000))
    return found


async def letters_of(app: Penstock) -> list[dict[str, Any]]:
    """The dead letters of ingest."""
    names = (
        *("id", "source", "sequence", "event_id", "event_type", "platform", "session_id"),
        *("tenant_id", "person", "reason", "tries", "size", "sha256", "failed_at", "document"),
    )
    asked = {"source": "ingest", "tenant": None, "before": "~", "limit": 100}
    rows = await app.read(lambda tx: tx.events.queries.rows("dead", asked))
    return [dict(zip(names, row, strict=True)) for row in rows]


async def until(holds: Callable[[], object], seconds: float = 20) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110 - another process has it come true
            await asyncio.sleep(0.005)
