"""The event loop of a process that is all worker."""

import asyncio
import gc
import sys
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

SWITCH_SECONDS = 0.0002
"""How long the loop may keep the interpreter from a thread that writes to the store.

At Python's own 5 ms a commit would only set out when all handlers that are ready have run.
"""


CONTAINERS = 10_000
"""So many new objects set off a search for cycles; a batch of events alone makes a thousand."""


def keep_loaded() -> None:
    """Leave what is loaded by now out of every later search for cycles of dead objects.

    Such a search keeps the lock of Python: through all modules it takes tens of milliseconds.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(CONTAINERS, *gc.get_threshold()[1:])


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the fastest event loop there is, beside a writer that gets its turn."""
    sys.setswitchinterval(min(SWITCH_SECONDS, sys.getswitchinterval()))
    return _runner()(main)


def _runner() -> Callable[[Coroutine[Any, Any, T]], T]:
    """Found apart: under an ImportError, every traceback of a job would begin with it."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run
    return uvloop.run
