"""Bring what waits in the spool to the store: after a while of trouble, or always.

Where the store is a server, hooks do not wait for it: they spool, and `penstock forward` on the
same machine moves it on. Where it is the recorder's own file, the leader and the next hook do.
"""

import asyncio
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING

import structlog

from penstock.apps.recorder import home, spool
from penstock.apps.recorder.captured import Captured
from penstock.apps.recorder.gate import cleaner_of
from penstock.apps.recorder.git import Head, Look, commits_of, moved
from penstock.apps.recorder.writing import event_of, write
from penstock.events.event import InvalidEvent
from penstock.events.letters import bury, letter_of_event
from penstock.model.errors import QueueFull
from penstock.model.redact import redact
from penstock.model.store_errors import StoreError
from penstock.service import Seldom
from penstock.store.open import sqlite_path

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

BATCH = 100
EVERY = 1.0
LONGEST_PAUSE = 30.0

log = structlog.get_logger("penstock.recorder")


class Forwarding:
    """Moves the spool of this machine to the store, and knows where repositories here stand."""

    def __init__(self, app: "Penstock") -> None:
        self._app = app
        self._heads: dict[tuple[str, str, str], Head | None] = {}

    async def run_once(self) -> int:
        """Write what waits in the spool; how many events that were.

        What cannot be written now stays where it is, and what never can becomes a dead letter.
        """
        count = 0
        while (taken := await asyncio.to_thread(spool.taken)) is not None:
            with taken:
                events = taken.events()
                while batch := await asyncio.to_thread(_some, events):
                    await _write(self._app, batch)
                    for look in self._looks(batch):
                        clean = cleaner_of(self._app, look.session.session_id)
                        commits = await asyncio.to_thread(commits_of, look, clean)
                        await _write(self._app, commits or [])
                    count += len(batch)
                taken.done()
        return count

    def _looks(self, batch: Sequence[Captured]) -> Iterator[Look]:
        """The repositories that have moved: only this machine can look into them."""
        for one in batch:
            session = one.tenant_id, one.platform, one.session_id
            self._heads[session], look = moved(self._heads.get(session), one)
            if look is not None:
                yield look


def _some(events: Iterator[Captured]) -> list[Captured]:
    return list(islice(events, BATCH))


async def _write(app: "Penstock", batch: Sequence[Captured]) -> None:
    try:
        await write(app, batch)
    except InvalidEvent as error:
        if len(batch) > 1:
            for one in batch:
                await _write(app, [one])
            return
        now = app.store.clock.now()
        await bury(app, [letter_of_event(event_of(batch[0]), error, now)])


async def flush_at_home(app: "Penstock") -> None:
    """Flush the spool into the recorder's own file, if that is the store; a pass of the leader."""
    if is_home(app) and spool.holds_any():
        with suppress(QueueFull):  # it stays, and the next pass tries again
            await Forwarding(app).run_once()


async def forward(app: "Penstock") -> None:
    """Move what hooks of this machine capture to the store, until cancelled."""
    forwarding, may_warn, pause = Forwarding(app), Seldom(), EVERY
    while True:
        try:
            if spool.holds_any():
                await forwarding.run_once()
            pause = EVERY
        except (StoreError, QueueFull) as error:
            if may_warn():
                log.warning("forward_waits", error=redact(str(error)))
            pause = min(2 * pause, LONGEST_PAUSE)
        await asyncio.sleep(pause)


def is_home(app: "Penstock") -> bool:
    """Whether the store is the recorder's own file."""
    url = app.settings.tables or app.settings.url
    file = sqlite_path(url) if url.startswith("sqlite://") else None
    own = home.place(home.DATABASE)
    return file is not None and os.path.realpath(file) == os.path.realpath(own)


def is_wanted(app: "Penstock") -> bool:
    """Whether `penstock up` has to forward: the store is a server, and records."""
    named = {each.name for each in app.extensions}
    return "recorder" in named and not (app.settings.tables or app.settings.url).startswith(
        "sqlite"
    )
