"""Files that were open when this process was forked, which it must leave alone.

SQLite believes that it still holds its parent's locks on them, so even a connection made here
would work unprotected: when the parent closes, the WAL is deleted under it and commits are lost.
"""

import os
import sys
from collections import Counter

from penstock.model.errors import ForkedStore

_open: Counter[str] = Counter()
_inherited: set[str] = set()


def opened(path: str | os.PathLike[str]) -> None:
    """Remember that a store in this process has the file open."""
    _open[os.path.realpath(path)] += 1


def closed(path: str | os.PathLike[str]) -> None:
    """Remember that a store in this process let the file go."""
    _open[os.path.realpath(path)] -= 1


def is_inherited(path: str | os.PathLike[str]) -> bool:
    """Tell whether the file was open when this process was forked."""
    return bool(_inherited) and os.path.realpath(path) in _inherited


def refuse_inherited(path: str | os.PathLike[str]) -> None:
    """Refuse any use of a file that was open when this process was forked."""
    if is_inherited(path):
        raise ForkedStore(os.fspath(path))


def _after_fork() -> None:
    _inherited.update(path for path, count in _open.items() if count > 0)
    _open.clear()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_after_fork)
