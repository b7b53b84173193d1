"""The sanitiser: texts and documents in, the same without secrets and personal data out.

    text → bytes → find: documents, then windows of lines: any family? which? look closer
         → replace → find again, until nothing is found

What has passed it comes through again unchanged. If anything goes wrong, none of the text is kept.
"""

from penstock.apps.recorder.sanitise import credentials, people
from penstock.apps.recorder.sanitise.checks import DIGITS
from penstock.apps.recorder.sanitise.credentials import Found
from penstock.apps.recorder.sanitise.names import LENIENT, NUMBER, is_secret, kind_of
from penstock.apps.recorder.sanitise.pattern import NOWHERE, Pattern

TYPE_CHECKING = False  # not from typing, which a hook need not load

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

    from penstock.apps.recorder.sanitise.user_rules import UserRules

VERSION = "1"
"""The version of the rules: what older ones have looked at is looked at again."""

STUB = "[REDACTED_TEXT]"
"""Stands for a text that could not be shown to be clean."""

WINDOW = 32_768
MANY = 262_144
PASSES = 6
DEEPEST = 200


class Finding:
    """What was taken out: its rule and a keyed hash, by which equal values are known. No value."""

    __slots__ = ("category", "confidence", "hash", "replacement", "rule_id")

    def __init__(
        self, category: str, rule_id: str, replacement: str, confidence: float, hash: str
    ) -> None:
        self.category = category
        self.rule_id = rule_id
        self.replacement = replacement
        self.confidence = confidence
        self.hash = hash

    def __repr__(self) -> str:
        return f"Finding({self.rule_id!r}, {self.replacement!r})"


class Cleaned:
    """What may be kept, and what was found in it."""

    __slots__ = ("findings", "value")

    def __init__(self, value: "Any", findings: tuple[Finding, ...] = ()) -> None:
        self.value = value
        self.findings = findings

    @property
    def text(self) -> str:
        """The text, where a text was given."""
        text: str = self.value
        return text


