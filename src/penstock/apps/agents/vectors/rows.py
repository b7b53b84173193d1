"""Vectors as rows: what every store of them has in common, and the exact search behind it all."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy
from msgspec import Struct

from penstock.apps.agents.vectors.embedder import embed, embedder_for, embedder_of
from penstock.apps.agents.vectors.store import BadVector, Entry, Hit, IndexInfo, Keep, ModelChanged

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.apps.agents.vectors.store import Vector, Vectors

PAGE = 5_000
"""So many rows are read at once; of 256 dimensions they are 5 MB."""
BESIDE = 10
"""So many more candidates than are wanted are compared exactly."""
MOST = 2_000
"""If so many candidates hold too few that count, every vector is compared."""

OF_A_USER = 100
"""The same, where only those of one user count: all of theirs are compared."""

json = msgspec.json.Encoder()


class Index(Struct, frozen=True, kw_only=True):
    """One index, as its row in `agents_indexes` has it at a moment."""

    namespace: str
    tenant_id: str
    model: str
    dimensions: int
    revision: int
    generation: int

    @property
    def where(self) -> dict[str, Any]:
        """What its queries are bound to."""
        return {"namespace": self.namespace, "tenant_id": self.tenant_id, "model": self.model}


class Found(Struct, frozen=True):
    """A row that may be a hit."""

    number: int
    id: str
    user_id: str | None
    metadata: str
    vector: bytes


class VectorRows(ABC):
    """A `VectorStore` but for the search in an index, which is its subclasses' affair."""

    def __init__(self, app: "Penstock") -> None:
        self._app = app

    @abstractmethod
    async def near(self, index: Index, vector: "Vector", most: int) -> list[int]:
        """Return the numbers of the nearest vectors; fewer than `most` only if there are no more.

        Some may be of rows that are gone.
        """

    @abstractmethod
    async def near_each(
        self, index: Index, vectors: "Vectors", most: int, *, quickly: bool = False
    ) -> list[list[tuple[int, float]]]:
        """Return numbers and scores of the nearest ones of each vector.

        `quickly` may miss some of the farther ones that a search would find.
        """

    @abstractmethod
    async def catch_up(self, namespace: str, tenant: str) -> int:
        """Have the index know every vector, and keep it; return how many it holds."""

    @abstractmethod
    async def rebuild(self, namespace: str, tenant: str) -> int:
        """Build the index anew from the rows; return how many vectors it holds."""

    @abstractmethod
    async def prepare(self, index: Index) -> None:
        """Make an index ready that is about to be switched to."""

    @abstractmethod
    async def discard_former(self, index: Index) -> None:
        """Leave nothing of former models of an index outside of the rows."""

    @abstractmethod
    async def keep_up(self, namespace: str, tenant: str) -> None:
        """Do for the next search, in some other process, what would take it long."""

    def put(self, tx: Any, namespace: str, entries: Sequence[Entry]) -> None:
        """Keep vectors; one with the id of another of its tenant replaces it."""
        theirs: dict[str, dict[tuple[str, str], Entry]] = {}
        for entry in entries:
            model = entry.model or embedder_of(self._app).model
            theirs.setdefault(entry.tenant_id, {})[(model, entry.id)] = entry
        for tenant in sorted(theirs):  # everybody in the same order, so that nobody deadlocks
            self._put(tx, namespace, tenant, theirs[tenant])

    def _put(
        self, tx: Any, namespace: str, tenant: str, entries: dict[tuple[str, str], Entry]
    ) -> None:
        vectors = {key: checked(entry.id, entry.vector) for key, entry in entries.items()}
        (model, _), first = next(iter(vectors.items()))
        bindings = {
            "namespace": namespace,
            "tenant_id": tenant,
            "model": model,
            "dimensions": len(first),
            "taken": len(entries),
        }
        revision, active, dimensions, _ = tx.agents.row("take_revisions", bindings)
        taken = int(revision) - len(entries)
        rows: list[tuple[Any, ...]] = []
        for n, ((model, id_), entry) in enumerate(entries.items(), 1):
            vector = vectors[model, id_]
            if model == active and len(vector) != dimensions:
                problem = f"it has {len(vector)} dimensions, and others of {model} {dimensions}"
                raise BadVector(id_, problem)
            metadata = json.encode(entry.metadata).decode()
            owner = (namespace, tenant, model, id_, entry.user_id)
            kept = (taken + n, taken + n, vector.tobytes(), entry.text, metadata, tx.now)
            rows.append((*owner, *kept))
        self.write(tx, rows)

    def write(self, tx: Any, rows: list[tuple[Any, ...]]) -> None:
        """Write rows in the order of the columns of `put_vector`."""
        tx.agents.many("put_vector", rows)

    def remove(self, tx: Any, namespace: str, ids: Sequence[str], *, tenant: str) -> int:
        """Remove vectors; return how many there were."""
        gone = sorted({*ids})
        bindings = {"namespace": namespace, "tenant_id": tenant, "taken": len(gone)}
        counted = tx.agents.row("count_revisions", bindings) if gone else None
        if counted is None:
            return 0
        taken = int(counted[0]) - len(gone)
        rows = [(taken + n, tx.now, namespace, tenant, id_) for n, id_ in enumerate(gone, 1)]
        return self.bury(tx, rows)

    def bury(self, tx: Any, rows: list[tuple[Any, ...]]) -> int:
        """Take the vectors out of rows, in the order of the values of `bury_vector`."""
        return int(tx.agents.many("bury_vector", rows))

    async def search(
        self,
        namespace: str,
        vector: "Vector",
        k: int = 10,
        *,
        tenant: str | None,
        user: str | None = None,
        keep: Keep | None = None,
    ) -> list[Hit]:
        """Return the nearest vectors, the best first."""
        if tenant is None:
            tenants = [each.tenant_id for each in await self._all(namespace, None)]
            found = [
                await self.search(namespace, vector, k, tenant=each, user=user, keep=keep)
                for each in tenants
            ]
            return _best([hit for hits in found for hit in hits], k)
        index = await self.find(namespace, tenant)
        if index is None or k < 1:
            return []
        wanted = _as_wanted(vector, index)
        most = k + BESIDE
        while most <= MOST:
            numbers = await self.near(index, wanted, most)
            rows = await self._rows(index, numbers)
            hits = _hits(index, rows, wanted, user, keep)
            if len(hits) >= k or len(numbers) < most:
                return hits[:k]
            if user is not None and most > OF_A_USER:
                break  # who has few among many is found sooner by comparing all that they have
            most *= 4
        return await self._exact(index, wanted, k, user, keep)

    async def search_text(
        self,
        namespace: str,
        text: str,
        k: int = 10,
        *,
        tenant: str | None,
        user: str | None = None,
        keep: Keep | None = None,
    ) -> list[Hit]:
        """Return what is nearest to a text, embedded by the model that the vectors are of."""
        hits: list[Hit] = []
        vectors: dict[str, Vector] = {}
        for index in await self._all(namespace, tenant):
            if index.model not in vectors:
                embedder = embedder_for(self._app, index.model)
                if embedder is None:
                    raise ModelChanged(namespace, index.model, embedder_of(self._app).model)
                vectors[index.model] = (await embed(embedder, [text]))[0]
            vector = vectors[index.model]
            if vector.any():
                hits += await self.search(
                    namespace, vector, k, tenant=index.tenant_id, user=user, keep=keep
                )
        return _best(hits, k)

    async def exact(
        self,
        namespace: str,
        vector: "Vector",
        k: int = 10,
        *,
        tenant: str | None,
        user: str | None = None,
        keep: Keep | None = None,
    ) -> list[Hit]:
        """Return what `search` should have found: every vector is compared."""
        found: list[Hit] = []
        for index in await self._all(namespace, tenant):
            found += await self._exact(index, _as_wanted(vector, index), k, user, keep)
        return _best(found, k)

    async def _exact(
        self, index: Index, vector: "Vector", k: int, user: str | None, keep: Keep | None
    ) -> list[Hit]:
        best: list[Hit] = []
        async for rows in self.pages(index, user):
            best = _best([*best, *_hits(index, rows, vector, user, keep, k)], k)
        return best

    async def get(self, namespace: str, ids: Sequence[str], *, tenant: str) -> dict[str, "Vector"]:
        """Return vectors by their ids; those that are not there are left out."""
        index = await self.find(namespace, tenant)
        if index is None or not ids:
            return {}
        bindings = {**index.where, "ids": json.encode(list(ids)).decode()}
        rows = await self.ask("vectors_by_id", bindings)
        return {str(id_): numpy.frombuffer(vector, numpy.float32) for id_, vector in rows}

    async def neighbours(
        self, namespace: str, vectors: "Vectors", k: int = 10, *, tenant: str
    ) -> list[list[tuple[str, float]]]:
        """Return ids and scores of the nearest ones of each vector, for many at once."""
        index = await self.find(namespace, tenant)
        if index is None:
            return [[] for _ in vectors]
        near = await self.near_each(index, vectors, k, quickly=True)
        numbers = {number for each in near for number, _ in each}
        name, bindings = "all_ids", index.where
        if len(numbers) < PAGE:
            name = "ids_by_number"
            bindings = {**bindings, "numbers": json.encode(sorted(numbers)).decode()}
        rows = await self.ask(name, bindings)
        ids = {int(number): str(id_) for number, id_ in rows}
        return [[(ids[n], score) for n, score in each if n in ids] for each in near]

    async def indexes(
        self, namespace: str | None = None, tenant: str | None = None
    ) -> list[IndexInfo]:
        """List the indexes there are."""

        def question(tx: Any) -> list[IndexInfo]:
            found = []
            for row in tx.agents.rows("all_indexes", {"namespace": namespace, "tenant_id": tenant}):
                where = dict(zip(("namespace", "tenant_id", "model"), row[:3], strict=True))
                deleted = int(tx.agents.value("count_buried", where))
                count = int(tx.agents.value("count_vectors", where)) - deleted
                names = (*Index.__struct_fields__, "built_at", "recall", "measured_at")
                told = dict(zip(names, row, strict=True))
                found.append(IndexInfo(**told, count=count, deleted=deleted))
            return found

        return await self._app.read(question)

    async def optimise(self, namespace: str, tenant: str, threshold: float = 0.8) -> bool:
        """Compact the index if a greater share than 1 - threshold is deleted; tell whether."""
        for info in await self.indexes(namespace, tenant):
            rows = info.count + info.deleted
            if rows and info.deleted / rows > 1 - threshold + 1e-9:  # 1 - 0.8 is a bit below 0.2
                await self.rebuild(namespace, tenant)
                return True
        return False

    async def recall(
        self, namespace: str, tenant: str, *, sample: int = 100, k: int = 10
    ) -> float | None:
        """Measure which share of an exact search's hits the index finds; None without vectors."""
        index = await self.find(namespace, tenant)
        sought = None if index is None else await self._sample(index, sample)
        if index is None or sought is None:
            return None
        right = await self._nearest(index, sought, k + 1)
        # Of candidates a search keeps the best by an exact comparison, as it does here.
        found = await self.near_each(index, sought, k + 1 + BESIDE)
        hits = sum(
            len({*numbers} & {number for number, _ in each})
            for numbers, each in zip(right, found, strict=True)
        )
        share = hits / max(1, sum(map(len, right)))
        where = {"namespace": namespace, "tenant_id": tenant, "recall": share}
        await self._app.transact(lambda tx: tx.agents.run("note_recall", {**where, "now": tx.now}))
        return share

    async def _sample(self, index: Index, most: int) -> "Vectors | None":
        """Vectors from all over the index: the same ones, as long as nothing changes."""
        picked: list[bytes] = []
        async for rows in self.pages(index):
            step = max(1, len(rows) // max(1, most))
            picked += [row.vector for row in rows[::step]]
        if not picked:
            return None
        chosen = picked[:: max(1, len(picked) // most)][:most]
        return numpy.stack([numpy.frombuffer(vector, numpy.float32) for vector in chosen])

    async def nearest(
        self, namespace: str, tenant: str, sought: "Vectors", k: int = 10
    ) -> list[list[str]]:
        """Return the ids of the k nearest of each of many, by comparing all: to measure by."""
        index = await self.find(namespace, tenant)
        if index is None:
            return [[] for _ in sought]
        rows = await self.ask("all_ids", index.where)
        ids = {int(number): str(id_) for number, id_ in rows}
        return [[ids[n] for n in each] for each in await self._nearest(index, sought, k)]

    async def _nearest(self, index: Index, sought: "Vectors", k: int) -> list[list[int]]:
        """The numbers of the k nearest of each, by comparing all."""
        best = [(numpy.empty(0, numpy.int64), numpy.empty(0, numpy.float32))] * len(sought)
        async for rows in self.pages(index):
            numbers = numpy.array([row.number for row in rows])
            scores = sought @ _matrix(rows).T
            for n, (known, known_scores) in enumerate(best):
                together = numpy.concatenate([known_scores, scores[n]])
                order = numpy.argsort(-together, kind="stable")[:k]
                best[n] = numpy.concatenate([known, numbers])[order], together[order]
        return [numbers.tolist() for numbers, _ in best]

    @abstractmethod
    async def forget(self, *, tenant: str | None = None, person: str | None = None) -> int:
        """Leave nothing of erased rows in any index or file; return how many were changed."""

    @abstractmethod
    async def close(self) -> None:
        """Write down what is worth keeping, and let go of memory."""

    async def ask(self, name: str, bindings: dict[str, Any]) -> list[tuple[Any, ...]]:
        """Return the rows of a named query."""
        rows: list[tuple[Any, ...]] = await self._app.read(
            lambda tx: tx.agents.rows(name, bindings)
        )
        return rows

    async def find(self, namespace: str, tenant: str) -> Index | None:
        """Return an index as it is now; None if nothing was ever put there."""
        rows = await self.ask("index_state", {"namespace": namespace, "tenant_id": tenant})
        for model, dimensions, revision, generation in rows:
            return Index(
                namespace=namespace,
                tenant_id=tenant,
                model=model,
                dimensions=dimensions,
                revision=revision,
                generation=generation,
            )
        return None

    async def _all(self, namespace: str | None, tenant: str | None) -> list[Index]:
        bindings = {"namespace": namespace, "tenant_id": tenant}
        rows = await self.ask("all_indexes", bindings)
        return [Index(**dict(zip(Index.__struct_fields__, row, strict=False))) for row in rows]

    async def pages(self, index: Index, user: str | None = None) -> AsyncIterator[list[Found]]:
        """Yield the rows of an index, or those of a user and of nobody, some at a time."""
        names: tuple[str, ...] = ("vectors_page",)
        if user is not None:
            names = ("vectors_page_of_user", "vectors_page_of_nobody")
        for name in names:
            after = 0
            while True:
                bindings = {**index.where, "after": after, "most": PAGE}
                if name == "vectors_page_of_user":
                    bindings["user_id"] = user
                rows = await self.ask(name, bindings)
                if rows:
                    yield [Found(*row) for row in rows]
                    await asyncio.sleep(0)
                if len(rows) < PAGE:
                    break
                after = rows[-1][0]

    async def _rows(self, index: Index, numbers: Sequence[int]) -> list[Found]:
        bindings = {**index.where, "numbers": json.encode(list(numbers)).decode()}
        rows = await self.ask("vectors_by_number", bindings)
        return [Found(*row) for row in rows]


def checked(id_: str, given: Any) -> "Vector":
    """Return a vector as it is kept, or raise BadVector if it is none of length 1."""
    vector: Vector = numpy.ascontiguousarray(given, numpy.float32)
    if vector.ndim != 1 or not len(vector):
        raise BadVector(id_, f"it has the shape {vector.shape}, and not (dimensions,)")
    length = float(numpy.linalg.norm(vector))
    if not abs(length - 1) < 0.01:
        raise BadVector(id_, f"its length is {length:.3f}, and not 1")
    return vector


def _as_wanted(vector: "Vector", index: Index) -> "Vector":
    wanted: Vector = numpy.ascontiguousarray(vector, numpy.float32)
    if wanted.shape != (index.dimensions,):
        problem = f"it has the shape {wanted.shape}, and {index.namespace!r} ({index.dimensions},)"
        raise BadVector("sought", problem)
    return wanted


def _matrix(rows: Sequence[Found]) -> "Vectors":
    joined = b"".join(row.vector for row in rows)
    return numpy.frombuffer(joined, numpy.float32).reshape(len(rows), -1)


def _hits(
    index: Index,
    rows: Sequence[Found],
    vector: "Vector",
    user: str | None,
    keep: Keep | None,
    most: int | None = None,
) -> list[Hit]:
    """The rows that count, or the `most` best of them, the best first."""
    if user is not None:
        rows = [row for row in rows if row.user_id in (user, None)]
    if not rows:
        return []
    scores = _matrix(rows) @ vector
    order = numpy.argsort(-scores, kind="stable")
    if keep is None:
        order = order[:most]
    hits = [
        Hit(
            id=rows[n].id,
            score=float(scores[n]),
            tenant_id=index.tenant_id,
            user_id=rows[n].user_id,
            metadata=msgspec.json.decode(rows[n].metadata),
        )
        for n in order.tolist()
    ]
    if keep is not None:
        hits = [hit for hit in hits if keep(hit)]
    return _best(hits, len(hits))


def _best(hits: list[Hit], k: int) -> list[Hit]:
    """The first k by score; of equal ones always the same."""
    return sorted(hits, key=lambda hit: (-hit.score, hit.tenant_id, hit.id))[:k]
