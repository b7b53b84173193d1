"""Ingest goes on with all of its duties, whatever goes wrong in one of them."""

import asyncio
import zlib
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock import Penstock
from penstock.events import ingest as module
from penstock.events.event import NewEvent
from penstock.events.fast_path import FastPath
from penstock.events.ingest import ingest
from penstock.events.mirror import Mirror
from penstock.events.spool import Spool
from tests.events.streams import Others, envelope, events_of, intake_of, streaming, until
from tests.support.places import Place


@asynccontextmanager
async def ingesting(app: Penstock) -> AsyncGenerator["asyncio.Task[None]", None]:
    running = asyncio.create_task(ingest(app))
    try:
        yield running
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


class Failing:
    """Fails some times, then does what stands in its place."""

    def __init__(self, does: Callable[..., Any], error: Exception) -> None:
        self.left = 2
        self._does = does
        self._error = error

    def __get__(self, one: Any, owner: Any = None) -> Any:
        return lambda *given: self(one, *given)

    def __call__(self, *given: Any) -> Any:
        if self.left:
            self.left -= 1
            raise self._error
        return self._does(*given)


@pytest.mark.parametrize(
    ("owner", "name", "error"),
    [
        (module, "recompress", zlib.error("incorrect header check")),
        (Spool, "take", OSError(5, "Input/output error")),
        (Mirror, "run_once", ValueError("of another kind")),
        (FastPath, "run", ValueError("of another kind")),
    ],
)
async def test_what_fails_in_one_duty_is_told_and_tried_again(
    place: Place,
    valkey_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    owner: Any,
    name: str,
    error: Exception,
    capsys: pytest.CaptureFixture[str],
) -> None:
    failing = Failing(getattr(owner, name), error)
    monkeypatch.setattr(owner, name, failing)
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.001)
    async with streaming(place, valkey_url, tmp_path, codec="raw") as app:
        others = Others(valkey_url)
        others.add(envelope(1))
        intake_of(app).spool.append([NewEvent(event_id="e2", timestamp=2, event_type="trace")])
        async with ingesting(app) as running:
            await until(lambda: others.length("cdc:events") == 2 or running.done())
            await until(lambda: not failing.left or running.done())
            assert not running.done()
        assert {each.event_id for each in await events_of(app)} == {"e1", "e2"}
    assert capsys.readouterr().out.count(f"{type(error).__name__}(") == 1
