"""Tokens that are known by their format: a prefix of the table, a mark inside, a shape."""

from penstock.apps.recorder.sanitise.checks import (
    DIGITS,
    WORD,
    back,
    base58check,
    made_up,
    placeholder,
)
from penstock.apps.recorder.sanitise.names import RANDOM, is_secret
from penstock.apps.recorder.sanitise.pattern import Found, Pattern
from penstock.apps.recorder.sanitise.tokens import TOKENS, Row

# An escaped line break or a quoted byte before a token ends in a letter that starts no word.
_EDGE = r"(?:\b|_|\\[nrtbf]|\\u00[0-9a-fA-F]{2}|%[0-9a-fA-F]{2})"


def _literal(text: str) -> str:
    return "".join(f"\\{each}" if not each.isalnum() and each != "_" else each for each in text)


AHEAD = 8
_ALPHABETS = (
    (("[0-9a-f]{", "[0-9a-fA-F]{"), "[0-9a-fA-F]{8}"),
    (("[A-Za-z0-9]{", "[a-z0-9]{", "[A-Z0-9]{", "[A-Z2-7]{", "[0-9A-Z]{"), "[A-Za-z0-9]{8}"),
    (("",), r"[\w.:%+/=-]{8}"),
)
"""How bodies begin, and what the search asks for behind a prefix: just enough to be rare."""


def _tokens_trigger() -> str:
    ahead: dict[str, list[str]] = {}
    for _, _, prefixes, body in TOKENS:
        least = body.partition("{")[2].partition("}")[0].partition(",")[0]
        short = body if int(least) >= AHEAD else ""
        letters = next(letters for begins, letters in _ALPHABETS if short.startswith(begins))
        ahead.setdefault(letters, []).extend(map(_literal, prefixes))
    parts = [f"(?:{'|'.join(prefixes)}){letters}" for letters, prefixes in ahead.items()]
    return f"{_EDGE}(?:{'|'.join(parts)})"


_rows: dict[bytes, list[tuple[bytes, Row, Pattern]]] = {}
for _row in TOKENS:
    _body = Pattern(_row[3])
    for _prefix in _row[2]:
        _first = _prefix.encode()
        _rows.setdefault(_first[:2], []).append((_first, _row, _body))

_SKIP = {b"\\": 2, b"%": 3, b"_": 1}


def _begin(data: bytes, start: int) -> int:
    """Where a token begins, behind what may stand at its edge."""
    if data.startswith(b"\\u", start):
        return start + 6
    return start + _SKIP.get(data[start : start + 1], 0)


def token(data: bytes, start: int, __: int) -> Found | int | None:
    """The longest token that begins here."""
    limit = len(data)
    begin = _begin(data, start)
    best: Found | None = None
    seen = 0
    for prefix, (rule, kind, _, _), body in _rows.get(data[begin : begin + 2], ()):
        if data.startswith(prefix, begin):
            after = begin + len(prefix)
            stop = body.at(data, after, limit)[1]
            seen = max(seen, stop)
            if data[begin - 3 : begin] == b"pk_":
                continue  # the key that everybody may see
            if stop > 0 and (best is None or stop > best[1]) and _drawn(data[after:stop]):
                best = (begin, stop, rule, kind, 0.99)
    return best or seen


def _drawn(body: bytes) -> bool:
    """Tell whether the body of a token was drawn, not written: `test_` may also begin a name."""
    return not made_up(body) and (any(each in DIGITS for each in body) or not body.islower())


# Tokens with a mark inside

