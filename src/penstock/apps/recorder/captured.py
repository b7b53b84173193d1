"""What was captured of an assistant: an event of its session, and the messages in it.

A hook builds these in a process that must be gone within milliseconds, so this module and all that
it imports take nothing from outside the standard library.
"""

from __future__ import annotations  # not evaluated: a hook need not load typing

from penstock.apps.recorder.light import NamedTuple, blake2b, dumps

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

PERSON = "user"
MODEL = "assistant"
TOOL = "tool"

QUEUE = "recorder"
QUEUE_LIMIT = 10_000
"""More jobs than these are not taken in by the recorder's own queue; the hook then spools."""
LONGEST_PART = 200_000
"""Longer texts are kept in several rows, and are one again where they are read."""
VALIDATION = "sanitize_ai_validation"
VALIDATION_PRIORITY = 1
VALIDATION_RETRIES = 3


class Redaction(NamedTuple):
    """Something that the sanitiser took out: by which rule, and never what it was.

    `hashed` is a keyed hash of it, so that the same value is known again.
    """

    category: str
    rule_id: str
    hashed: str
    replacement: str
    confidence: float = 1.0
    detector: str = "rule"


class Message(NamedTuple):
    """A text that a person, a model or a tool wrote; already sanitised."""

    role: str
    content: str
    token_count: int | None = None
    metadata: Mapping[str, Any] = {}
    redactions: tuple[Redaction, ...] = ()


class Captured(NamedTuple):
    """One thing that happened, sanitised, in the words of the log.

    `hook_type` is what the assistant calls it and `event_type` what we do. `source` is where it
    was found: `hook`, `transcript`, `cursor_store` or `telemetry`. `metadata` is what we know of
    it beside what the assistant told; `redactions` are those outside of its messages.
    """

    platform: str
    session_id: str
    hook_type: str
    event_type: str
    event_id: str
    timestamp: int
    payload: Mapping[str, Any]
    source: str
    messages: tuple[Message, ...] = ()
    tenant_id: str = ""
    person: str | None = None
    metadata: Mapping[str, Any] = {}
    redactions: tuple[Redaction, ...] = ()


def conversation_id(tenant_id: str, platform: str, session_id: str) -> str:
    """The id of a session's conversation, the same wherever it is computed."""
    return digest(tenant_id, platform, session_id)


def message_id(event_id: str, n: int, part: int = 1) -> str:
    """The id of the nth message of an event: captured again, it is there once."""
    return digest(event_id, str(n)) if part == 1 else digest(event_id, str(n), str(part))


def parts_of(content: str) -> list[str]:
    """A text in parts that fit a row each, cut between lines or words where there are such."""
    parts: list[str] = []
    at = 0
    while len(content) - at > LONGEST_PART:
        first, last = at + LONGEST_PART // 2, at + LONGEST_PART
        end = content.rfind("\n", first, last) + 1 or content.rfind(" ", first, last) + 1 or last
        parts.append(content[at:end])
        at = end
    parts.append(content[at:])
    return parts


def validation_key(message: str) -> str:
    """The unique key of the job that validates a message."""
    return f"sanitize-ai-validation-{message}"


def content_hash(content: str) -> str:
    """What equal messages have in common."""
    return digest(content)


def digest(*parts: str) -> str:
    """A short hash of some texts."""
    joined = "\n".join(parts).encode("utf-8", "surrogatepass")
    return blake2b(joined, digest_size=16).hexdigest()


TWIN_MS = 2_000
TWIN_CALL_MS = 3_600_000


def hook_event_id(told: tuple[str, ...], timestamp: int, *, unique: bool) -> str:
    """The id of what a hook was told, the same for two hooks that were told the same.

    What has no `unique` field may be told again and mean something else: its id has its time.
    """
    return digest(*told) if unique else f"{digest(*told)}-{timestamp:013d}"


def twins(captured: Captured) -> dict[str, Any]:
    """Where an event stands that another hook has captured: an assistant may run two for one."""
    stem, dash, _ = captured.event_id.partition("-")
    at, near = captured.timestamp, TWIN_MS if dash else TWIN_CALL_MS
    first, last = at - near, at + near
    return {
        "first": f"{stem}-{first:013d}" if dash else stem,
        "last": f"{stem}-{last:013d}" if dash else stem,
        "since": first,
        "until": last,
        "tenant_id": captured.tenant_id,
    }


def message_rows(captured: Captured) -> list[dict[str, Any]]:
    """What `add_message` takes for each message of an event; for a long one, for each part."""
    conversation = conversation_id(captured.tenant_id, captured.platform, captured.session_id)
    return [
        {
            "id": first if part == 1 else message_id(captured.event_id, n, part),
            "tenant_id": captured.tenant_id,
            "person": captured.person,
            "conversation_id": conversation,
            "platform": captured.platform,
            "session_id": captured.session_id,
            "event_id": captured.event_id,
            "role": message.role,
            "content": content,
            "content_hash": content_hash(content),
            "created_at": captured.timestamp,
            "token_count": message.token_count if part == 1 else None,
            "metadata": written(
                {**message.metadata, "of": first, "part": part, "parts": len(parts)}
                if len(parts) > 1
                else message.metadata
            ),
        }
        for n, message in enumerate(captured.messages)
        for first, parts in [(message_id(captured.event_id, n), parts_of(message.content))]
        for part, content in enumerate(parts, 1)
    ]


def redaction_rows(captured: Captured) -> list[tuple[Any, ...]]:
    """What `add_redaction` takes for all that was taken out of an event."""
    parts: list[tuple[str | None, tuple[Redaction, ...]]] = [(None, captured.redactions)]
    parts += [
        (message_id(captured.event_id, n), message.redactions)
        for n, message in enumerate(captured.messages)
        if message.redactions
    ]
    if len(parts) == 1 and not captured.redactions:
        return []
    conversation = conversation_id(captured.tenant_id, captured.platform, captured.session_id)
    return [
        (
            digest(captured.event_id, message or "", str(n)),
            captured.tenant_id,
            conversation,
            message,
            captured.event_id,
            one.category,
            one.rule_id,
            one.hashed,
            one.replacement,
            one.detector,
            one.confidence,
            captured.timestamp,
            "{}",
        )
        for message, redactions in parts
        for n, one in enumerate(redactions)
    ]


def written(value: Any) -> str:
    """A value as compact JSON."""
    return dumps(value)
