"""What `penstock ingest` does: the fast path, the mirrors, the spool and recompression."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

import structlog

from penstock.events.recompress import recompress
from penstock.events.stages import Stages
from penstock.model.store_errors import StoreError
from penstock.service import Seldom

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.events.fast_path import FastPath
    from penstock.events.stream import Stream

log = structlog.get_logger("penstock.events")

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 10.0
FLUSH_SECONDS = 1.0
MIRROR_SECONDS = 0.05
RECOMPRESS_SECONDS = 60.0


def is_wanted(app: "Penstock") -> bool:
    """Whether there is anything for `penstock up` to run: a stream, or a spool."""
    return app.events.intake is not None


async def ingest(app: "Penstock", names: Sequence[str] = ()) -> None:
    """Write what the stream holds into the log, and keep its mirrors, until cancelled.

    Without a stream, events are in the log already: bodies are recompressed, and nothing else.
    """
    stream: Stream | None = app.events.stream
    duties = [_flushing(app), _recompressing(app)]
    if stream is None:
        log.info("ingest_only_recompresses", reason="events.stream names no Redis")
    else:
        stages = Stages()
        duties.append(_reading_stream(app, stream, names[0] if names else None, stages))
        if app.extensions.settings("events").mirror:
            duties.append(_mirroring(app, stream, stages))
    tasks = [asyncio.create_task(duty) for duty in duties]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _reading_stream(
    app: "Penstock", stream: "Stream", name: str | None, stages: Stages
) -> None:
    from penstock.events.fast_path import FastPath, NameLost

    while True:
        one = FastPath(app, stream, name, stages)
        try:
            await _named(one)
            await one.run()
        except NameLost:
            log.warning("ingest_lost_its_name", consumer=one.name)
        finally:
            await one.close()


async def _named(one: "FastPath") -> None:
    pause = FIRST_PAUSE
    may_warn = Seldom()
    while not one.name:
        try:
            await one.take_name()
        except StoreError as error:
            if may_warn():
                log.warning("ingest_waits", error=str(error))
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)


async def _mirroring(app: "Penstock", stream: "Stream", stages: Stages) -> None:
    from penstock.events.mirror import Mirror

    mirror, may_warn = Mirror(app, stream, stages=stages), Seldom()
    pause = FIRST_PAUSE
    while True:
        try:
            busy = await mirror.run_once() or await mirror.mirror_letters()
            pause = FIRST_PAUSE
        except StoreError as error:
            if may_warn():
                log.warning("mirror_waits", error=str(error))
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        else:
            if not busy:
                await asyncio.sleep(MIRROR_SECONDS)


async def _flushing(app: "Penstock") -> None:
    """Hand on what programs of this machine have spooled, and that have ended since."""
    intake, may_warn = app.events.intake, Seldom()
    while intake is not None:
        try:
            if intake.spool.holds_any:
                await intake.flush()
        except StoreError as error:
            if may_warn():
                log.warning("spool_waits", error=str(error))
        await asyncio.sleep(FLUSH_SECONDS)


async def _recompressing(app: "Penstock") -> None:
    may_warn = Seldom()
    while True:
        try:
            await recompress(app)
        except StoreError as error:
            if may_warn():
                log.warning("recompress_waits", error=str(error))
        await asyncio.sleep(RECOMPRESS_SECONDS)
