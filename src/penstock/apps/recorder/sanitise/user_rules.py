"""Rules of a user's own, in TOML: further patterns, and what is to be left alone.

[[rules]]
id = "acme-token"
type = "ACME_TOKEN"
pattern = 'acme_[a-z0-9]{24}'
keywords = ["acme_"]

[allow]
rules = ["ipv4"]
values = ["81.2.69.142"]
patterns = ['.*@acme\\.org']
"""

from penstock.apps.recorder.sanitise.checks import entropy
from penstock.apps.recorder.sanitise.pattern import NOWHERE, Found, Pattern, compiled

TYPE_CHECKING = False  # not from typing, which a hook need not load

if TYPE_CHECKING:
    from os import PathLike
    from typing import Any

_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


class InvalidRules(ValueError):
    """A file of rules that cannot be used; the sentence says which part, and why."""


class UserRule:
    """One pattern: where to look at all, what to look for, and what to call it."""

    __slots__ = ("entropy", "id", "keywords", "pattern", "type")

    def __init__(self, table: "dict[str, Any]", where: str) -> None:
        self.id = str(table.get("id", ""))
        self.type = str(table.get("type", self.id.upper().replace("-", "_")))
        source = table.get("pattern")
        words = table.get("keywords", [])
        unknown = set(table) - {"id", "type", "pattern", "keywords", "entropy"}
        if not self.id or not isinstance(source, str) or unknown or not isinstance(words, list):
            raise InvalidRules(
                f"{where}: a rule has an id and a pattern, and may have type, keywords and entropy"
                + (f"; it has {', '.join(sorted(unknown))}." if unknown else ".")
            )
        if not self.type or not set(self.type) <= _LETTERS:
            raise InvalidRules(f"{where}: the type {self.type!r} is not of A-Z, 0-9 and _.")
        self.pattern = _pattern(source, f"{where}, {self.id}")
        mark = f"[REDACTED_{self.type}]".encode()
        if self.pattern.search(mark, 0, len(mark)) != NOWHERE:
            raise InvalidRules(f"{where}: the pattern of {self.id} matches what it would leave.")
        self.keywords = tuple(str(each).lower().encode() for each in words)
        self.entropy = float(table.get("entropy", 0))


class UserRules:
    """What a user adds to our rules, and what of them is not to be applied."""

    def __init__(self, document: "dict[str, Any]", where: str = "the rules") -> None:
        unknown = set(document) - {"rules", "allow"}
        if unknown:
            raise InvalidRules(
                f"{where} has {', '.join(sorted(unknown))}; expected rules and allow."
            )
        self.rules = [UserRule(each, where) for each in document.get("rules", [])]
        allow = document.get("allow", {})
        self._off = frozenset(allow.get("rules", ()))
        self._values = frozenset(str(each).encode() for each in allow.get("values", ()))
        self._patterns = [_pattern(str(each), where) for each in allow.get("patterns", ())]

    @classmethod
    def load(cls, path: "str | PathLike[str]") -> "UserRules":
        """Read a file."""
        import tomllib

        try:
            with open(path, "rb") as file:
                return cls(tomllib.load(file), str(path))
        except OSError as error:
            raise InvalidRules(f"The rules in {path} cannot be read: {error.strerror}.") from error
        except tomllib.TOMLDecodeError as error:
            raise InvalidRules(f"The rules in {path} are no TOML: {error}.") from error

    def find(self, data: bytes) -> list[Found]:
        """What the user's own patterns find."""
        found: list[Found] = []
        lowered = data.lower()
        for rule in self.rules:
            if rule.keywords and not any(each in lowered for each in rule.keywords):
                continue
            at = 0
            while (span := rule.pattern.search(data, at, len(data))) != NOWHERE:
                at = max(span[1], span[0] + 1)
                if span[1] > span[0] and entropy(data[slice(*span)]) >= rule.entropy:
                    found.append((*span, rule.id, rule.type, 1.0))
        return found

    def allowed(self, data: bytes, found: list[Found]) -> list[Found]:
        """What of our own findings the user wants to be applied."""
        return [each for each in found if not self._is_allowed(each, data[each[0] : each[1]])]

    def _is_allowed(self, found: Found, value: bytes) -> bool:
        return (
            found[2] in self._off
            or value in self._values
            or any(pattern.whole(value) for pattern in self._patterns)
        )


def _pattern(source: str, where: str) -> Pattern:
    try:
        compiled(source)
    except ValueError as error:
        raise InvalidRules(f"{where}: the pattern {source!r} cannot be read: {error}.") from error
    return Pattern(source)
