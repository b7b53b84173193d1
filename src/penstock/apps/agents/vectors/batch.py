"""Texts embedded in batches: what fails is told item by item, and the rest goes on."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from penstock.apps.agents.vectors.embedder import Embedder, embed, embedder_of
from penstock.apps.agents.vectors.jobs import EmbeddingItemData, EmbeddingResult
from penstock.apps.agents.vectors.rows import checked
from penstock.apps.agents.vectors.store import BadVector, Entry, vectors_of
from penstock.apps.agents.vectors.targets import Target
from penstock.apps.agents.worker import is_temporary
from penstock.model.errors import InvalidOption
from penstock.model.options import check_text
from penstock.model.redact import redact

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.apps.agents.vectors.store import Vector

BATCH = 32


class Batch(Struct, frozen=True, kw_only=True):
    """Items on their way into a namespace of a tenant.

    While somebody will try again, an embedder that is away for a moment fails the whole batch.
    """

    app: "Penstock"
    namespace: str
    tenant: str
    target: Target | None = None
    tried_again: bool = False

    async def run(self, items: Sequence[EmbeddingItemData]) -> list[EmbeddingResult]:
        """Embed items and keep their vectors in one commit; what became of each, in order."""
        errors = {n: problem for n, item in enumerate(items) if (problem := _problem(item))}
        good = [n for n in range(len(items)) if n not in errors]
        vectors = await self._embed(items, good, errors)
        ids = [item.embedding_id or self._id(item.source_id) for item in items]
        entries = {
            n: Entry(
                id=ids[n],
                vector=vector,
                tenant_id=self.tenant,
                user_id=items[n].user_id,
                metadata=items[n].metadata,
                text=items[n].text,
            )
            for n, vector in vectors.items()
        }

        def work(tx: Any) -> list[int]:
            lost = [n for n in entries if not self._tell(tx, items[n].source_id, ids[n])]
            kept = [entry for n, entry in entries.items() if n not in lost]
            if kept:
                vectors_of(self.app).put(tx, self.namespace, kept)
            return lost

        for n in await self.app.transact(work) if entries else ():
            errors[n] = f"No row of the target has the id {items[n].source_id!r}."
        return [
            EmbeddingResult(
                source_id=item.source_id,
                embedding_id=None if n in errors else ids[n],
                success=n not in errors,
                error=errors.get(n),
            )
            for n, item in enumerate(items)
        ]

    async def _embed(
        self, items: Sequence[EmbeddingItemData], good: list[int], errors: dict[int, str]
    ) -> dict[int, "Vector"]:
        """Vectors of the items at some places; where there is none, an error is noted."""
        embedder = embedder_of(self.app)
        found: dict[int, Vector] = {}
        try:
            found = dict(zip(good, await _embedded(embedder, items, good), strict=True))
        except Exception as error:
            if self.tried_again and is_temporary(error):
                raise
            for n in good:  # one by one, so that one text fails alone
                try:
                    found[n] = (await _embedded(embedder, items, [n]))[0]
                except Exception as its_own:
                    errors[n] = redact(f"{type(its_own).__name__}: {its_own}")[:500]
        for n, vector in list(found.items()):
            try:
                checked(items[n].source_id, vector)
            except BadVector as bad:
                errors[n] = str(bad)
                del found[n]
        return found

    def _tell(self, tx: Any, source_id: str, embedding_id: str) -> bool:
        return self.target is None or self.target.write(tx, source_id, embedding_id)

    def _id(self, source_id: str) -> str:
        """The id of the vector of a source: always the same."""
        named = "\0".join((self.tenant, self.namespace, source_id))
        return blake2b(named.encode(), digest_size=16).hexdigest()


async def _embedded(
    embedder: Embedder, items: Sequence[EmbeddingItemData], places: Sequence[int]
) -> "Sequence[Vector]":
    vectors = await embed(embedder, [items[n].text for n in places])
    if len(vectors) != len(places):
        raise BadVector("of a batch", f"{len(places)} texts have {len(vectors)} vectors")
    return list(vectors)


def _problem(item: EmbeddingItemData) -> str | None:
    """Why an item cannot be embedded or kept."""
    if not item.text.strip():
        return "The text is empty."
    try:
        for name in ("source_id", "text", "embedding_id", "user_id"):
            if (value := getattr(item, name)) is not None:
                check_text(name, value)
    except InvalidOption as error:
        return f"{error.option} must be {error.expected}."
    return None
