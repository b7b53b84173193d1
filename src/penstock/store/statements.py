"""Statements in `.sql` files: each stands under a line `-- name: word`.

A hook reads them in a process that must be gone within milliseconds: this imports next to nothing.
"""

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator

_BEGIN = ("-- name: ", "-- part: ")


def named_pieces(text: str) -> "Iterator[tuple[str, str, str]]":
    """What stands in a file: for each `name` or `part` which it is, its word, and its text."""
    kind, name = "", ""
    lines: list[str] = []
    for line in text.splitlines(keepends=True):
        if line.startswith(_BEGIN):
            if kind:
                yield kind, name, "".join(lines)
            (_, kind, name, *_), lines = line.split(), []
            kind = kind.removesuffix(":")
        else:
            lines.append(line)
    if kind:
        yield kind, name, "".join(lines)
