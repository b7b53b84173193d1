"""Regular expressions in linear time: RE2 over bytes, compiled when they are first used.

We call RE2 below the level of the package's own match objects: a scan makes a million calls, and
all that it needs of each is where something begins and ends. A byte is a character, so that no
offset has to be translated; text beyond ASCII is made of bytes from 0x80 on.
"""

TYPE_CHECKING = False  # not from typing, which a hook need not load

if TYPE_CHECKING:
    from typing import Any

Span = tuple[int, int]
NOWHERE: Span = (-1, -1)

Found = tuple[int, int, str, str, float]
"""What a rule found: start, end, rule, type, confidence.

A family is a search, cheap enough to run over every text, and a function that looks closer where
it hits. It returns what it found, None, or a number: up to there, there is nothing, so that no
text is looked at again and again.
"""


class Pattern:
    """A regular expression that is compiled when it is first used."""

    __slots__ = ("_match", "source")

    def __init__(self, source: str) -> None:
        self.source = source
        self._match: Any = None

    def search(self, data: bytes, start: int, end: int) -> Span:
        """Where it first matches between two places, or `NOWHERE`."""
        match = self._match or self._compile()
        found: Span = match(_unanchored, data, start, end)[0]
        return found

    def find(self, data: bytes, start: int, end: int) -> "list[Span] | None":
        """Where it first matches and where each of its groups does; None if it does not."""
        match = self._match or self._compile()
        found: list[Span] = match(_unanchored, data, start, end)
        return found if found[0] != NOWHERE else None

    def at(self, data: bytes, start: int, end: int) -> Span:
        """Where it ends if it matches at a place, or `NOWHERE`."""
        match = self._match or self._compile()
        found: Span = match(_anchored, data, start, end)[0]
        return found

    def groups(self, data: bytes, start: int, end: int) -> "list[Span] | None":
        """Where it and each of its groups match at a place; None if it does not."""
        match = self._match or self._compile()
        found: list[Span] = match(_anchored, data, start, end)
        return found if found[0] != NOWHERE else None

    def whole(self, data: bytes) -> bool:
        """Tell whether it matches all of a value."""
        return self.at(data, 0, len(data)) == (0, len(data))

    def _compile(self) -> "Any":
        self._match = compiled(self.source).Match
        return self._match


_unanchored: "Any" = None
_anchored: "Any" = None


def compiled(source: str) -> "Any":
    """An RE2 object; raises ValueError if it cannot be read."""
    global _unanchored, _anchored
    from re2 import Options, _re2  # type: ignore[import-untyped]

    if _unanchored is None:
        _unanchored, _anchored = _re2.RE2.Anchor.UNANCHORED, _re2.RE2.Anchor.ANCHOR_START
    options = Options()
    options.encoding = Options.Encoding.LATIN1
    options.max_mem = 64 << 20
    options.log_errors = False
    made = _re2.RE2(source.encode("utf-8"), options)
    if not made.ok():
        raise ValueError(made.error())
    return made
