"""What tests of vectors share: an embedder that takes no time, and vectors that are known."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy

from penstock import Penstock
from penstock.apps.agents.extension import TABLES
from penstock.apps.agents.vectors.rows import VectorRows
from penstock.apps.agents.vectors.store import Entry, vectors_of
from penstock.extension import Table

TINY = {"provider": "tests.apps.agents.vectors.given:Tiny"}
"""As `[penstock.agents.embedder]` has it."""


class Tiny:
    """An embedder that adds up a vector for each word."""

    def __init__(self, dimensions: int = 8) -> None:
        self.dimensions = dimensions
        self.model = f"tiny-{dimensions}"

    def embed(self, texts: Sequence[str]) -> Any:
        """Embed; the word BROKEN breaks it."""
        found = numpy.zeros((len(texts), self.dimensions), numpy.float32)
        for row, text in enumerate(texts):
            for word in text.lower().split():
                if word == "broken":
                    raise ValueError("this text is broken")
                found[row] += _of_word(word, self.dimensions)
        lengths = numpy.linalg.norm(found, axis=1, keepdims=True)
        return found / numpy.where(lengths > 0, lengths, 1)


def _of_word(word: str, dimensions: int) -> Any:
    seed = int.from_bytes(blake2b(word.encode(), digest_size=8).digest(), "big")
    return numpy.random.default_rng(seed).normal(size=dimensions).astype(numpy.float32)


def unit(n: int, dimensions: int = 8, seed: int = 1) -> Any:
    """So many vectors of length 1, always the same."""
    made = numpy.random.default_rng(seed).normal(size=(n, dimensions)).astype(numpy.float32)
    return made / numpy.linalg.norm(made, axis=1, keepdims=True)


async def put(
    app: Penstock, vectors: Any, *, tenant: str = "acme", namespace: str = "docs", **told: Any
) -> None:
    """Keep vectors as n0, n1 and so on."""
    entries = [
        Entry(
            id=f"n{n}",
            vector=vector,
            tenant_id=tenant,
            metadata={"n": n},
            **{"model": "known", **told},
        )
        for n, vector in enumerate(vectors)
    ]
    await app.transact(lambda tx: vectors_of(app).put(tx, namespace, entries))


async def remove(app: Penstock, *ids: str, tenant: str = "acme") -> int:
    """Remove vectors."""
    return await app.transact(lambda tx: vectors_of(app).remove(tx, "docs", ids, tenant=tenant))


def table(name: str) -> Table:
    """A table as the extension declares it."""
    return next(each for each in TABLES.tables if each.name == name)


def store_of(app: Penstock) -> VectorRows:
    """The vector store, with what only its own code uses."""
    found = vectors_of(app)
    assert isinstance(found, VectorRows)
    return found
