"""Events: things that happened, appended to a log from which everything else can be derived."""

TYPE_CHECKING = False  # not from typing, which a hook need not load

if TYPE_CHECKING:
    from typing import Any

    from penstock.events.consumer import Consumer as Consumer
    from penstock.events.consumer import consumer_of as consumer_of
    from penstock.events.enrichment import enrich as enrich
    from penstock.events.event import Event as Event
    from penstock.events.event import EventNotFound as EventNotFound
    from penstock.events.event import InvalidEvent as InvalidEvent
    from penstock.events.event import NewEvent as NewEvent
    from penstock.events.event import Session as Session
    from penstock.events.log import EventFilter as EventFilter
    from penstock.events.pool import catch_up as catch_up
    from penstock.events.series import Kind as Kind
    from penstock.events.series import Series as Series

_HOME = {
    "Consumer": "consumer",
    "Event": "event",
    "EventFilter": "log",
    "EventNotFound": "event",
    "InvalidEvent": "event",
    "Kind": "series",
    "NewEvent": "event",
    "Series": "series",
    "Session": "event",
    "catch_up": "pool",
    "consumer_of": "consumer",
    "enrich": "enrichment",
}

__all__ = list(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> "Any":
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'penstock.events' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"penstock.events.{home}"), name)
    globals()[name] = value
    return value
