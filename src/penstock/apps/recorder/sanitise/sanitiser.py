"""The sanitiser: texts and documents in, the same without secrets and personal data out.

    text → bytes → find: documents, then windows of lines: any family? which? look closer
         → replace → find again, until nothing is found

What has passed it comes through again unchanged. If anything goes wrong, none of the text is kept.
"""

from penstock.apps.recorder.sanitise import files
from penstock.apps.recorder.sanitise.names import LENIENT, NUMBER, is_secret, kind_of
from penstock.apps.recorder.sanitise.search import WINDOW, apart, search, windows

TYPE_CHECKING = False  # not from typing, which a hook need not load

if TYPE_CHECKING:
    from collections.abc import Iterator
    from os import PathLike
    from typing import Any

    from penstock.apps.recorder.sanitise.pattern import Found
    from penstock.apps.recorder.sanitise.user_rules import UserRules

VERSION = "3"
"""The version of the rules: what older ones have looked at is looked at again."""

STUB = "[REDACTED_TEXT]"
"""Stands for a text that could not be shown to be clean."""

PASSES = 6
DEEPEST = 200
SHORT = 64
MOST_HARMLESS = 4_096
REPEATED = 8


class Finding:
    """What was taken out: its rule and a keyed hash, by which equal values are known. No value."""

    __slots__ = ("category", "confidence", "hash", "replacement", "rule_id")

    def __init__(
        self, category: str, rule_id: str, replacement: str, confidence: float, hashed: str
    ) -> None:
        self.category = category
        self.rule_id = rule_id
        self.replacement = replacement
        self.confidence = confidence
        self.hash = hashed

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
        user_rules: "str | PathLike[str] | UserRules | None" = None,
        *,
        pseudonyms: bool = False,
        session: str = "",
        key: bytes | None = None,
    ) -> None:
        self._key = key
        self._hashes: dict[bytes, str] = {}
        self._harmless: set[str] = set()
        """Short texts in which nothing was found: the names in documents come again and again."""
        self._session = session.encode("utf-8", "replace") if pseudonyms else None
        self._user_rules: UserRules | None = None
        if user_rules:
            from penstock.apps.recorder.sanitise import user_rules as own

            if isinstance(user_rules, own.UserRules):
                self._user_rules = user_rules
            else:
                self._user_rules = own.UserRules.load(user_rules)

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
        raw = value.encode("utf-8", "replace") if isinstance(value, str) else value
        if raw in self._hashes:
            return self._hashes[raw]
        from penstock.apps.recorder.light import hmac_sha256

        if self._key is None:
            from penstock.apps.recorder.sanitise.key import home_key

            self._key = home_key()
        made = hmac_sha256(self._key, raw) if self._key else ""
        if len(self._hashes) < 256:
            self._hashes[raw] = made
        return made

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
        other = (
            beside if isinstance(beside, str) and kind_of(beside.encode("utf-8", "replace")) else ""
        )
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
        if text in self._harmless:
            return text
        seen: list[Finding] = []
        try:
            cleaned = self._clean(text, seen)
        except Exception:
            findings.append(self._failed())
            return STUB
        findings += seen
        if len(text) <= SHORT and cleaned == text and len(self._harmless) < MOST_HARMLESS:
            self._harmless.add(text)
        return cleaned

    def _clean(self, text: str, findings: list[Finding]) -> str:
        if len(text) < 4:
            return _storable(text)
        data = text.encode("utf-8", "replace")
        cleaned = self._settled(data, self._in_all, findings)
        if len(cleaned) <= WINDOW:
            cleaned = self._settled(cleaned, self._in_lines, findings)
        else:
            cleaned = b"".join(self._parts(cleaned, findings))
        return _storable(text if cleaned == data else cleaned.decode("utf-8", "replace"))

    def _parts(self, data: bytes, findings: list[Finding]) -> "Iterator[bytes]":
        known: dict[bytes, tuple[bytes, list[Finding]]] = {}  # a text may repeat itself
        for start, stop in windows(data):
            part = data[start:stop]
            if part not in known:
                if len(known) == REPEATED:
                    known.clear()
                seen: list[Finding] = []
                known[part] = self._settled(part, self._in_lines, seen), seen
            cleaned, seen = known[part]
            findings += seen
            yield cleaned

    def _settled(self, data: bytes, search: "Any", findings: list[Finding]) -> bytes:
        """What is left when a search finds nothing any more."""
        for _ in range(PASSES):
            found = search(data)
            if not found:
                return data
            data = self._replaced(data, apart(found), findings)
        # A text that keeps changing cannot be shown to be clean.
        raise ValueError("not clean")

    def _in_all(self, data: bytes) -> "list[Found]":
        found = files.documents(data)
        if self._user_rules is not None:
            found = self._user_rules.allowed(data, found) + self._user_rules.find(data)
        return found

    def _in_lines(self, data: bytes) -> "list[Found]":
        found = search(data)
        return found if self._user_rules is None else self._user_rules.allowed(data, found)

    def _replaced(self, data: bytes, found: "list[Found]", findings: list[Finding]) -> bytes:
        pieces: list[bytes] = []
        at = 0
        for each in found:
            start, end = each[0], each[1]
            put = self._mark(each, data[start:end], findings).encode()
            tick = _tick(data, start, end)
            pieces += (data[at:start], tick, put, tick)
            at = end
        pieces.append(data[at:])
        return self._everywhere(b"".join(pieces), data, found, findings)

    def _everywhere(
        self, cleaned: bytes, data: bytes, found: "list[Found]", findings: list[Finding]
    ) -> bytes:
        """Without what was a secret once and stands there again, where nothing tells of it."""
        values = {data[each[0] : each[1]]: each for each in found if each[3] not in _PERSONAL}
        looks = EVERYWHERE // max(1, len(cleaned))
        for value, each in list(values.items())[:looks]:
            plain = value.isalpha() or value.isdigit() or len(value) < SURE
            if not plain and value in cleaned:
                cleaned = cleaned.replace(value, self._mark(each, value, findings).encode())
        return cleaned

    def _mark(self, found: "Found", value: bytes, findings: list[Finding]) -> str:
        _, _, rule, type_, confidence = found
        hashed = self.hash(value)
        put = f"[REDACTED_{type_}]"
        if self._session is not None:
            put = f"<{type_}_{self.hash(self._session + b'|' + value)[:6]}>"
        findings.append(Finding(type_.lower(), rule, put, confidence, hashed))
        return put

    def _failed(self) -> Finding:
        return Finding("text", "sanitiser-failed", STUB, 1.0, "")


SURE = 10
"""A shorter secret may well be a word, or a part of one, elsewhere."""
EVERYWHERE = 64 << 20
"""So many bytes are looked through for what was found: a file may hold thousands of secrets."""
_PERSONAL = frozenset(
    (
        "EMAIL", "PHONE", "IP_ADDRESS", "MAC_ADDRESS", "HOSTNAME", "USER", "NATIONAL_ID", "IBAN",
        "CARD", "CRYPTO_ADDRESS", "NAME", "PIN",
    )
)  # fmt: skip
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
