"""An application with events, on a place of each kind, and a consumer that counts them."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock import Penstock, Settings
from penstock.events.event import NewEvent
from penstock.testing.clock import FakeClock
from proof.tally import tally
from tests.support.places import find_place

KINDS = ("sqlite", "postgres", "valkey")
NOON = 1_767_268_800_000
"""The first of January 2026."""
DAY = 86_400_000


def an_event(session: str = "s1", amount: int = 1, **fields: Any) -> NewEvent:
    """An event of a shop."""
    told: dict[str, Any] = {"event_type": "tool_use", "platform": "shop", **fields}
    told.setdefault("payload", {"amount": amount})
    return NewEvent(session_id=session, **told)


@asynccontextmanager
async def events_app(
    kind: str, request: pytest.FixtureRequest, clock: FakeClock, tmp_path: Path, **settings: Any
) -> AsyncGenerator[Penstock, None]:
    """Open one; its archive is in a folder of the test."""
    place = find_place(kind, request)
    tables = f"sqlite:///{tmp_path}/tables.db" if kind == "valkey" else None
    told = {"archive": str(tmp_path / "archive"), **settings}
    given = Settings(url=place.url, tables=tables, extension={"events": told})
    async with Penstock(settings=given, extensions=[tally], clock=clock) as app:
        yield app
