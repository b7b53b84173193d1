"""Columns of the log that are made of an event: its slot, its priority, what its body tells.

A hook loads this in a process that must be gone within milliseconds: it imports next to nothing.
"""

from __future__ import annotations  # not evaluated: a hook need not load typing

from types import MappingProxyType
from zlib import crc32

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

SLOTS = 256
"""Every event has one of so many slots, by its session; what is divided among workers."""

ORDINARY = 3
PRIORITIES = MappingProxyType(
    {
        "user_prompt": 1,
        "acceptance_decision": 1,
        "erasure": 1,
        "tool_use": 2,
        "completion": 2,
        "assistant_response": 2,
        "code_change": 2,
        "performance": 3,
        "latency": 3,
        "session_start": 4,
        "session_end": 4,
        "debug": 5,
        "trace": 5,
    }
)
"""Which types consumers put off first when they fall behind: 5, then 4. Others are ordinary."""

TEXTS = (
    *("workspace_hash", "project_name", "uuid", "parent_uuid", "request_id", "agent_id"),
    *("cwd", "version", "git_branch", "message_role", "message_model", "message_id"),
)
NUMBERS = (
    *("is_sidechain", "input_tokens", "output_tokens", "cache_creation_input_tokens"),
    *("cache_read_input_tokens", "duration_ms", "tokens_used", "tool_calls_count"),
)
EXTRACTED = (*TEXTS[:6], NUMBERS[0], *TEXTS[6:], *NUMBERS[1:])
"""Columns that are filled from an event's metadata, or else its payload, where they fit."""

GREATEST = (1 << 63) - 1
LONGEST_TEXT = 1_000


def slot_of(tenant_id: str, platform: str, session_id: str) -> int:
    """Where the events of a session are, among those that are divided."""
    return crc32(f"{tenant_id}\n{platform}\n{session_id}".encode()) % SLOTS


def extracted(payload: Mapping[str, Any], metadata: Mapping[str, Any]) -> list[Any]:
    """What the columns hold; metadata says more of an event than its payload."""
    columns: list[Any] = list(_NOTHING)
    for source in (payload, metadata):
        for name, value in source.items():
            if name not in _PLACES:
                continue
            place, kind = _PLACES[name]
            if not isinstance(value, _JSON):
                value = str(value)  # such as a UUID
            if kind is str and isinstance(value, str):
                columns[place] = value[:LONGEST_TEXT].replace("\0", "\ufffd")
            elif kind is int and isinstance(value, int) and abs(value) <= GREATEST:
                columns[place] = int(value)
    return columns


_JSON = (str, int, float, list, dict, type(None))
_NOTHING = (None,) * len(EXTRACTED)
_PLACES = {name: (n, str if name in TEXTS else int) for n, name in enumerate(EXTRACTED)}
