"""The recorder's sanitiser as the gate of others: of the events' log, and of the engine's errors.

Where the recorder is enabled, what it would take out of a hook goes out of every event and of
every error, traceback and log line that is kept. Nothing heavy is loaded before the first of them.
"""

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.apps.recorder.capture import Clean
    from penstock.apps.recorder.sanitise import Sanitiser
    from penstock.events.event import NewEvent

KNOWN_BY = ("event_id", "event_type", "session_id", "platform", "hook_type", "tenant_id")


def redact(text: str) -> str:
    """A text of the engine without secrets and personal data."""
    return _sanitiser("").text(text).text


def cleaner_of(app: "Penstock", session: str = "") -> "Clean":
    """The sanitiser of all ways into an application, with the rules that its settings name.

    Where these ask for pseudonyms, a value has another one in each session.
    """
    settings = app.extensions.settings("recorder")
    return _cleaner(settings.rules, settings.pseudonyms, session if settings.pseudonyms else "")


@lru_cache(maxsize=64)
def _cleaner(rules: str, pseudonyms: bool, session: str) -> "Clean":
    from penstock.apps.recorder.capture import cleaner

    return cleaner(session, rules, pseudonyms=pseudonyms)[0]


class EventGate:
    """The gate of an application's events, with the rules that its settings name."""

    def __init__(self, app: "Penstock") -> None:
        self._rules: str = app.extensions.settings("recorder").rules

    def __call__(self, event: "NewEvent") -> "NewEvent":
        """An event as it may be kept."""
        return gate(event, _sanitiser(self._rules))


def gate(event: "NewEvent", sanitiser: "Sanitiser | None" = None) -> "NewEvent":
    """An event without secrets and personal data; one that is known by them is refused."""
    from msgspec.structs import replace

    from penstock.events.event import InvalidEvent

    clean = sanitiser or _sanitiser("")
    for name in KNOWN_BY:
        text = getattr(event, name)
        if text and clean.text(text).findings:
            problem = f"has a secret or personal data in its {name}"
            raise InvalidEvent("" if name == "event_id" else event.event_id, problem)
    payload, metadata = clean.value(event.payload), clean.value(event.metadata)
    if not payload.findings and not metadata.findings:
        return event
    return replace(event, payload=_document(payload.value), metadata=_document(metadata.value))


def _document(value: Any) -> dict[str, Any]:
    """A stub stands for a document that could not be shown to be clean."""
    return value if isinstance(value, dict) else {"redacted": value}


@cache
def _sanitiser(rules: str) -> "Sanitiser":
    from penstock.apps.recorder.sanitise import Sanitiser

    return Sanitiser(rules or None, key=b"")
