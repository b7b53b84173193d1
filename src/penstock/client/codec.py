"""Values to JSON and back, with their types: what msgspec knows, plus Pydantic models and paths."""

from hashlib import sha256
from itertools import accumulate
from pathlib import PurePath
from typing import Any

import msgspec

from penstock.model.errors import InvalidOption

_PIECE = 65_536
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
"""One level down, one level up, as signed bytes."""

_NO_BRACKETS = bytes(set(range(256)) - set(b"[{]}"))


def encode_hook(value: Any) -> Any:
    """Turn a value msgspec does not know into one it does."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, PurePath):
        return str(value)
    raise TypeError(f"{type(value).__name__} cannot be stored as JSON")


def decode_hook(kind: type, value: Any) -> Any:
    """Turn plain data into a type msgspec does not know."""
    if hasattr(kind, "model_validate"):
        return kind.model_validate(value)
    if issubclass(kind, PurePath):
        return kind(value)
    if isinstance(value, kind):
        return value
    raise ValueError(f"Expected `{kind.__name__}`, got `{type(value).__name__}`")


encoder = msgspec.json.Encoder(enc_hook=encode_hook, decimal_format="string")
_ordered = msgspec.json.Encoder(
    enc_hook=encode_hook, decimal_format="string", order="deterministic"
)
KEY_DIGITS = 32


def encode(value: Any) -> str:
    """JSON text of a value."""
    return encoder.encode(value).decode()


def hashed_key(name: str, *parts: Any) -> str:
    """Make a unique key of any values: `hashed_key("thumbnail", url, {"width": 100})`.

    The same values give the same key in every process; the order of a mapping does not matter.
    """
    if not parts:
        raise InvalidOption("parts", "none", "the values that tell one job from another")
    try:
        text = _ordered.encode(parts)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise InvalidOption("parts", type(error).__name__, f"values for JSON ({error})") from error
    return f"{name}-{sha256(text).hexdigest()[:KEY_DIGITS]}"


def decoder(kind: Any, *, strict: bool = True) -> "msgspec.json.Decoder[Any]":
    """A decoder that gives back values of a type."""
    return msgspec.json.Decoder(kind, dec_hook=decode_hook, strict=strict)


class Shape(msgspec.Struct, frozen=True):
    """How a JSON text is built: its levels of nesting, and how many items of the outermost list or
    object are lists or objects themselves.
    """

    depth: int
    items: int


def shape_of(text: bytes) -> Shape:
    """Measure a JSON text in one pass: `shape_of(b'[{"a": []}]') == Shape(3, 1)`."""
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    level = deepest = at_first = quoted = 0
    # Piece by piece, between which other threads have their turn.
    for start in range(0, len(text), _PIECE):
        parts = text[start : start + _PIECE].split(b'"')
        brackets = b"".join(parts[quoted::2]).translate(_STEPS, _NO_BRACKETS)
        quoted ^= (len(parts) - 1) & 1
        if not brackets:
            continue
        levels = list(accumulate(memoryview(brackets).cast("b"), initial=level))
        deepest = max(deepest, max(levels))
        # The outermost one comes to level 1 when it begins, and again after each of its items.
        at_first += levels.count(1) - (level == 1)
        level = levels[-1]
    return Shape(deepest, max(0, at_first - 1))


def depth(text: str) -> int:
    """How many levels a JSON text nests: `depth('[{"a": []}]') == 3`."""
    return shape_of(text.encode("utf-8", "replace")).depth


def deeper_than(text: str, limit: int) -> bool:
    """Whether a JSON text nests deeper; one with few brackets is not looked at closely."""
    if text.count("{") + text.count("[") <= limit:
        return False
    return depth(text) > limit
