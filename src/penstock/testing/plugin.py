"""The pytest plugin. It loads in every test run, so it imports nothing before a fixture is used.

Every fixture starts with `penstock_`: a project that only has penstock installed meets no `app`
or `time` that it did not write.
"""

from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.testing.clock import FakeClock
    from penstock.testing.drain import Drained
    from penstock.testing.virtual import VirtualTime


@pytest.fixture
def penstock_clock() -> "FakeClock":
    """A clock that stands still until the test moves it."""
    from penstock.testing.clock import FakeClock

    return FakeClock()


@pytest.fixture
def penstock_app(penstock_clock: "FakeClock") -> "Iterator[Penstock]":
    """An application on an empty store in memory that reads `penstock_clock`."""
    from penstock.testing.app import in_memory

    with in_memory(clock=penstock_clock) as application:
        yield application


@pytest.fixture
def penstock_drain(penstock_app: "Penstock") -> "Callable[..., Coroutine[Any, Any, Drained]]":
    """`await penstock_drain()` runs what is due; with `through=3600` the next hour as well."""
    from penstock.testing import drain

    return partial(drain, penstock_app)


@pytest.fixture
def penstock_time(penstock_app: "Penstock") -> "Iterator[VirtualTime]":
    """`await penstock_time.advance(days=2)` has all happen that falls into two days."""
    from penstock.testing import virtual_time

    with virtual_time(penstock_app) as virtual:
        yield virtual
