"""What the validation has found is taken out: of messages, of the log and of all that is derived.

A value that nobody else would mean, a full name or a password, goes from every text of its session;
a short word, such as a first name, only from the messages where it is one. The event that tells of
it says where something was, of which kind, and a keyed hash, never what.
"""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from penstock.apps.recorder.captured import content_hash, digest
from penstock.apps.recorder.detect import NAME
from penstock.apps.recorder.sanitise import Sanitiser
from penstock.events.event import NewEvent, Session
from penstock.events.redaction import redact_session

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.app.penstock import Penstock
    from penstock.app.transact import Unit

REDACTION = "redaction"
SHORT = 5
"""A value of fewer letters and of one word is a word that other texts may mean otherwise."""


class Span(Struct, frozen=True, order=True):
    """Something in a message that must not stay."""

    start: int
    end: int
    category: str
    rule_id: str
    detector: str
    confidence: float

    @property
    def replacement(self) -> str:
        """What stands in its place."""
        return f"[REDACTED_{self.category.upper()}]"


class Text(Struct, frozen=True):
    """A message as it was read."""

    id: str
    content: str
    event_id: str
    sequence: int
    created_at: int


class Redaction:
    """What is taken out of the texts of one session."""

    def __init__(self, found: Mapping[Text, Sequence[Span]], sanitiser: Sanitiser) -> None:
        self._found = {text: sorted(spans) for text, spans in found.items() if spans}
        self._sanitiser = sanitiser
        self._contents = [
            (text.content, _without(text.content, spans)) for text, spans in self._found.items()
        ]
        values = {
            text.content[span.start : span.end]: span.replacement
            for text, spans in self._found.items()
            for span in spans
        }
        self._values = {
            part: mark
            for value, mark in values.items()
            for part in (value, _surname(value, mark))
            if part and _is_distinct(part)
        }
        longest_first = sorted(self._values, key=len, reverse=True)
        joined = "|".join(map(re.escape, longest_first))
        self._anywhere = re.compile(rf"(?<!\w)(?:{joined})(?!\w)") if joined else None

    def change(self, text: str) -> str:
        """A text without what was found."""
        for before, after in self._contents:
            if before in text:
                text = text.replace(before, after)
        if self._anywhere is not None:
            text = self._anywhere.sub(lambda match: self._values[match[0]], text)
        return text

    def told(self) -> dict[str, Any]:
        """What the event says: where, of which kind, and a keyed hash; places as they were."""
        return {
            "messages": [
                {
                    "message_id": text.id,
                    "event_id": text.event_id,
                    "spans": [
                        {
                            "start": span.start,
                            "end": span.end,
                            "category": span.category,
                            "rule_id": span.rule_id,
                            "detector": span.detector,
                            "hash": self._hash(text, span),
                        }
                        for span in spans
                    ],
                }
                for text, spans in self._found.items()
            ]
        }

    def rows(self, session: Session, conversation: str, now: int) -> list[tuple[Any, ...]]:
        """What `add_redaction` takes."""
        return [
            (
                digest(text.id, "validation", str(span.start), text.content),
                session.tenant_id,
                conversation,
                text.id,
                text.event_id,
                span.category,
                span.rule_id,
                self._hash(text, span),
                span.replacement,
                span.detector,
                span.confidence,
                now,
                "{}",
            )
            for text, spans in self._found.items()
            for span in spans
        ]

    def _hash(self, text: Text, span: Span) -> str:
        return self._sanitiser.hash(text.content[span.start : span.end])


async def apply(
    app: "Penstock",
    session: Session,
    conversation: str,
    redaction: Redaction,
    told: Sequence[NewEvent],
    also: "Callable[[Unit], None]",
) -> int:
    """Take it out everywhere, in one commit with what tells of it; how many events changed."""
    event = NewEvent(
        event_type=REDACTION,
        session_id=session.session_id,
        platform=session.platform,
        tenant_id=session.tenant_id,
        payload=redaction.told(),
    )

    def change_messages(tx: Any) -> None:
        for message, content in tx.recorder.rows("contents_of", (conversation,)):
            changed = redaction.change(content)
            if changed != content:
                tx.recorder.run("change_message", (changed, content_hash(changed), message))
        for row in redaction.rows(session, conversation, tx.now):
            tx.recorder.run("add_redaction", row)
        also(tx)

    return await redact_session(app, session, redaction.change, [event, *told], change_messages)


def _without(content: str, spans: Sequence[Span]) -> str:
    parts, at = [], 0
    for span in spans:
        parts += [content[at : span.start], span.replacement]
        at = span.end
    return "".join((*parts, content[at:]))


def _surname(value: str, mark: str) -> str:
    """The last part of a full name, by which people are called as well."""
    words = value.split()
    return words[-1] if mark == f"[REDACTED_{NAME.upper()}]" and len(words) > 1 else ""


def _is_distinct(value: str) -> bool:
    """Whether a value means the same wherever it stands."""
    return " " in value or not value.isalpha() or (len(value) >= SHORT and not value.islower())
