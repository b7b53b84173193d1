"""Vectors searched by pgvector: a column beside the bytes, written in the same commit.

Step 0002 makes the column where the server has pgvector. Where it has not, usearch does the work,
unless the settings insist.
"""

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import numpy

from penstock.apps.agents.vectors.rows import Index
from penstock.apps.agents.vectors.usearch_store import UsearchStore
from penstock.model.errors import PenstockError

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.apps.agents.extension import VectorSettings
    from penstock.apps.agents.vectors.store import Vector, Vectors

AT_ONCE = 500
"""So many rows that came from elsewhere get their column in one commit."""
FEW = 2_000
"""Among so many, all are compared."""
ALL = 2**31 - 1
MOST_DIMENSIONS = 2_000
"""Vectors of more are compared one by one: pgvector makes no graph of them."""


class NoPgvector(PenstockError):
    """Settings that ask for pgvector where there is none."""

    def __init__(self) -> None:
        super().__init__(
            "The tables were made without pgvector; install it on the server and have its owner "
            'move the tables, or set provider = "usearch" under [penstock.agents.vectors].'
        )


class PgvectorStore(UsearchStore):
    """`VectorStore` by pgvector, or by usearch where there is none."""

    def __init__(self, app: "Penstock", settings: "VectorSettings") -> None:
        super().__init__(app, settings)
        self._insists = settings.provider == "pgvector"
        self._there: bool | None = None
        self._indexed: set[int] = set()

    def write(self, tx: Any, rows: list[tuple[Any, ...]]) -> None:
        """Write rows, with pgvector's column."""
        if not self._is_there(tx):
            super().write(tx, rows)
            return
        tx.agents.many("put_near_vector", [(*row, _text(row[_VECTOR])) for row in rows])

    def bury(self, tx: Any, rows: list[tuple[Any, ...]]) -> int:
        """Take the vectors out of rows."""
        if not self._is_there(tx):
            return super().bury(tx, rows)
        return int(tx.agents.many("bury_near_vector", rows))

    async def near(self, index: Index, vector: "Vector", most: int) -> list[int]:
        """Return the numbers of the nearest vectors."""
        if not await self._is_used():
            return await super().near(index, vector, most)
        [found] = await self.near_each(index, vector[None], most)
        return [number for number, _ in found]

    async def near_each(
        self, index: Index, vectors: "Vectors", most: int, *, quickly: bool = False
    ) -> list[list[tuple[int, float]]]:
        """Return numbers and scores of the nearest ones of each vector."""
        if not await self._is_used():
            return await super().near_each(index, vectors, most, quickly=quickly)
        await self._fill(index)
        several = [self._bindings(index, vector, most) for vector in vectors]
        return await self._app.read(lambda tx: [_near(tx, bindings, most) for bindings in several])

    async def catch_up(self, namespace: str, tenant: str) -> int:
        """Have the index know every vector; return how many it holds."""
        if not await self._is_used():
            return await super().catch_up(namespace, tenant)
        index = await self.find(namespace, tenant)
        if index is not None:
            await self._fill(index)
        return sum(info.count for info in await self.indexes(namespace, tenant))

    async def keep_up(self, namespace: str, tenant: str) -> None:
        """Write the file of usearch, where it is used; pgvector keeps up by itself."""
        if not await self._is_used():
            await super().keep_up(namespace, tenant)

    async def prepare(self, index: Index) -> None:
        """Make an index ready that is about to be switched to."""
        if await self._is_used():
            await self._fill(index)
        else:
            await super().prepare(index)

    async def rebuild(self, namespace: str, tenant: str) -> int:
        """Build the index anew from the rows; return how many vectors it holds.

        One graph holds the vectors of everybody that have as many dimensions.
        """
        if not await self._is_used():
            return await super().rebuild(namespace, tenant)
        index = await self.find(namespace, tenant)
        if index is None:
            return 0

        def work(tx: Any) -> None:
            bindings = {**index.where, "generation": index.generation, "now": tx.now}
            if tx.agents.run("begin_generation", bindings):
                tx.agents.run("drop_buried", {**index.where, "revision": index.revision})
                self._make_graph(tx, index, anew=True)

        await self._fill(index)
        await self._app.transact(work)
        return sum(info.count for info in await self.indexes(namespace, tenant))

    async def _fill(self, index: Index) -> None:
        """Give every row its column that came from elsewhere, and make the graph."""
        bindings = {**index.where, "most": AT_ONCE}
        where = tuple(index.where.values())
        while rows := await self.ask("unfilled", bindings):
            values = [(_text(vector), *where, id_, vector) for id_, vector in rows]
            await self._app.transact(partial(_fill_all, values))
        if index.dimensions not in self._indexed:
            await self._app.transact(lambda tx: self._make_graph(tx, index, anew=False))
            self._indexed.add(index.dimensions)

    def _make_graph(self, tx: Any, index: Index, *, anew: bool) -> None:
        if index.dimensions > MOST_DIMENSIONS:
            return
        bindings = {
            "dimensions": index.dimensions,
            "m": self.settings.m,
            "ef_construction": self.settings.ef_construction,
            "anew": anew,
        }
        tx.agents.row("index_near", bindings)

    def _bindings(self, index: Index, vector: "Vector", most: int) -> dict[str, Any]:
        return {
            **index.where,
            "vector": _text(vector.tobytes()),
            "dimensions": index.dimensions,
            "most": most,
            "ef_search": self.settings.ef_search,
        }

    async def _is_used(self) -> bool:
        if self._there is None:
            await self._app.read(self._is_there)
        return bool(self._there)

    def _is_there(self, tx: Any) -> bool:
        """Tell whether the tables have pgvector's column; it stays as it is."""
        if self._there is None:
            self._there = tx.agents.value("has_pgvector") is not None
        if self._insists and not self._there:
            raise NoPgvector
        return self._there


_VECTOR = 7
"""Where the bytes are among the values of `put_vector`."""


def _near(tx: Any, bindings: dict[str, Any], most: int) -> list[tuple[int, float]]:
    """Ask the graph; if it has given up too soon, compare all."""
    rows = tx.agents.rows("near", {**bindings, "few": FEW})
    if len(rows) < most:
        rows = tx.agents.rows("near", {**bindings, "few": ALL})
    return [(int(number), float(score)) for number, score in rows]


def _fill_all(values: list[tuple[Any, ...]], tx: Any) -> None:
    tx.agents.many("fill", values)


def _text(vector: bytes) -> str:
    """A vector as pgvector reads it."""
    return msgspec.json.encode(numpy.frombuffer(vector, numpy.float32).tolist()).decode()
