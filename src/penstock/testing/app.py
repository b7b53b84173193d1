"""An application on a store in memory, for the length of a test."""

import asyncio
import threading
from collections.abc import Coroutine, Generator
from contextlib import contextmanager
from typing import Any

from penstock.app.penstock import Penstock
from penstock.config import Settings
from penstock.model.clock import Clock
from penstock.store.open import open_store
from penstock.testing.clock import FakeClock

URL = "sqlite:///:memory:"


@contextmanager
def in_memory(
    app: Penstock | None = None, clock: Clock | None = None
) -> Generator[Penstock, None, None]:
    """An application, your own or a new one, opened on an empty store in memory.

    `with in_memory(app, clock):` leaves your module's application as it was when it ends.
    """
    chosen = Penstock(URL, settings=Settings()) if app is None else app
    store, settings = chosen.__dict__.get("store"), chosen.settings
    # An application that is open already has to open the other store too.
    openings = chosen.__dict__["_openings"]
    chosen.__dict__["_openings"] = 0
    chosen.settings = settings.replace(url=URL)
    chosen.__dict__["store"] = open_store(URL, clock or FakeClock())
    _run(chosen.open())
    try:
        yield chosen
    finally:
        if "sync" in chosen.__dict__:
            chosen.sync.close()
        _run(chosen.close())
        chosen.settings = settings
        chosen.__dict__["_openings"] = openings
        if store is None:
            del chosen.__dict__["store"]
        else:
            chosen.__dict__["store"] = store


def _run(work: Coroutine[Any, Any, None]) -> None:
    """In a thread of its own: a loop may or may not be running in this one."""
    failures: list[BaseException] = []

    def target() -> None:
        try:
            asyncio.run(work)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=target)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