class Sanitiser:
    """Replaces what must not be kept by `[REDACTED_<TYPE>]`.

    `user_rules` names a TOML file. With `pseudonyms`, equal values of a `session` have the same
    name, `<EMAIL_5f3a90>`, and others another one. `key` makes the hashes of what was found; by
    default it is that of the user's home, and without one (`b""`) there are no hashes.
    """

    def __init__(
        self,
        user_rules: "str | Path | UserRules | None" = None,
        *,
        pseudonyms: bool = False,
        session: str = "",
        key: bytes | None = None,
    ) -> None:
        self._key = key
        self._session = session.encode("utf-8", "replace") if pseudonyms else None
        self._user_rules: UserRules | None = None
        if user_rules:
            from penstock.apps.recorder.sanitise.user_rules import UserRules

            given = isinstance(user_rules, UserRules)
            self._user_rules = user_rules if given else UserRules.load(user_rules)  # type: ignore[assignment, arg-type]

    def text(self, text: str) -> Cleaned:
        """A text without what must not be kept; the same object if there was nothing."""
        findings: list[Finding] = []
        return Cleaned(self._text(text, findings), tuple(findings))

    def value(self, value: "Any") -> Cleaned:
        """A JSON value without what must not be kept, in its names and its values."""
        findings: list[Finding] = []
        try:
            return Cleaned(self._value(value, findings, 0), tuple(findings))
        except Exception:
            return Cleaned(STUB, (self._failed(),))

    def hash(self, value: str | bytes) -> str:
        """The keyed hash of a value; whoever has not the key cannot try values."""
        from hmac import digest

        if self._key is None:
            from penstock.apps.recorder.sanitise.key import home_key

            self._key = home_key()
        raw = value.encode("utf-8", "replace") if isinstance(value, str) else value
        return digest(self._key, raw, "sha256").hex() if self._key else ""

    # Documents

    def _value(self, value: "Any", findings: list[Finding], depth: int) -> "Any":
        if isinstance(value, str):
            return self._text(value, findings)
        if value is None or isinstance(value, bool | float):
            return value
        if isinstance(value, int):
            return self._number(value, findings)
        if depth > DEEPEST:
            findings.append(self._failed())
            return STUB
        if isinstance(value, dict):
            return self._document(value, findings, depth)
        if isinstance(value, list | tuple):
            return [self._value(each, findings, depth + 1) for each in value]
        return self._text(str(value), findings)

    def _document(
        self, document: "dict[Any, Any]", findings: list[Finding], depth: int
    ) -> "dict[str, Any]":
        if document.get("kind") == "Secret":
            document = self._without_data(document, findings)
        # A list of variables names its values beside them: `{"name": "TOKEN", "value": "…"}`.
        beside = document.get("name", document.get("key"))
        other = beside if isinstance(beside, str) and kind_of(beside.encode("utf-8", "replace")) else ""
        return {
            self._text(str(name), findings): self._named(
                other if other and name == "value" else str(name), value, findings, depth
            )
            for name, value in document.items()
        }

    def _named(self, name: str, value: "Any", findings: list[Finding], depth: int) -> "Any":
        """A value whose name may say what it is: `{"password": "…"}`, `{"user_email": "…"}`."""
        if isinstance(value, list) and value and all(isinstance(each, str) for each in value):
            return [self._named(name, each, findings, depth + 1) for each in value]
        if isinstance(value, bool) or not isinstance(value, str | int):
            return self._value(value, findings, depth + 1)
        raw = str(value).encode("utf-8", "replace")
        kind = kind_of(name.encode("utf-8", "replace"))
        if kind is not None and (isinstance(value, str) or kind[1] in (LENIENT, NUMBER)):
            if self._kept(raw):
                return value
            if is_secret(kind[1], raw, quoted=True):
                rule = f"named-{kind[0].lower().replace('_', '-')}"
                return self._mark((0, len(raw), rule, kind[0], 0.9), raw, findings)
        if name.lower().replace("_", "") in _MAILBOXES and b"@" in raw:
            return self._mark((0, len(raw), "email-field", "EMAIL", 0.99), raw, findings)
        cleaned = self._value(value, findings, depth + 1)
        if cleaned == value and len(raw) < 200 and _tells(name):
            return self._told(name, value, findings)
        return cleaned

    def _told(self, name: str, value: "str | int", findings: list[Finding]) -> "Any":
        """A value that only its name makes personal, such as ten digits named `phone`."""
        before = f"{name}: "
        seen: list[Finding] = []
        text = self._text(f"{before}{value}", seen)
        if not seen or not text.startswith(before):
            return value
        findings += seen
        return text[len(before) :]

    def _number(self, value: int, findings: list[Finding]) -> "int | str":
        """A number of many digits may be that of a card."""
        if -100_000_000_000 < value < 100_000_000_000:
            return value
        text = str(value)
        cleaned = self._text(text, findings)
        return value if cleaned == text else cleaned

    def _without_data(
        self, document: "dict[Any, Any]", findings: list[Finding]
    ) -> "dict[Any, Any]":
        """A Kubernetes secret: every value of it is one."""
        made = dict(document)
        for part in ("data", "stringData"):
            if isinstance(made.get(part), dict):
                made[part] = {
                    name: self._secret(value, findings) for name, value in made[part].items()
                }
        return made

    def _secret(self, value: "Any", findings: list[Finding]) -> str:
        raw = str(value).encode("utf-8", "replace")
        if self._kept(raw):
            return str(value)
        return self._mark((0, len(raw), "kubernetes-secret", "K8S_SECRET", 0.97), raw, findings)

    def _kept(self, value: bytes) -> bool:
        return value.startswith((b"[REDACTED_", b"<")) and value.endswith((b"]", b">"))

    # Texts

    def _text(self, text: str, findings: list[Finding]) -> str:
        seen: list[Finding] = []
        try:
            cleaned = self._clean(text, seen)
        except Exception:
            findings.append(self._failed())
            return STUB
        findings += seen
        return cleaned

    def _clean(self, text: str, findings: list[Finding]) -> str:
        if len(text) < 4:
            return text if text.isprintable() else _storable(text)
        data = text.encode("utf-8", "replace")
        changed = False
        for _ in range(PASSES):
            found = self._find(data)
            if not found:
                cleaned = data.decode("utf-8", "replace") if changed else text
                return _storable(cleaned)
            data = self._replaced(data, found, findings)
            changed = True
        # A text that keeps changing cannot be shown to be clean.
        raise ValueError("not clean")

    def _find(self, data: bytes) -> list[Found]:
        found = find(data)
        if self._user_rules is not None:
            found = self._user_rules.judge(data, found)
        return apart(found) if len(found) > 1 else found

    def _replaced(self, data: bytes, found: list[Found], findings: list[Finding]) -> bytes:
        pieces: list[bytes] = []
        at = 0
        for each in found:
            start, end = each[0], each[1]
            put = self._mark(each, data[start:end], findings).encode()
            tick = _tick(data, start, end)
            pieces += (data[at:start], tick, put, tick)
            at = end
        pieces.append(data[at:])
        return b"".join(pieces)

    def _mark(self, found: Found, value: bytes, findings: list[Finding]) -> str:
        _, _, rule, type_, confidence = found
        hashed = self.hash(value)
        put = f"[REDACTED_{type_}]"
        if self._session is not None:
            put = f"<{type_}_{self.hash(self._session + b'|' + value)[:6]}>"
        findings.append(Finding(type_.lower(), rule, put, confidence, hashed))
        return put

    def _failed(self) -> Finding:
        return Finding("text", "sanitiser-failed", STUB, 1.0, "")


