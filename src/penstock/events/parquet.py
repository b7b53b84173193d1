"""Parquet files of the archive; those of events have a column for each of the log's.

The body of an event stands in them as JSON, whatever the log compressed it with.
"""

import hashlib
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from penstock.events.columns import EXTRACTED, NUMBERS
from penstock.events.event import Body, Event
from penstock.model.errors import InvalidOption, MissingExtra, PenstockError

ROW_GROUP = 5_000
KNOWN_BY = (
    *("sequence", "event_id", "timestamp", "ingested_at", "event_type", "session_id", "platform"),
    *("tenant_id", "person", "slot", "priority"),
)
COLUMNS = (*KNOWN_BY, *EXTRACTED, "codec", "body")
WHOLE_NUMBERS = frozenset({"sequence", "timestamp", "ingested_at", "slot", "priority", *NUMBERS})

Row = dict[str, Any]


class NoArchive(InvalidOption):
    """There is no folder to archive to, or it does not hold a file that was archived."""

    def __init__(self, folder: str, problem: str) -> None:
        super().__init__("events.archive", folder, "the folder of all archived files")
        self.folder = folder
        told = f"The archive of events {folder or 'has no folder'} {problem}"
        setting = "name the folder of all archived files in the setting events.archive"
        self.args = (f"{told}; {setting}.",)


class ArchiveDiffers(PenstockError):
    """A file that does not read back as it was written."""

    def __init__(self, file: str) -> None:
        self.file = file
        super().__init__(
            f"The archived file {file} does not read back as it was written; nothing that is in it "
            "was deleted. Look at the disk, and archive again."
        )


def write(path: Path, table: Any) -> dict[str, Any]:
    """Write a table, have it on disk, read it back and compare; the size and hash of the file."""
    _, parquet = arrow()
    make_folder(path.parent)
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        parquet.write_table(table, out, compression="zstd", row_group_size=ROW_GROUP)
        out.flush()
        os.fsync(out.fileno())
    _sync_folder(path.parent)
    if not parquet.read_table(path).equals(table):
        raise ArchiveDiffers(str(path))
    return {"size": path.stat().st_size, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def make_folder(folder: Path) -> None:
    """Make a folder, and have it and those above it that are new on disk."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read(path: Path, wanted: Any = None, columns: list[str] | None = None) -> Any:
    """The rows of a file, or those of them that are wanted."""
    _, parquet = arrow()
    if not path.exists():
        raise NoArchive(str(path.parents[1]), f"does not hold {path.name}")
    return parquet.read_table(path, filters=wanted, columns=columns)


def table_of(rows: Sequence[Row], columns: Any = None) -> Any:
    """Rows as a table that Parquet and duckdb take: events, unless other columns are told."""
    pyarrow, _ = arrow()
    return pyarrow.Table.from_pylist(rows, schema=columns or schema())


@cache
def schema() -> Any:
    """The columns of a file of events."""
    pyarrow, _ = arrow()
    whole, text = pyarrow.int64(), pyarrow.string()
    return pyarrow.schema([(name, whole if name in WHOLE_NUMBERS else text) for name in COLUMNS])


@cache
def arrow() -> tuple[Any, Any]:
    """The library, which is loaded when a file is first read or written."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtra("archive", "pyarrow") from error
    return pyarrow, pyarrow.parquet


def event_of(row: Row) -> Event:
    """A row as an event."""
    body = _decoder.decode(row["body"])
    return Event(
        **{name: row[name] for name in KNOWN_BY},
        hook_type=body.hook_type,
        payload=body.payload,
        metadata=body.metadata,
    )


_decoder = msgspec.json.Decoder(Body)
