"""Late events: one of an archived month may be in the archive, and is appended only if it is not.

Files are read before the transaction that writes the events, which keeps all others from writing;
inside it there is only a look whether the files are still those. A unit of work that comes upon a
late event ends there, and begins anew when the files have been read.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.events import archive, parquet
from penstock.events.archive import folder_of, path_of
from penstock.events.codec import Codec
from penstock.events.parquet import NoArchive
from penstock.extension import NotKnownYet
from penstock.model.errors import MissingExtra
from penstock.model.store_errors import StoreError, StoreUnavailable

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.events.prepare import Row


MOST_LOOKS = 3


class Looked(NamedTuple):
    """Files that were looked into for events, and what they hold of those."""

    files: list[str]
    known: dict[tuple[str, int, str], tuple[Any, ...]]


class LookFirst(Exception):
    """These files may hold events that are to be written; look into them outside a transaction."""

    def __init__(self, files: list[str]) -> None:
        self.files = files


class ArchiveAway(StoreUnavailable):
    """Whether an event is archived already cannot be told here: it has to wait until it can."""

    def __init__(self, store: str, reason: str) -> None:
        self.reason = reason
        StoreError.__init__(self, store, f"takes no event of an archived month here: {reason}")


def known(
    queries: Any, late: Sequence["Row"], looked: Looked
) -> dict[tuple[str, int, str], tuple[Any, ...]]:
    """Which events are archived already, by what they are known by, and what is kept of each.

    Who has `looked` before is told to do it again if the files are others by now.
    """
    spanning = _spanning(queries, late)
    if spanning != looked.files:
        raise LookFirst(spanning)
    return looked.known


class Looks:
    """What was seen in the archive between the runs of one unit of work, which is repeated."""

    def __init__(self, app: "Penstock") -> None:
        self._app = app
        self._rows: dict[tuple[str, int, str], Row] = {}
        self._looked = Looked([], {})
        self._left = MOST_LOOKS

    def known(
        self, queries: Any, late: Sequence["Row"]
    ) -> dict[tuple[str, int, str], tuple[Any, ...]]:
        """The same for events of which the work tells only as it goes on: NotKnownYet.

        After some looks files are read in the transaction: its events are others in every run.
        """
        told = all(row.key in self._rows for row in late)
        self._rows.update((row.key, row) for row in late)
        spanning = _spanning(queries, list(self._rows.values()))
        if told and spanning == self._looked.files:
            return self._looked.known
        if not self._left:
            return _look_into(self._app, spanning, late)
        self._left -= 1
        raise NotKnownYet(partial(self._look, spanning))

    async def _look(self, files: list[str]) -> None:
        self._looked = await look(self._app, files, list(self._rows.values()))


def _spanning(queries: Any, late: Sequence["Row"]) -> list[str]:
    """The files that may hold events of these times."""
    return [
        file.file
        for file in map(archive.Archived._make, queries.rows("archives", ("whole",)))
        if file.subject == archive.EVENTS and any(file.spans(row.timestamp) for row in late)
    ]


async def look(app: "Penstock", wanted: list[str], rows: Sequence["Row"]) -> Looked:
    """Look into files for events."""
    try:
        return Looked(wanted, await asyncio.to_thread(_look_into, app, wanted, rows))
    except ArchiveAway:
        if {file.file for file in await archive.files(app)}.issuperset(wanted):
            raise
        return Looked([], {})  # one was written anew meanwhile


def _look_into(
    app: "Penstock", wanted: list[str], rows: Sequence["Row"]
) -> dict[tuple[str, int, str], tuple[Any, ...]]:
    about = ["event_type", "session_id", "platform"]
    columns = ["event_id", "timestamp", "tenant_id", "sequence", "codec", "body", *about]
    ids = [("event_id", "in", [row.event_id for row in rows])]
    found: dict[tuple[str, int, str], tuple[Any, ...]] = {}
    for file in wanted:
        try:
            table = parquet.read(path_of(folder_of(app), file), ids, columns)
        except (NoArchive, MissingExtra, OSError) as error:
            raise ArchiveAway(app.settings.url, str(error).rstrip(".")) from error
        for row in table.to_pylist():
            codec = Codec.RAW if row["codec"] != Codec.ERASED else Codec.ERASED
            kept = (row["sequence"], codec.value, row["body"].encode())
            key = (row["event_id"], row["timestamp"], row["tenant_id"])
            found[key] = (*kept, *(row[name] for name in about))
    return found