_MARKS_TRIGGER = (
    r"\.atlasv1\.[\w=-]{8}|[0-9]Q~[\w.~-]{8}|JQQJ99[A-Z0-9]{4}"
    r"|(?:\+(?:ASt|AEh|ABa|ARm|AMC|ACR)|Az(?:Fu|Se|Ca)|ACDb)[A-Za-z0-9+/]{3}"
    rf"|{_EDGE}(?:[0-9]{{8,10}}:A[\w-]{{34}}|[0-9a-f]{{32}}-us[0-9]{{1,2}}\b|[0-9]{{15,16}}\|[\w-]{{27}}"
    r"|[MNO][A-Za-z0-9]{23,25}\.[\w-]{6}\.[\w-]{27})|[A-Za-z0-9]{29}_mmk\b"
    r"|\$(?:2[abxy]|5|6|y|1|apr1|argon2[a-z]{1,2}|scrypt|pbkdf2[\w-]{0,12})\$[^\s\"'\\:,]{16}"
    r"|[?&;](?i:sig|signature|x-(?:amz|goog)-(?:signature|security-token)|code)="
    r"[A-Za-z0-9%+/=_-]{20}|/bot[0-9]{8,10}:A[\w-]{34}"
    r"|\b[KL5][1-9A-HJ-NP-Za-km-z]{50,51}\b"
)
_MARKED = (
    (b".atlasv1.", 14, WORD, Pattern(r"[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{40,}"), "terraform-token",
     "TERRAFORM_TOKEN"),
    (b"Q~", 4, WORD | set(b"_~."), Pattern(r"[\w~.]{3}[0-9]Q~[\w~.-]{31,34}"), "azure-ad-secret",
     "AZURE_SECRET"),
    (b"JQQJ99", 52, WORD, Pattern(r"[A-Za-z0-9]{40,52}JQQJ99[A-Za-z0-9]{20,}"), "azure-ai-key",
     "AZURE_KEY"),
)  # fmt: skip
_AZURE = Pattern(r"[A-Za-z0-9+/]{30,86}(?:={0,2})")
_CRYPT = Pattern(r"\$[a-z0-9-]{1,16}\$[^\s\"'\\:,]{16,}(?:,[tpm]=[0-9]+[^\s\"'\\:]*)*")
_SIGNED = Pattern(r"[?&;][A-Za-z-]{3,30}=")
_PERCENT = Pattern(r"[A-Za-z0-9%+/=_-]{20,}")
_PLAIN_MARKS = (
    (Pattern(r"[0-9]{8,10}:A[\w-]{34,36}"), "telegram-bot-token", "TELEGRAM_TOKEN"),
    (Pattern(r"[0-9a-f]{32}-us[0-9]{1,2}\b"), "mailchimp-key", "MAILCHIMP_KEY"),
    (Pattern(r"[0-9]{15,16}\|[\w-]{27,40}"), "facebook-app-token", "FACEBOOK_TOKEN"),
    (Pattern(r"[MNO][A-Za-z0-9]{23,25}\.[\w-]{6}\.[\w-]{27,}"), "discord-token", "DISCORD_TOKEN"),
)


def marked(data: bytes, start: int, end: int) -> Found | None:
    """A token whose mark is in its middle, or one that is known by its shape alone."""
    limit = len(data)
    first = data[start : start + 1]
    if first == b"$":
        stop = _CRYPT.at(data, start, limit)[1]
        return (start, stop, "password-hash", "PASSWORD_HASH", 0.95) if stop > 0 else None
    if first in (b"?", b"&", b";"):
        begin = _SIGNED.at(data, start, limit)[1]
        stop = _PERCENT.at(data, begin, limit)[1]
        value = data[begin:stop]
        if stop < 0 or placeholder(value):
            return None
        if data[start + 1 : begin - 1].lower() == b"code" and not is_secret(
            RANDOM, value, quoted=True
        ):
            return None
        return begin, stop, "signed-url", "SIGNATURE", 0.95
    begin = start + 4 if first == b"/" else _begin(data, start)
    for pattern, rule, kind in _PLAIN_MARKS:
        stop = pattern.at(data, begin, limit)[1]
        if stop > 0:
            return begin, stop, rule, kind, 0.95
    if first in (b"K", b"L", b"5") and end - start > 50:
        return _wallet_key(data, start, end)
    if data.endswith(b"_mmk", 0, end):
        begin = back(data, start, WORD | {95}, 40)
        return begin, end, "maxmind-key", "MAXMIND_KEY", 0.95
    return _around(data, start, end)


def _around(data: bytes, start: int, end: int) -> Found | None:
    limit = len(data)
    for mark, reach, letters, pattern, rule, kind in _MARKED:
        at = data.find(mark, start, end)
        if at >= 0:
            lowest = back(data, at, letters, reach)
            for begin in range(lowest, min(lowest + 14, at)) if mark == b"JQQJ99" else (lowest,):
                stop = pattern.at(data, begin, limit)[1]
                if stop > 0:
                    return begin, stop, rule, kind, 0.99
            return None
    begin = back(data, start, WORD | set(b"+/"), 90)
    stop = _AZURE.at(data, begin, limit)[1]
    if stop - begin in (40, 44, 52, 56, 84, 86, 88) and stop > end:
        return begin, stop, "azure-key", "AZURE_KEY", 0.95
    return None


def _wallet_key(data: bytes, start: int, end: int) -> Found | None:
    body = base58check(data[start:end])
    if body is None or body[0] not in (0x80, 0xEF):
        return None
    return start, end, "wallet-private-key", "CRYPTO_KEY", 0.99


FAMILIES = ((_tokens_trigger(), token), (_MARKS_TRIGGER, marked))
