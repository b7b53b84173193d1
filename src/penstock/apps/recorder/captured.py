"""What was captured of an assistant: an event of its session, and the messages in it.

A hook builds these in a process that must be gone within milliseconds, so this module and all that
it imports take nothing from outside the standard library.
"""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

PERSON = "user"
MODEL = "assistant"
TOOL = "tool"


class Message(NamedTuple):
    """A text that a person, a model or a tool wrote; already sanitised."""

    role: str
    content: str
    token_count: int | None = None
    metadata: Mapping[str, Any] = {}


class Captured(NamedTuple):
    """One thing that happened, sanitised, in the words of the log.

    `hook_type` is what the assistant calls it and `event_type` what we do. `source` is where it
    was found: `hook`, `transcript`, `cursor_store` or `telemetry`.
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


def conversation_id(tenant_id: str, platform: str, session_id: str) -> str:
    """The id of a session's conversation, the same wherever it is computed."""
    return _digest(tenant_id, platform, session_id)


def message_id(event_id: str, n: int) -> str:
    """The id of the nth message of an event: captured again, it is there once."""
    return _digest(event_id, str(n))


def content_hash(content: str) -> str:
    """What equal messages have in common."""
    return _digest(content)


def _digest(*parts: str) -> str:
    joined = "\n".join(parts).encode("utf-8", "surrogatepass")
    return blake2b(joined, digest_size=16).hexdigest()
