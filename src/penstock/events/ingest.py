"""What `penstock ingest` does: the fast path, the mirrors, the spool and recompression."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

import structlog

from penstock.events.recompress import recompress
from penstock.events.stages import Stages
from penstock.model.redact import redact
from penstock.model.store_errors import StoreError
from penstock.service import Seldom

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.events.stream import Stream

log = structlog.get_logger("penstock.events")

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 10.0
FLUSH_SECONDS = 1.0
MIRROR_SECONDS = 0.05
RECOMPRESS_SECONDS = 60.0

Step = Callable[[], Awaitable[float]]
"""Does a part of a duty; for how many seconds it rests then."""


def is_wanted(app: "Penstock") -> bool:
    """Whether there is anything for `penstock up` to run: a stream, or a spool."""
    return app.events.intake is not None


async def ingest(app: "Penstock", names: Sequence[str] = ()) -> None:
    """Write what the stream holds into the log, and keep its mirrors, until cancelled.

    Without a stream, events are in the log already: bodies are recompressed, and nothing else.
    """
    stream: Stream | None = app.events.stream
    duties = {"spool_waits": _flushing(app), "recompress_waits": _recompressing(app)}
    if stream is None:
        log.info("ingest_only_recompresses", reason="events.stream names no Redis")
    else:
        stages = Stages()
        name = names[0] if names else None
        duties["ingest_waits"] = _reading_stream(app, stream, name, stages)
        if app.extensions.settings("events").mirror:
            duties["mirror_waits"] = _mirroring(app, stream, stages)
    tasks = [asyncio.create_task(_keep_on(*duty)) for duty in duties.items()]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _keep_on(waits: str, step: Step) -> None:
    """Do a duty until cancelled: whatever goes wrong is told, and tried again after a pause."""
    may_warn, pause = Seldom(), FIRST_PAUSE
    while True:
        began = time.monotonic()
        try:
            rest = await step()
            pause = FIRST_PAUSE
        except Exception as error:
            if may_warn():
                told = str(error) if isinstance(error, StoreError) else repr(error)
                log.warning(waits, error=redact(told))
            lasted = time.monotonic() - began > LONGEST_PAUSE
            rest = FIRST_PAUSE if lasted else pause
            pause = min(2 * rest, LONGEST_PAUSE)
        await asyncio.sleep(rest)


def _reading_stream(app: "Penstock", stream: "Stream", name: str | None, stages: Stages) -> Step:
    from penstock.events.fast_path import FastPath, NameLost

    async def step() -> float:
        one = FastPath(app, stream, name, stages)
        try:
            await one.take_name()
            await one.run()
        except NameLost:
            log.warning("ingest_lost_its_name", consumer=one.name)
        finally:
            await one.close()
        return 0

    return step


def _mirroring(app: "Penstock", stream: "Stream", stages: Stages) -> Step:
    from penstock.events.mirror import Mirror

    mirror = Mirror(app, stream, stages=stages)

    async def step() -> float:
        busy = await mirror.run_once() or await mirror.mirror_letters()
        return 0 if busy else MIRROR_SECONDS

    return step


def _flushing(app: "Penstock") -> Step:
    """Hand on what programs of this machine have spooled, and that have ended since."""
    intake = app.events.intake

    async def step() -> float:
        if intake is not None and intake.spool.holds_any:
            await intake.flush()
        return FLUSH_SECONDS

    return step


def _recompressing(app: "Penstock") -> Step:
    async def step() -> float:
        await recompress(app)
        return RECOMPRESS_SECONDS

    return step
