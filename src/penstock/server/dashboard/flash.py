"""A sentence for the next page, kept in a cookie that nobody else can write."""

import hashlib
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode

from msgspec import DecodeError, Struct
from msgspec.json import decode, encode

from penstock.server.access.secrets import same

COOKIE = "penstock_flash"
SECONDS = 60
LONGEST = 1_000


class Flash(Struct, frozen=True):
    """What became of an action; `bad` if it was refused."""

    text: str
    bad: bool = False


def written(flash: Flash, key: str) -> str:
    """What to say, as the value of a cookie."""
    short = Flash(flash.text[:LONGEST], flash.bad)
    body = urlsafe_b64encode(encode(short)).decode()
    return f"{body}.{_seal(body, key)}"


def read(value: str, key: str) -> Flash | None:
    """What a cookie says, if this key wrote it."""
    body, _, seal = value.partition(".")
    if not same(seal, _seal(body, key)):
        return None
    try:
        return decode(urlsafe_b64decode(body), type=Flash)
    except (DecodeError, ValueError):
        return None


def _seal(body: str, key: str) -> str:
    return hmac.new(key.encode(), f"flash:{body}".encode(), hashlib.sha256).hexdigest()
