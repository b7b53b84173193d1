"""A consumer that keeps what it derived in memory, for tests of what stands around consumers."""

from collections.abc import Sequence
from typing import Any

from penstock import Penstock
from penstock.events.consumer import consumer_of
from penstock.events.event import Event, NewEvent, Session


class Counting:
    """Counts the events of each session; one whose payload is `bad` fails while `broken`."""

    def __init__(self) -> None:
        self.broken = True
        self.seen: dict[str, list[int]] = {}

    def apply(self, tx: Any, events: Sequence[Event]) -> None:
        for event in events:
            if self.broken and event.payload.get("bad"):
                raise ValueError(f"event {event.payload['n']} is bad")
        for event in events:
            self.seen.setdefault(event.session_id, []).append(event.payload["n"])


class Resetting(Counting):
    """The same; a session can be made anew."""

    def reset(self, tx: Any, session: Session) -> None:
        self.seen.pop(session.session_id, None)


def counting(app: Penstock, made: Counting, name: str = "count", **options: Any) -> Counting:
    """Declare one."""
    app.consumer.add(consumer_of(made, name=name, **options))
    return made


def numbered(*numbers: int, bad: int = -1, session: str = "s", **fields: Any) -> list[NewEvent]:
    """Events with numbers, one of them bad."""
    return [
        NewEvent(
            event_type="tool_use",
            session_id=session,
            payload={"n": n, "bad": n == bad},
            **fields,
        )
        for n in numbers
    ]
