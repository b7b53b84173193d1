"""A learning as it is published: canonical JSON (RFC 8785), and its address on IPFS.

The same learning is the same bytes wherever it is written, and so has one address (CIDv1, raw,
SHA-256), which is computed here and compared with what the node says.
"""

import base64
import hashlib
import math
from typing import Any

from penstock.apps.recorder.records import Learning
from penstock.model.clock import iso
from penstock.model.errors import InvalidOption

VERSION = 1
LARGEST = 256 * 1024
"""One chunk of IPFS; a larger document would have another kind of address."""
GREATEST = (1 << 53) - 1
_CID = bytes((0x01, 0x55, 0x12, 0x20))
_ESCAPED = {
    '"': '\\"',
    "\\": "\\\\",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
}


def document_of(learning: Learning, license_: str) -> bytes:
    """The bytes that are published: what was learned, and nothing of where or by whom."""
    document = canonical(
        {
            "version": VERSION,
            "category": learning.category,
            "title": learning.title,
            "content": learning.content,
            "tags": sorted(learning.tags),
            "confidence": learning.confidence,
            "created_at": iso(learning.created_at),
            "license": license_,
        }
    )
    if len(document) > LARGEST:
        expected = f"one that takes at most {LARGEST:,} bytes to publish"
        raise InvalidOption("learning", learning.id, expected)
    return document


def cid_of(document: bytes) -> str:
    """The address of a document that fits one chunk: `bafkrei…`."""
    raw = _CID + hashlib.sha256(document).digest()
    return "b" + base64.b32encode(raw).decode().lower().rstrip("=")


def canonical(value: Any) -> bytes:
    """A JSON value in its one canonical form."""
    return _written(value).encode("utf-8", "strict")


def _written(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return _text(value)
        case int():
            if abs(value) > GREATEST:
                raise InvalidOption("number", value, "one that every reader of JSON has exactly")
            return str(value)
        case float():
            return _number(value)
        case list() | tuple():
            return f"[{','.join(map(_written, value))}]"
        case dict():
            pairs = sorted(value.items(), key=lambda pair: pair[0].encode("utf-16-be"))
            return "{" + ",".join(f"{_text(name)}:{_written(each)}" for name, each in pairs) + "}"
        case _:
            raise InvalidOption("document", type(value).__name__, "made of what JSON has")


def _text(text: str) -> str:
    written = (_ESCAPED.get(c) or (f"\\u{ord(c):04x}" if c < " " else c) for c in text)
    return f'"{"".join(written)}"'


def _number(number: float) -> str:
    """A number as ECMAScript writes it: the shortest digits that read back as the same."""
    if not math.isfinite(number):
        raise InvalidOption("number", number, "finite")
    if number == 0:
        return "0"
    sign = "-" if number < 0 else ""
    mantissa, _, exponent = f"{abs(number)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0)
    if whole.strip("0") == "":
        point -= len(whole + fraction) - len(digits)
    digits = digits.rstrip("0")
    n, k = point, len(digits)
    if k <= n <= 21:
        return f"{sign}{digits}{'0' * (n - k)}"
    if 0 < n <= 21:
        return f"{sign}{digits[:n]}.{digits[n:]}"
    if -6 < n <= 0:
        return f"{sign}0.{'0' * -n}{digits}"
    power = f"{'+' if n > 0 else '-'}{abs(n - 1)}"
    first, rest = digits[0], digits[1:]
    return f"{sign}{first}{'.' + rest if rest else ''}e{power}"
