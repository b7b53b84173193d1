"""One HNSW graph of usearch: in memory, and as a file that says what it is and what it has seen.

The file is usearch's own with a few lines behind it: JSON that describes it, and a checksum. One
that is damaged, or of another time than the rows, is not believed: a graph is only derived.
"""

import fcntl
import os
import threading
import zlib
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy
from msgspec import Struct

from penstock.apps.agents.files import UNFINISHED, make_folder, replacing
from penstock.model.errors import MissingExtra

if TYPE_CHECKING:
    from penstock.apps.agents.extension import VectorSettings
    from penstock.apps.agents.vectors.rows import Index
    from penstock.apps.agents.vectors.store import Vector, Vectors

MAGIC = b"penstock vectors 1"
SUFFIX = ".usearch"
REMEMBERED = 8
"""So many of the last vectors seen are compared when a file is read, to know it by."""
TOGETHER = 1_000
"""So many vectors are added before a search may come in between."""
FEW = 1_000
"""Among so many, all are compared: that is as fast, and misses none."""


class Row(Struct, frozen=True):
    """A row as a graph takes it in; one without a vector is gone."""

    number: int
    revision: int
    updated_at: int
    vector: bytes | None


class Seen(Struct, frozen=True):
    """A row that a graph has taken in."""

    number: int
    revision: int
    updated_at: int


class About(Struct, frozen=True, kw_only=True):
    """What a file says of itself."""

    namespace: str
    tenant_id: str
    model: str
    dimensions: int
    generation: int
    revision: int
    m: int
    ef_construction: int
    count: int
    last: list[Seen]
    checksum: int


class Graph:
    """Vectors by their numbers, up to a revision of the rows."""

    def __init__(self, index: "Index", settings: "VectorSettings") -> None:
        try:
            from usearch.index import Index as Searched
        except ImportError as error:
            raise MissingExtra("agents", "usearch") from error
        self.index = index
        self.revision = 0
        self.saved = 0
        """The revision of the file that was read or written last."""
        self.last: list[Seen] = []
        self._settings = settings
        self._lock = threading.Lock()
        self._searched: Any = Searched(
            ndim=index.dimensions,
            metric="ip",
            dtype="f16",
            connectivity=settings.m,
            expansion_add=settings.ef_construction,
            expansion_search=settings.ef_search,
        )

    def __len__(self) -> int:
        """How many vectors it holds."""
        return len(self._searched)

    @property
    def is_busy(self) -> bool:
        """Tell whether a search would have to wait."""
        return self._lock.locked()

    @property
    def numbers(self) -> set[int]:
        """The numbers of the vectors it holds."""
        with self._lock:
            return {int(key) for key in numpy.asarray(self._searched.keys)}

    def take_in(self, rows: Sequence[Row]) -> None:
        """Take in rows that come one after the other by revision; those it has seen are left."""
        for start in range(0, len(rows), TOGETHER):
            with self._lock:
                some = rows[start : start + TOGETHER]
                self._take_in([row for row in some if row.revision > self.revision])

    def _take_in(self, rows: list[Row]) -> None:
        if not rows:
            return
        numbers = numpy.array([row.number for row in rows], numpy.uint64)
        known = numpy.asarray(self._searched.contains(numbers))
        if known.any():
            self._searched.remove(numbers[known])
        there = [row for row in rows if row.vector is not None]
        if there:
            keys = numpy.array([row.number for row in there], numpy.uint64)
            joined = b"".join(row.vector for row in there if row.vector is not None)
            vectors = numpy.frombuffer(joined, numpy.float32).reshape(len(there), -1)
            self._searched.add(keys, vectors)
        self.revision = rows[-1].revision
        kept = [*self.last, *(Seen(r.number, r.revision, r.updated_at) for r in there)]
        self.last = kept[-REMEMBERED:]

    def near(self, vector: "Vector", most: int) -> list[int]:
        """Return the numbers of the nearest vectors, the best first."""
        with self._lock:
            if not len(self._searched):
                return []
            found = self._searched.search(
                vector, min(most, len(self._searched)), threads=1, exact=len(self) <= FEW
            )
        return [int(key) for key in found.keys]

    def near_each(
        self, vectors: "Vectors", most: int, *, quickly: bool = False
    ) -> list[list[tuple[int, float]]]:
        """Return numbers and scores of the nearest ones of each vector."""
        with self._lock:
            if not len(self._searched) or not len(vectors):
                return [[] for _ in vectors]
            usual = self._settings.ef_search
            self._searched.expansion_search = min(usual, 2 * most) if quickly else usual
            try:
                found = self._searched.search(
                    vectors, min(most, len(self._searched)), exact=len(self) <= FEW
                )
            finally:
                self._searched.expansion_search = usual
        if vectors.shape[0] == 1 and not hasattr(found, "counts"):
            return [list(zip(found.keys.tolist(), (1 - found.distances).tolist(), strict=True))]
        keys, scores = found.keys.tolist(), (1 - found.distances).tolist()
        return [
            list(zip(keys[n][:count], scores[n][:count], strict=True))
            for n, count in enumerate(found.counts.tolist())
        ]

    def save(self, path: Path) -> None:
        """Write the file, whole or not at all."""
        index = self.index
        with self._lock, replacing(path) as part:
            self._searched.save(str(part))
            about = About(
                namespace=index.namespace,
                tenant_id=index.tenant_id,
                model=index.model,
                dimensions=index.dimensions,
                generation=index.generation,
                revision=self.revision,
                m=self._settings.m,
                ef_construction=self._settings.ef_construction,
                count=len(self),
                last=self.last,
                checksum=_checksum(part, part.stat().st_size),
            )
            with part.open("ab") as file:
                text = msgspec.json.encode(about)
                file.write(text + len(text).to_bytes(8, "big") + MAGIC)
            self.saved = self.revision

    def load(self, path: Path) -> bool:
        """Read the file; False, and nothing is read, if it is not whole or not of this index."""
        about = read_about(path)
        if about is None or not self._is_mine(about):
            return False
        size = path.stat().st_size - len(msgspec.json.encode(about)) - 8 - len(MAGIC)
        if _checksum(path, size) != about.checksum:
            return False
        with self._lock:
            self._searched.load(str(path))
            self._searched.expansion_search = self._settings.ef_search
            self._searched.expansion_add = self._settings.ef_construction
        self.revision = self.saved = about.revision
        self.last = about.last
        return len(self) == about.count

    def _is_mine(self, about: About) -> bool:
        index, settings = self.index, self._settings
        names = ("namespace", "tenant_id", "model", "dimensions", "generation")
        return (
            all(getattr(about, name) == getattr(index, name) for name in names)
            and about.revision <= index.revision
            and (about.m, about.ef_construction) == (settings.m, settings.ef_construction)
        )

    def belongs_to(self, rows: Sequence[Seen]) -> bool:
        """Tell whether rows, found by the numbers in `last`, are those that it has seen.

        After a backup was restored, others may have the same numbers.
        """
        now = {row.number: row for row in rows}
        return all(
            (row := now.get(seen.number)) is not None
            and (row.revision > self.revision or row == seen)
            for seen in self._last_of_each()
        )

    def _last_of_each(self) -> list[Seen]:
        return list({seen.number: seen for seen in self.last}.values())


