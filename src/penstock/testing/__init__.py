"""Tools for testing applications and stores; names load when first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.testing.app import in_memory
    from penstock.testing.asserts import assert_enqueued, assert_not_enqueued, enqueued
    from penstock.testing.clock import FakeClock
    from penstock.testing.drain import Drained, drain
    from penstock.testing.eager import eager
    from penstock.testing.history import Happening
    from penstock.testing.signals import Signals
    from penstock.testing.virtual import SyncVirtualTime, VirtualTime, virtual_time
    from penstock.upkeep.extensions import tell_followers
    from penstock.upkeep.schedules import fire_due

_HOME = {
    "Drained": "drain",
    "FakeClock": "clock",
    "Happening": "history",
    "Signals": "signals",
    "SyncVirtualTime": "virtual",
    "VirtualTime": "virtual",
    "assert_enqueued": "asserts",
    "assert_not_enqueued": "asserts",
    "drain": "drain",
    "eager": "eager",
    "enqueued": "asserts",
    "fire_due": "penstock.upkeep.schedules",
    "in_memory": "app",
    "tell_followers": "penstock.upkeep.extensions",
    "virtual_time": "virtual",
}

__all__ = [
    "Drained",
    "FakeClock",
    "Happening",
    "Signals",
    "SyncVirtualTime",
    "VirtualTime",
    "assert_enqueued",
    "assert_not_enqueued",
    "drain",
    "eager",
    "enqueued",
    "fire_due",
    "in_memory",
    "tell_followers",
    "virtual_time",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'penstock.testing' has no attribute {name!r}")
    module = import_module(home if "." in home else f"penstock.testing.{home}")
    # All of its names at once: importing a module has just hidden the function called like it.
    globals().update({known: getattr(module, known) for known, at in _HOME.items() if at == home})
    return globals()[name]


def __dir__() -> list[str]:
    return __all__
