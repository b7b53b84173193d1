"""The redaction gate: what may be stored of a text that may hold secrets."""

import re
from functools import cache

from penstock.model.secret_rules import RULES, mark

LIMIT = 65_536

_NOTE = re.compile(r"\n\[(\d{1,12}) characters dropped\]\Z")
_NOTE_ROOM = 64
_LONGEST_TOKEN = 4_096
_TOKEN_CHARACTERS = (
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#$%&*+-./:=?@^_|~[]\\"
)
_PASSES = 8


def redact(text: str) -> str:
    """Replace secrets and e-mail addresses by `[REDACTED_<TYPE>]`, and cut what is over 64 KiB.

    `redact("token=abc123def")` is `"token=[REDACTED_TOKEN]"`; what is redacted stays as it is.
    """
    text = _storable(text)
    for _ in range(_PASSES):
        cleaned = _replaced(_shortened(text))
        if cleaned == text:
            return text
        text = cleaned
    # A text that keeps changing cannot be shown to be clean, so none of it is kept.
    return mark("TEXT")


def redacted(text: str | None, limit: int) -> str | None:
    """What may be kept of somebody's words, if there are any: redacted, then cut."""
    return None if text is None else redact(text)[:limit]


def _storable(text: str) -> str:
    """Half a surrogate pair has no UTF-8, and PostgreSQL holds no NUL.

    One such text would fail a whole batch of writes.
    """
    text = text.replace("\0", "\ufffd")
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _replaced(text: str) -> str:
    lowered = text.lower()
    for rule in RULES:
        if any(needle in lowered for needle in rule.needles):
            text = _compiled(rule.pattern).sub(rule.replace, text)
    return text


def _shortened(text: str) -> str:
    if len(text) <= LIMIT:
        return text
    note = _NOTE.search(text, len(text) - _NOTE_ROOM)
    body = text[: note.start()] if note else text
    kept = _without_half_token(body[: LIMIT - _NOTE_ROOM])
    dropped = len(body) - len(kept) + (int(note[1]) if note else 0)
    return f"{kept}\n[{dropped} characters dropped]"


def _without_half_token(text: str) -> str:
    # Half a secret at the cut fits no rule, and half of it is too much.
    tail = text[-_LONGEST_TOKEN:].rstrip(_TOKEN_CHARACTERS)
    return text[:-_LONGEST_TOKEN] + tail if tail else text


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
