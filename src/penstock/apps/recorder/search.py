"""The words of a search: how each dialect is asked for them, and how they show in a text.

Words are letters and digits between anything else. `"two words"` stand beside each other, and
`conf*` is how one begins.
"""

import re
from collections.abc import Iterator

AROUND = 80
_TERM = re.compile(r'"([^"]*)"|(\S+)')
_WORD = re.compile(r"[^\W_]+")


class Words:
    """What somebody typed to search for; all of it has to be in a message."""

    def __init__(self, text: str) -> None:
        self._terms: list[tuple[list[str], bool]] = []
        for phrase, single in _TERM.findall(text.replace("\0", " ")):
            words = _WORD.findall(phrase or single)
            if words:
                self._terms.append((words, single.endswith("*")))

    def __bool__(self) -> bool:
        return bool(self._terms)

    def as_query(self, dialect: str) -> str:
        """The search as FTS5 or as PostgreSQL's `to_tsquery` takes it."""
        if dialect == "sqlite":
            written = (f'"{" ".join(words)}"{" *" if begins else ""}' for words, begins in self)
            return " ".join(written)
        written = (
            " <-> ".join(f"'{word}'" for word in words) + (":*" if begins else "")
            for words, begins in self
        )
        return " & ".join(f"({term})" for term in written)

    def snippet(self, content: str) -> str:
        """What stands around the first place that fits, with ‹ and › around what does."""
        pattern = re.compile(
            r"(?<![^\W_])(?:" + "|".join(_pattern(*term) for term in self) + ")", re.IGNORECASE
        )
        first = pattern.search(content)
        middle = first.start() if first else 0
        begin, end = max(0, middle - AROUND), min(len(content), middle + 2 * AROUND)
        text = pattern.sub(lambda found: f"‹{found[0]}›", content[begin:end])
        before, beyond = "…" if begin else "", "…" if end < len(content) else ""
        return f"{before}{' '.join(text.split())}{beyond}"

    def __iter__(self) -> Iterator[tuple[list[str], bool]]:
        return iter(self._terms)


def _pattern(words: list[str], begins: bool) -> str:
    return r"[\W_]+".join(map(re.escape, words)) + (r"[^\W_]*" if begins else r"(?![^\W_])")
