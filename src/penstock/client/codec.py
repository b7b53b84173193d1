"""Values to JSON and back, with their types: what msgspec knows, plus Pydantic models and paths."""

import re
from pathlib import PurePath
from typing import Any

import msgspec

_NESTING = re.compile(r'"(?:[^"\\]|\\.)*"|([\[{])|([\]}])')


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


def encode(value: Any) -> str:
    """JSON text of a value."""
    return encoder.encode(value).decode()


def decoder(kind: Any, *, strict: bool = True) -> "msgspec.json.Decoder[Any]":
    """A decoder that gives back values of a type."""
    return msgspec.json.Decoder(kind, dec_hook=decode_hook, strict=strict)


def depth(text: str) -> int:
    """How many levels a JSON text nests: `depth('[{"a": []}]') == 3`."""
    level = deepest = 0
    for token in _NESTING.finditer(text):
        if token[1]:
            level += 1
            deepest = max(deepest, level)
        elif token[2]:
            level -= 1
    return deepest


def deeper_than(text: str, limit: int) -> bool:
    """Whether a JSON text nests deeper; one with few brackets is not looked at closely."""
    if text.count("{") + text.count("[") <= limit:
        return False
    return depth(text) > limit
