"""The pytest plugin. It loads in every test run, so it imports nothing before a fixture is used.

A project that has an `app`, `clock`, `drain` or `time` fixture of its own overrides these.
"""

from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from penstock.client.app import Penstock
    from penstock.testing.clock import FakeClock
    from penstock.testing.drain import Drained
    from penstock.testing.virtual import VirtualTime


@pytest.fixture
def clock() -> "FakeClock":
    """A clock that stands still until the test moves it."""
    from penstock.testing.clock import FakeClock

    return FakeClock()


@pytest.fixture
def app(clock: "FakeClock") -> "Iterator[Penstock]":
    """A penstock application on an empty store in memory, with `clock` for its clock."""
    from penstock.testing.app import in_memory

    with in_memory(clock=clock) as application:
        yield application


@pytest.fixture
def drain(app: "Penstock") -> "Callable[..., Coroutine[Any, Any, Drained]]":
    """`await drain()` runs what is due; `await drain(through=3600)` the next hour as well."""
    from penstock.testing import drain

    return partial(drain, app)


@pytest.fixture
def time(app: "Penstock") -> "Iterator[VirtualTime]":
    """`await time.advance(days=2)`: everything that falls into two days happens to `app`."""
    from penstock.testing import virtual_time

    with virtual_time(app) as virtual:
        yield virtual
