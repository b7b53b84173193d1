"""What a job carries of its trace: a W3C `traceparent`, or several headers as a JSON object."""

from collections.abc import Mapping

from msgspec import MsgspecError
from msgspec.json import decode, encode

TRACEPARENT = "traceparent"
MOST = 4_096
"""How long it may be; beyond, baggage and the like are left behind."""


def packed(headers: Mapping[str, str]) -> str | None:
    """Headers as one text; none if there is nothing to carry."""
    if set(headers) - {TRACEPARENT}:
        text = encode(dict(headers)).decode()
        if len(text) <= MOST:
            return text
    return headers.get(TRACEPARENT)


def unpacked(text: str | None) -> dict[str, str]:
    """The headers again."""
    if not text:
        return {}
    if not text.startswith("{"):
        return {TRACEPARENT: text}
    try:
        return decode(text, type=dict[str, str])
    except (MsgspecError, RecursionError):
        return {}
