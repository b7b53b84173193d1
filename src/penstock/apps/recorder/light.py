"""What a hook uses of the standard library in the place of what takes it longer to load.

`json`, `typing` and `hashlib` load regular expressions, generics and OpenSSL, which a hook does not
need and which would be a third of its time. Below them are the same functions without those.
"""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False

if TYPE_CHECKING:
    from hashlib import blake2b, sha256
    from typing import Any, NamedTuple
else:
    try:
        from _blake2 import blake2b
    except ImportError:  # another Python than CPython
        from hashlib import blake2b
    try:
        from _sha2 import sha256
    except ImportError:
        try:
            from _sha256 import sha256  # Python 3.11
        except ImportError:
            from hashlib import sha256

__all__ = ["NamedTuple", "blake2b", "dumps", "hmac_sha256", "loads"]


if not TYPE_CHECKING:

    class _Making(type):
        """Makes a named tuple of a class that says its fields as for `typing.NamedTuple`."""

        def __new__(cls, name, bases, said):
            if not bases:
                return super().__new__(cls, name, bases, said)
            fields = said.pop("__annotations__")
            defaults = [said.pop(field) for field in fields if field in said]
            made = namedtuple(name, fields, defaults=defaults, module=said["__module__"])
            for what in ("__doc__", "__qualname__"):
                setattr(made, what, said.get(what))
            return made

    class NamedTuple(metaclass=_Making):
        """Stands for that of `typing`."""


def hmac_sha256(key: bytes, message: bytes) -> str:
    """The HMAC of a message (RFC 2104), in hexadecimal digits."""
    padded = (key if len(key) <= 64 else sha256(key).digest()).ljust(64, b"\0")
    inner = sha256(bytes(byte ^ 0x36 for byte in padded) + message).digest()
    return sha256(bytes(byte ^ 0x5C for byte in padded) + inner).hexdigest()


def _number(text: str) -> float | None:
    """A number as JSON has it; what is beyond all numbers cannot be written again."""
    number = float(text)
    return number if -_ENDLESS < number < _ENDLESS else None


_ENDLESS = float("inf")


class _Reading:
    """What the scanner of `json` is told."""

    strict = False
    object_hook = object_pairs_hook = None
    parse_float = staticmethod(_number)
    parse_int = int
    parse_constant = staticmethod(lambda _: None)
    memo: dict[str, str] = {}  # noqa: RUF012


def _refuse(value: Any) -> Any:
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


_scan: Any
_pieces: Any
try:
    from _json import encode_basestring, make_encoder, make_scanner

    _scan = make_scanner(_Reading)  # type: ignore[arg-type]
    _pieces = make_encoder(None, _refuse, encode_basestring, None, ":", ",", False, False, False)
    assert "".join(_pieces([{"a": (1, None)}], 0)) == '[{"a":[1,null]}]'
    assert _scan('{"a": [1.5]}', 0) == ({"a": [1.5]}, 12)
except (ImportError, TypeError, AttributeError, AssertionError):  # another Python: the usual way
    import json

    _reader: Any = json.JSONDecoder(
        strict=False, parse_float=_number, parse_constant=_Reading.parse_constant
    )
    _writer = json.JSONEncoder(
        ensure_ascii=False, separators=(",", ":"), check_circular=False, allow_nan=False
    )
    _scan = _reader.scan_once
    _pieces = lambda value, _: [_writer.encode(value)]  # noqa: E731


def loads(text: str | bytes) -> Any:
    """A value of JSON; NaN and numbers without end are None, as JSON has none of them."""
    text = text.decode() if isinstance(text, bytes) else text
    text = text.removeprefix("\ufeff").strip(" \t\n\r")
    try:
        value, end = _scan(text, 0)
    except StopIteration:
        raise ValueError("this is no JSON") from None
    if end != len(text):
        raise ValueError("this is more than one value of JSON")
    return value


def dumps(value: Any) -> str:
    """A value as compact JSON."""
    return "".join(_pieces(value, 0))
