"""Statements in `.sql` files: each stands under a line `-- name: word`.

A hook reads them in a process that must be gone within milliseconds: this imports next to nothing.
"""

import re
from collections.abc import Iterator

_NAME = re.compile(r"^-- (name|part): (\w+)[^\n]*\n", re.MULTILINE)


def named_pieces(text: str) -> Iterator[tuple[str, str, str]]:
    """What stands in a file: for each `name` or `part` which it is, its word, and its text."""
    pieces = _NAME.split(text)[1:]
    return zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True)
