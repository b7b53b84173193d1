"""The search of the sanitiser: which families of rules hit a text, and what they find there."""

from penstock.apps.recorder.sanitise import (
    codes,
    command_lines,
    credentials,
    files,
    formats,
    likely,
    lone,
    machines,
    numbers,
    people,
    prose,
)
from penstock.apps.recorder.sanitise.checks import after_repeats
from penstock.apps.recorder.sanitise.pattern import NOWHERE, Found, Pattern

TYPE_CHECKING = False  # not from typing, which a hook need not load

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

WINDOW = 4_096
MANY = 262_144
PATIENCE = 32

_FAMILIES = {
    look: Pattern(trigger)
    for module in (
        formats,
        credentials,
        command_lines,
        prose,
        people,
        numbers,
        machines,
        lone,
        codes,
    )
    for trigger, look in module.FAMILIES
}
_TOGETHER: "tuple[tuple[Any, ...], ...]" = (
    (formats.token, command_lines.url, people.email, machines.place, credentials.header),
    (formats.marked, numbers.code, people.author, credentials.goes_on),
    (command_lines.tool, lone.shape),
    (codes.code, codes.phrase, codes.grouped),
    (lone.lone,),
    (numbers.number,),
    (credentials.named,),
    (prose.said,),
)
"""Families that rarely hit are searched for together, as many as RE2 does at full speed."""


def _group(looks: "tuple[Any, ...]") -> "tuple[Pattern, list[tuple[Pattern, Any]]]":
    families = [(_FAMILIES[look], look) for look in looks]
    if len(families) == 1:
        return families[0][0], families
    return Pattern("|".join(f"(?:{pattern.source})" for pattern, _ in families)), families


_groups = [_group(looks) for looks in _TOGETHER]
_seen = 0


def find(data: bytes) -> list[Found]:
    """All that our own rules find at the first look."""
    return apart(files.documents(data) + search(data))


def search(data: bytes) -> list[Found]:
    """What the families find; what overlaps is found twice."""
    global _seen
    size = len(data)
    if any(each in data for each in _COLOURS):
        data = _uncoloured(data)
    found: list[Found] = []
    # A hook looks at so little that a search for several at once is not worth its compilation.
    _seen += size
    for together, families in _groups:
        first = together.search(data, 0, size)[0] if _seen > MANY and len(families) > 1 else 0
        if first >= 0:
            for pattern, look in families:
                _look(data, first, size, pattern, look, found)
    unfound = _Unfound(found)
    for begin, stop in likely.regions(data):
        _look(data, begin, stop, likely.WORDS, unfound, found)
    return found


class _Unfound:
    """Weighs the words that no rule has found."""

    def __init__(self, found: list[Found]) -> None:
        self._found = sorted(found)
        self._next = 0

    def __call__(self, data: bytes, start: int, end: int) -> Found | int:
        while self._next < len(self._found) and self._found[self._next][1] < end:
            self._next += 1
        if self._next < len(self._found) and self._found[self._next][0] <= start:
            return end
        return likely.likely(data, start, end)


def _look(
    data: bytes, at: int, stop: int, pattern: Pattern, look: "Any", found: list[Found]
) -> None:
    """Look closer wherever a family's search hits."""
    misses = 0
    recent: list[int] = []
    while (span := pattern.search(data, at, stop)) != NOWHERE:
        hit = look(data, *span)
        at = span[0] + 1
        if hit is not None and not isinstance(hit, int):
            found.append(hit)
            at = max(at, hit[1])
            continue
        misses += 1
        if hit:
            at = max(at, hit)
        if misses > PATIENCE:
            at = max([at, *(after_repeats(data, last, span[0]) for last in recent)])
            del recent[:-3]
            recent.append(span[0])


_COLOURS = (b"\x1b[", b"1b[", b"1B[", b"033[", b"\\e[")
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
    """Portions of whole paragraphs: what belongs together is indented, or on one line."""
    at, size = 0, len(data)
    while size - at > WINDOW:
        stop = data.find(b"\n", at + WINDOW) + 1
        for _ in range(64):
            if not stop or data[stop : stop + 1] not in (b" ", b"\t"):
                break
            stop = data.find(b"\n", stop) + 1
        if not stop:
            break
        yield at, stop
        at = stop
    if at < size:
        yield at, size


def apart(found: list[Found]) -> list[Found]:
    """Keep the surer, or longer, of findings that overlap; another look finds the rest."""
    found.sort()
    kept: list[Found] = []
    for each in found:
        if kept and each[0] < kept[-1][1]:
            last = kept[-1]
            if each[0] == last[0] and each[1] > last[1] + 1 and each[2] == likely.RULE:
                kept[-1] = (last[0], each[1], *last[2:])  # the rule saw where it begins
            elif (each[4], each[1] - each[0]) > (last[4], last[1] - last[0]):
                kept[-1] = each
        else:
            kept.append(each)
    return kept
