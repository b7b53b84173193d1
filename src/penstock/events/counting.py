"""Who counts the events that come in: `adds={"events.counter": …}` of an extension."""

from collections.abc import Sequence
from typing import Protocol

from penstock.events.event import NewEvent
from penstock.model.errors import NotAdmitted


class EventCounter(Protocol):
    """Counts the events that come in; as `extension.Counter` does with jobs."""

    def take(self, events: Sequence[NewEvent]) -> str | None:
        """Count events that are about to come in, or say in a sentence why none of them may."""
        ...

    def give_back(self, events: Sequence[NewEvent]) -> None:
        """Uncount events that did not come in after all."""
        ...


Counters = Sequence[tuple[str, EventCounter]]


def take(counters: Counters, events: Sequence[NewEvent]) -> None:
    """Have events counted, or refuse all of them."""
    for place, (extension, counter) in enumerate(counters):
        try:
            reason = counter.take(events)
            if reason is not None:
                raise NotAdmitted(events[0].event_type, extension, reason)
        except BaseException:
            give_back(counters[:place], events)
            raise


def give_back(counters: Counters, events: Sequence[NewEvent]) -> None:
    """Have events uncounted."""
    for _, counter in counters if events else ():
        counter.give_back(events)
