"""Vectors of another model: made beside those in use, and then used, all in one moment."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from penstock.apps.agents.vectors.embedder import Embedder, embed, embedder_of
from penstock.apps.agents.vectors.jobs import ReindexedData
from penstock.apps.agents.vectors.rows import Index, VectorRows, json
from penstock.apps.agents.vectors.store import Entry, vectors_of
from penstock.model.errors import InvalidOption

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

DROPPED = 2_000
"""So many rows of a former model go in one commit."""

NO_TEXT = "no_text"
SAME_MODEL = "same_model"


class Reindexing:
    """Embeds the texts of an index again and switches to the new vectors.

    Everything that it does follows from the rows: whoever is interrupted begins again, and does
    what is left.
    """

    def __init__(self, app: "Penstock", index: Index, batch_size: int) -> None:
        self._app = app
        self._index = index
        self._batch = batch_size
        self._embedder: Embedder = embedder_of(app)
        self._next = {**index.where, "next": self._embedder.model}
        self._vectors = rows_of(app)

    async def run(self, drops_missing: bool, show: Callable[[int], None]) -> ReindexedData:
        """Do it; `show` is told how many are embedded."""
        told = ReindexedData(
            namespace=self._index.namespace,
            tenant_id=self._index.tenant_id,
            model=self._index.model,
            switched=False,
        )
        if self._index.model == self._embedder.model:
            await self._clean()
            return replace(told, reason=SAME_MODEL)
        without = await self._app.read(lambda tx: tx.agents.value("count_without_text", self._next))
        if without and not drops_missing:
            return replace(told, reason=NO_TEXT)
        embedded = 0
        while True:
            after = ""
            while ids := await self._embed_some(after):
                after = ids[-1]
                embedded += len(ids)
                show(embedded)
            if await self._switch():
                break
        await self._clean()
        return replace(told, model=self._embedder.model, switched=True, embedded=embedded)

    async def _embed_some(self, after: str) -> list[str]:
        """Embed the next texts after an id; return the ids of those, none when all are."""
        bindings = {**self._next, "after": after, "most": self._batch}
        rows = await self._app.read(lambda tx: tx.agents.rows("texts_to_embed", bindings))
        if not rows:
            return []
        vectors = await embed(self._embedder, [str(row[3]) for row in rows])
        entries = {
            str(id_): Entry(
                id=str(id_),
                vector=vector,
                tenant_id=self._index.tenant_id,
                user_id=user_id,
                metadata=msgspec.json.decode(metadata),
                text=text,
                model=self._embedder.model,
            )
            for (id_, _, user_id, text, metadata), vector in zip(rows, vectors, strict=True)
        }
        ids = {"ids": json.encode(list(entries)).decode()}
        revisions = {str(row[0]): int(row[1]) for row in rows}

        def work(tx: Any) -> None:
            # Nobody writes meanwhile: what was removed or written since is left as it is.
            tx.agents.row("count_revisions", {**told, "taken": 0})
            now = dict(tx.agents.rows("revisions_by_id", {**self._index.where, **ids}))
            model = {"model": self._embedder.model}
            there = tx.agents.rows("revisions_by_id", {**told, **model, **ids})
            done = {str(id_) for id_, _ in there}
            kept = [
                entry
                for id_, entry in entries.items()
                if now.get(id_) == revisions[id_] and id_ not in done
            ]
            if kept:
                self._vectors.put(tx, self._index.namespace, kept)

        told = {"namespace": self._index.namespace, "tenant_id": self._index.tenant_id}
        await self._app.transact(work)
        return list(entries)

    async def _switch(self) -> bool:
        """Use the new vectors from now on; False if some texts came in meanwhile."""
        now = await self._vectors.find(self._index.namespace, self._index.tenant_id)
        if now is None or now.model != self._index.model:
            return True  # another one did it, or all of it is gone
        following = replace(
            now,
            model=self._embedder.model,
            dimensions=self._embedder.dimensions,
            generation=now.generation + 1,
        )
        await self._vectors.prepare(following)

        def work(tx: Any) -> bool:
            told = {"namespace": now.namespace, "tenant_id": now.tenant_id}
            tx.agents.row("count_revisions", {**told, "taken": 0})
            if tx.agents.rows("texts_to_embed", {**self._next, "after": "", "most": 1}):
                return False
            bindings = {**self._next, "dimensions": self._embedder.dimensions, "now": tx.now}
            tx.agents.run("switch_model", bindings)
            return True

        return await self._app.transact(work)

    async def _clean(self) -> None:
        """Leave nothing of former models."""
        told = {"namespace": self._index.namespace, "tenant_id": self._index.tenant_id}
        bindings = {**told, "model": self._embedder.model, "most": DROPPED}
        while await self._app.transact(lambda tx: tx.agents.run("drop_other_models", bindings)):
            pass
        index = await self._vectors.find(self._index.namespace, self._index.tenant_id)
        if index is not None:
            await self._vectors.discard_former(index)


def rows_of(app: "Penstock") -> VectorRows:
    """Return the vector store, if its vectors are rows here."""
    found = vectors_of(app)
    if not isinstance(found, VectorRows):
        expected = "usearch or pgvector: a store of one's own embeds again by itself"
        raise InvalidOption("vectors.provider", type(found).__name__, expected)
    return found
