"""`penstock sanitise`: texts in, the same without secrets and personal data out."""

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

from penstock.apps.recorder.sanitise import Sanitiser
from penstock.apps.recorder.sanitise.user_rules import InvalidRules
from penstock.extension import Shown
from penstock.model.errors import InvalidOption

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

PORTION = 1 << 20
LONGEST_LINE = 16 << 20
STDIN = "-"

Counts = Counter[tuple[str, str, str]]


async def sanitise(
    app: "Penstock",
    *files: Annotated[str, "Files to read instead of standard input; - is that."],
    report: Annotated[bool, "Show what was found, by rule, instead of the text."] = False,
) -> Any:
    """Write texts without secrets and personal data; with --report, only say what is in them."""
    sanitiser = _sanitiser(app)
    counts: Counts = Counter()
    for name in files or (STDIN,):
        for text in _cleaned(sanitiser, name, counts):
            if not report:
                sys.stdout.write(text)
    sys.stdout.flush()
    if not report:
        return None
    rows = [
        {"file": name, "rule": rule, "category": category, "count": count}
        for (name, rule, category), count in sorted(counts.items())
    ]
    return Shown(rows, rows)


def _sanitiser(app: "Penstock") -> Sanitiser:
    settings = app.extensions.settings("recorder")
    try:
        return Sanitiser(settings.rules or None, key=b"")
    except InvalidRules as error:
        raise InvalidOption("rules", settings.rules, f"a file of rules ({error})") from error


def _cleaned(sanitiser: Sanitiser, name: str, counts: Counts) -> Iterator[str]:
    shown = "standard input" if name == STDIN else name
    with closing(_opened(name)) as file:
        for portion in portions(file):
            cleaned = sanitiser.text(portion.decode("utf-8", "replace"))
            counts.update((shown, each.rule_id, each.category) for each in cleaned.findings)
            yield cleaned.text


def _opened(name: str) -> IO[bytes]:
    try:
        return sys.stdin.buffer if name == STDIN else Path(name).open("rb")
    except OSError as error:
        raise InvalidOption("file", name, f"one that can be read ({error.strerror})") from error


def portions(file: IO[bytes]) -> Iterator[bytes]:
    """A file in portions of whole paragraphs, however long it is; a key is not cut in two."""
    held = b""
    while read := file.read(PORTION):
        held += read
        cut = _cut(held)
        if cut:
            yield held[:cut]
            held = held[cut:]
    if held:
        yield held


def _cut(text: bytes) -> int:
    """Where to cut: before a line that begins something, and not inside a private key."""
    cut = text.rfind(b"\n") + 1
    while cut and text[cut : cut + 1] in (b" ", b"\t", b"}", b"]", b""):
        cut = text.rfind(b"\n", 0, cut - 1) + 1
    begun = text.rfind(b"-----BEGIN", 0, cut)
    if begun >= 0 and text.find(b"-----END", begun, cut) < 0:
        cut = text.rfind(b"\n", 0, begun) + 1
    return len(text) if not cut and len(text) > LONGEST_LINE else cut
