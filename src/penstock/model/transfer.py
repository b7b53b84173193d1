"""What is written in a store about a move, and why one is refused."""

from collections.abc import Mapping, Sequence

from penstock.model.errors import PenstockError
from penstock.model.redact import without_password
from penstock.model.store_errors import StoreError

MOVE = "move"
MOVING_TO = "moving_to"
MOVED_TO = "moved_to"
MOVING_FROM = "moving_from"
EMPTYING = "emptying"
CAME_BY = "came_by"
TALLY = "tally"
TABLES = "tables"
"""The extensions whose rows a move copies, and where to."""
TABLES_AT = "tables_at"
DONE = "done"
"""The bookmark of a part that has been moved."""


class StoreMoved(StoreError):
    """A store whose jobs are somewhere else by now."""

    def __init__(self, store: str, moved_to: str) -> None:
        self.moved_to = without_password(moved_to)
        super().__init__(store, f"was moved to {self.moved_to}; use that one instead")


class StoreMoving(StoreError):
    """A store that is being moved, or filled by a move."""

    def __init__(self, store: str, other: str, *, away: bool) -> None:
        self.other = without_password(other)
        self.away = away
        what = f"is being moved to {self.other}" if away else f"is being filled from {self.other}"
        super().__init__(
            store,
            f"{what}; wait until that is done, go on with the same `penstock move` if it was "
            "interrupted, or give it up with --abandon",
        )


class NothingToMove(StoreError):
    """A move of a store that is not there."""

    def __init__(self, store: str) -> None:
        super().__init__(store, "does not exist; name the one that is to be moved")


class SameStore(PenstockError):
    """A move of a store into itself."""

    def __init__(self, store: str) -> None:
        self.store = without_password(store)
        super().__init__(f"Both URLs lead to the store {self.store}; name another one to move to.")


class TargetInUse(StoreError):
    """A move into a store that holds something already."""

    def __init__(self, store: str, holds: Sequence[str], advice: str = "") -> None:
        self.holds = tuple(holds)
        super().__init__(
            store, f"already holds {_listed(self.holds)}; {advice}name an empty one to move to"
        )


class NotMovedAway(StoreError):
    """A store to open again that no move has closed."""

    def __init__(self, store: str) -> None:
        super().__init__(store, "was not moved away; it can be opened as it is")


class StillThere(StoreError):
    """A store to open again although the one it was moved to holds its jobs."""

    def __init__(self, store: str, moved_to: str, holds: Sequence[str]) -> None:
        self.moved_to = without_password(moved_to)
        self.holds = tuple(holds)
        super().__init__(
            store,
            f"was moved to {self.moved_to}, which is there and holds {_listed(self.holds)}; move "
            f"it back with `penstock move {self.moved_to} {without_password(store)} --replace`, or "
            "say --force if jobs may be done in both, once in each",
        )


class WorkersAlive(StoreError):
    """A move of, or into, a store that workers still use."""

    def __init__(self, store: str, workers: Sequence[str]) -> None:
        self.workers = tuple(workers)
        super().__init__(
            store,
            f"is still used by {_listed(self.workers)}; stop the workers first, or say --force "
            "if they are gone without having said so",
        )


class SourceChanged(StoreError):
    """A store that somebody wrote to while it was moved."""

    def __init__(self, store: str, changes: Sequence[str]) -> None:
        self.changes = tuple(changes)
        super().__init__(
            store,
            f"was written to while it was moved ({_listed(self.changes)}); nothing was moved, "
            "stop what uses it and run the move again",
        )


class NoSuchMove(PenstockError):
    """A move to give up that is not under way."""

    def __init__(self, source: str, target: str) -> None:
        self.source = without_password(source)
        self.target = without_password(target)
        super().__init__(f"No move from {self.source} to {self.target} is under way.")


class MoveOvertaken(StoreError):
    """A second process goes on with the same move."""

    def __init__(self, store: str) -> None:
        super().__init__(
            store, "is being filled by another process as well; let that one finish the move"
        )


class TablesUnknown(StoreError):
    """Tables of an extension that is not installed where they are to be moved or erased."""

    def __init__(self, store: str, extension: str) -> None:
        self.extension = extension
        super().__init__(
            store,
            f"holds tables of the extension {extension!r}, which is not known here; install it, or "
            "name it in the setting extensions",
        )


class TablesStay(StoreError):
    """Tables of extensions, and a move to where there is no place for them."""

    def __init__(self, store: str, extensions: Sequence[str], where: str = "--tables-to") -> None:
        self.extensions = tuple(extensions)
        super().__init__(
            store,
            f"has no place for the tables of {_listed(self.extensions)}; name one with {where}",
        )


class OutboxWaiting(StoreError):
    """Jobs in an outbox, and a move to where nobody would deliver them."""

    def __init__(self, store: str, jobs: int, advice: str = "") -> None:
        self.jobs = jobs
        super().__init__(
            store,
            f"holds {jobs:,} job{'' if jobs == 1 else 's'} in its outbox; "
            + (advice or "let a worker of its application run until it is empty"),
        )


class MoveIncomplete(StoreError):
    """A move after which the two stores do not hold the same."""

    def __init__(self, store: str, differences: Sequence[str]) -> None:
        self.differences = tuple(differences)
        super().__init__(
            store,
            f"does not hold what was moved into it ({_listed(self.differences)}); the old store is "
            "untouched: give the move up with --abandon and run it again",
        )


class CopyIncomplete(StoreError):
    """A copy that does not hold what was copied."""

    def __init__(self, file: str, differences: Sequence[str]) -> None:
        self.differences = tuple(differences)
        super().__init__(
            file,
            f"would not hold what was copied ({_listed(self.differences)}) and was not made; "
            "make the copy again, and report it if that happens twice",
        )


def refuse_moved(store: str, marks: Mapping[str, str]) -> None:
    """Refuse to open a store that was moved away, is being moved or is being filled."""
    refuse_half(store, marks)
    if MOVED_TO in marks:
        raise StoreMoved(store, marks[MOVED_TO])
    if MOVING_TO in marks:
        raise StoreMoving(store, marks[MOVING_TO], away=True)


def refuse_half(store: str, marks: Mapping[str, str]) -> None:
    """Refuse a store that is being filled: it holds a part of something."""
    if MOVING_FROM in marks:
        raise StoreMoving(store, marks[MOVING_FROM], away=False)


def _listed(words: Sequence[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last
