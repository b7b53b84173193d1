"""Precision and recall of the sanitiser on the labelled lines, beside detect-secrets.

    python -m proof.sanitiser              a table for each half of the corpus
    python -m proof.sanitiser --missed     and what was missed or taken wrongly, with its line

A label is found if none of it is left. What was taken is right if it touches a label. Precision
counts what was taken; a line counts once for each thing that was taken from it.
"""

import base64
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from penstock.apps.recorder.sanitise import Sanitiser
from penstock.apps.recorder.sanitise.search import find

CORPUS = Path(__file__).parent / "corpus"
HALVES = (
    "blind",
    "own",
    "later",
    "wide",
    "everyday",
    "last",
    "backend",
    "breadth",
    "moments",
    "people",
    "careless",
    "alike",
    "company",
    "examiner",
    "operations",
    "spoken",
    "scenes",
)
PERSONAL = frozenset(
    (
        "email", "phone", "card", "iban", "national_id", "ip", "mac", "crypto_address",
        "home_path", "hostname", "git_author", "credit_card", "ssn",
    )
)  # fmt: skip
WITHOUT_FORMAT = frozenset(("generic_secret", "cookie", "auth_header"))
PIECE = 6
"""So many characters of a secret in a row are too many."""


class Line(NamedTuple):
    """A text, and what must go: start, end, category."""

    text: str
    labels: tuple[tuple[int, int, str], ...]
    kind: str
    trap: str


class Score(NamedTuple):
    """What was found of each category, what was missed, and what was taken wrongly."""

    labelled: Counter[str]
    found: Counter[str]
    right: int
    wrong: Counter[str]
    missed: list[tuple[str, str, str]]
    taken: list[tuple[str, str, str]]

    def recall(self, among: Any = None) -> float:
        """The share of labels that were found."""
        names = [each for each in self.labelled if among is None or among(each)]
        return sum(self.found[n] for n in names) / max(1, sum(self.labelled[n] for n in names))

    @property
    def precision(self) -> float:
        """The share of what was taken that had to go."""
        return self.right / max(1, self.right + sum(self.wrong.values()))


def is_secret(category: str) -> bool:
    """Tell a secret from personal data."""
    return category not in PERSONAL


def has_format(category: str) -> bool:
    """Tell a secret that is known by its prefix or checksum."""
    return is_secret(category) and category not in WITHOUT_FORMAT


def lines(half: str) -> Iterator[Line]:
    """The labelled lines of a half."""
    for row in (CORPUS / half / "lines.jsonl").read_bytes().splitlines():
        line = msgspec.json.decode(row)
        labels = tuple((each["start"], each["end"], each["category"]) for each in line["found"])
        text = base64.b64decode(line["text64"]).decode()
        yield Line(text, labels, line.get("kind", ""), line.get("trap", ""))


def ours(text: str) -> tuple[list[tuple[int, int, str]], str]:
    """What the sanitiser takes, in characters, and what it leaves."""
    data = text.encode()
    spans = [
        (len(data[:start].decode(errors="replace")), len(data[:end].decode(errors="replace")), rule)
        for start, end, rule, _, _ in find(data)
    ]
    return spans, Sanitiser(key=b"").text(text).text


def theirs(text: str) -> tuple[list[tuple[int, int, str]], str]:
    """What detect-secrets takes; it looks at one line at a time and names the value."""
    from detect_secrets.core.scan import scan_line

    spans = []
    for line in text.splitlines():
        for secret in scan_line(line):
            value = secret.secret_value or ""
            at = text.find(value) if value else -1
            if at >= 0:
                spans.append((at, at + len(value), secret.type))
    left = text
    for start, end, _ in sorted(set(spans), reverse=True):
        left = left[:start] + left[end:]
    return spans, left


def gone(
    value: str, spans: list[tuple[int, int, str]], label: tuple[int, int, str], left: str
) -> bool:
    """Tell whether nothing of a label is left."""
    start, end, _ = label
    at = start
    for first, last, _ in sorted(spans):
        if first <= at < last:
            at = last
    if at >= end:
        return True
    pieces = {value[n : n + PIECE] for n in range(max(1, len(value) - PIECE + 1))}
    return not any(piece in left for piece in pieces)


def measure(half: str, take: Any = ours, among: Any = None) -> Score:
    """Let a sanitiser loose on a half of the corpus."""
    labelled: Counter[str] = Counter()
    found: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    right = 0
    missed: list[tuple[str, str, str]] = []
    taken: list[tuple[str, str, str]] = []
    for line in lines(half):
        spans, left = take(line.text)
        for label in line.labels:
            start, end, category = label
            if among is None or among(category):
                labelled[category] += 1
                if gone(line.text[start:end], spans, label, left):
                    found[category] += 1
                else:
                    missed.append((category, line.text[start:end], line.text))
        for first, last, rule in spans:
            if any(first < end and start < last for start, end, _ in line.labels):
                right += 1
            else:
                wrong[rule] += 1
                taken.append((f"{rule} ({line.trap})", line.text[first:last], line.text))
    return Score(labelled, found, right, wrong, missed, taken)


def main(arguments: list[str]) -> None:
    """Print the tables."""
    from detect_secrets.settings import default_settings

    out = sys.stdout.write
    halves = [each for each in HALVES if (CORPUS / each / "lines.jsonl").exists()]
    for half in halves:
        score = measure(half)
        out(f"\n{half}: {sum(1 for _ in lines(half))} lines\n")
        for category in sorted(score.labelled):
            n = score.labelled[category]
            out(f"  {category:24} {n:5} {score.found[category] / n:8.3f}\n")
        out(f"  {'secrets with a format':24} {'':5} {score.recall(has_format):8.4f}\n")
        out(f"  {'secrets':24} {'':5} {score.recall(is_secret):8.4f}\n")
        out(f"  {'all':24} {'':5} {score.recall():8.4f}\n")
        out(f"  {'precision':24} {'':5} {score.precision:8.4f}\n")
        for rule, n in score.wrong.most_common():
            out(f"    taken wrongly {n:4} {rule}\n")
        with default_settings():
            other = measure(half, theirs, is_secret)
        out(f"  detect-secrets: recall {other.recall():.4f} precision {other.precision:.4f}\n")
        if "--missed" in arguments:
            for name, value, text in score.missed:
                out(f"MISSED {name}: {value!r}\n    {text[:400]!r}\n")
            for name, value, text in score.taken:
                out(f"TAKEN {name}: {value!r}\n    {text[:400]!r}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