def path_of(folder: Path, index: "Index") -> Path:
    """Where the graph of an index is; the name tells nobody whose it is."""
    named = "\0".join((index.namespace, index.tenant_id, index.model))
    return folder / "vectors" / f"{blake2b(named.encode(), digest_size=16).hexdigest()}{SUFFIX}"


def files_in(folder: Path) -> list[Path]:
    """The files of all graphs."""
    return sorted((folder / "vectors").glob(f"*{SUFFIX}"))


def remove(path: Path) -> None:
    """Delete the file of a graph, and what is left of it where writing it was interrupted."""
    for each in (path, *path.parent.glob(f"{path.name}.*{UNFINISHED}")):
        each.unlink(missing_ok=True)


def read_about(path: Path) -> About | None:
    """Return what a file says of itself; None if it is not there, or says nothing that counts."""
    try:
        with path.open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            tail = file.seek(max(0, end - 8 - len(MAGIC)))
            length, magic = file.read(8), file.read()
            if magic != MAGIC:
                return None
            file.seek(max(0, tail - int.from_bytes(length, "big")))
            return msgspec.json.decode(file.read(int.from_bytes(length, "big")), type=About)
    except (OSError, msgspec.MsgspecError, OverflowError):
        return None


def _checksum(path: Path, size: int) -> int:
    found = 0
    with path.open("rb") as file:
        while size > 0 and (piece := file.read(min(1 << 20, size))):
            found = zlib.crc32(piece, found)
            size -= len(piece)
    return found


def try_lock(path: Path) -> int | None:
    """Keep out everybody else who would write a file; None if somebody does so now.

    `os.close` of what it returns lets others in, and so does the end of the process.
    """
    make_folder(path.parent)
    descriptor = os.open(path.with_suffix(".lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