_MAILBOXES = frozenset(("useremail", "authoremail", "committeremail", "accountemail"))
_TELLING = (
    "phone", "mobile", "tel", "fax", "ssn", "social", "passport", "host", "computer", "machine",
    "nodename", "national", "taxid", "tax_id", "bsn", "pesel", "nino", "aadhaar", "ipaddr", "_ip",
    "clientip", "sin", "whatsapp", "sms",
)  # fmt: skip


def _tells(name: str) -> bool:
    lowered = name.lower()
    return lowered == "ip" or any(each in lowered for each in _TELLING)


def _storable(text: str) -> str:
    """PostgreSQL holds no NUL, and half a surrogate pair has no UTF-8."""
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _tick(data: bytes, start: int, end: int) -> bytes:
    """The quotes that a bare value in JSON needs once it is no number any more."""
    before = data[max(0, start - 24) : start].rstrip()
    if before.endswith(b'\\":'):
        return b'\\"'
    if before.endswith(b'":'):
        return b'"'
    if before.endswith((b"[", b",")) and data[start:end].isdigit() and data[:1] in (b"[", b"{"):
        return b'"'
    return b""


# The search

_families = [
    (Pattern(trigger), look) for trigger, look in (*credentials.FAMILIES, *people.FAMILIES)
]
_any = Pattern("|".join(f"(?:{pattern.source})" for pattern, _ in _families))

_seen = 0


def find(data: bytes) -> list[Found]:
    """All that the rules find; what overlaps is found twice."""
    global _seen
    if b"[" in data and _COLOUR.search(data, 0, len(data)) != NOWHERE:
        data = _uncoloured(data)
    found = credentials.documents(data)
    for start, stop in windows(data):
        # All families as one search are soon worth their compilation, but not to a hook.
        _seen += stop - start
        first = _any.search(data, start, stop)[0] if _seen > MANY else start
        if first >= 0:
            for pattern, look in _families:
                at = first
                while (span := pattern.search(data, at, stop)) != NOWHERE:
                    hit = look(data, *span)
                    at = span[0] + 1
                    if hit is not None:
                        found.append(hit)
                        at = max(at, hit[1])
    return found


_COLOUR = Pattern(r"(?:\x1b|\\u001[bB]|\\x1[bB]|\\033|\\e)\[[0-9;]*m")


def _uncoloured(data: bytes) -> bytes:
    """The text with blanks for colours, whose last letter would hide where a word begins."""
    pieces: list[bytes] = []
    at = 0
    while (span := _COLOUR.search(data, at, len(data))) != NOWHERE:
        pieces += (data[at : span[0]], b" " * (span[1] - span[0]))
        at = span[1]
    return b"".join((*pieces, data[at:]))


def windows(data: bytes) -> "Iterator[tuple[int, int]]":
    """Lines in portions, so that one hit does not have every family search all of a long text."""
    at, size = 0, len(data)
    while size - at > WINDOW:
        stop = data.find(b"\n", at + WINDOW) + 1
        if not stop:
            break
        yield at, stop
        at = stop
    if at < size:
        yield at, size


def apart(found: list[Found]) -> list[Found]:
    """Of findings that overlap, keep the one that is surer, or longer; another look finds the rest."""
    found.sort()
    kept: list[Found] = []
    for each in found:
        if kept and each[0] < kept[-1][1]:
            last = kept[-1]
            if (each[4], each[1] - each[0]) > (last[4], last[1] - last[0]):
                kept[-1] = each
        else:
            kept.append(each)
    return kept
