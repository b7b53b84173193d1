"""`python -m proof.bench.vectors`: how fast texts are embedded, kept, and found again.

Texts are sentences such as people say, all different. Embedding alone is measured by the time of
one core. What `embedding-batch` does, embedding, writing rows and taking them into the graph, is
compared with usearch's bare `add` of the same vectors with the same settings, both on all cores.
Searches are whole ones, rows and exact comparison included, one after the other, for texts that are
not in the index; recall is against a comparison with every vector.
"""

import argparse
import asyncio
import os
import random
import statistics
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy

from penstock import Penstock, Settings
from penstock.apps.agents.extension import VectorSettings
from penstock.apps.agents.vectors.embedder import embedder_of
from penstock.apps.agents.vectors.rows import VectorRows
from penstock.apps.agents.vectors.store import Entry, VectorStore, vectors_of
from proof.bench.report import line

TENANT = "bench"
NAMESPACE = "memories"
TOGETHER = 1_000

WHO = [
    "Ada",
    "Bruno",
    "Chen",
    "Dalia",
    "Emil",
    "Fatou",
    "Goran",
    "Hana",
    "Ivo",
    "Jun",
    "Kemi",
    "Lars",
    "Mira",
    "Nils",
    "Oona",
    "Pia",
    "Raj",
    "Sven",
    "Tala",
    "Uma",
]
FAMILY = [
    "Novak",
    "Okafor",
    "Lindgren",
    "Rossi",
    "Tanaka",
    "Weber",
    "Silva",
    "Kowalski",
    "Haddad",
    "Nguyen",
    "Moreau",
    "Petrov",
]
WHERE = [
    "Berlin",
    "Lagos",
    "Oslo",
    "Turin",
    "Osaka",
    "Lisbon",
    "Krakow",
    "Beirut",
    "Hanoi",
    "Lyon",
    "Sofia",
    "Quito",
    "Perth",
    "Austin",
]
DOES = (
    "prefers {a} to {b} in the morning",
    "has moved from {c} to {d} because of {a}",
    "is allergic to {a} and keeps {b} at home instead",
    "asked twice about the {a} that the {b} of the {d} office needs",
    "wants every report about {a} as a table, never as {b}",
    "no longer works on {a}; since spring it is {b} in {d}",
    "said the {a} failed after the {b} was replaced in {c}",
    "learns to repair a {a} with a {b} from {c}",
)
WHAT = [
    "green tea",
    "a pump",
    "the valve",
    "bread",
    "jazz",
    "invoices",
    "a bicycle",
    "the roof",
    "coffee",
    "tomatoes",
    "the database",
    "a violin",
    "the ledger",
    "goats",
    "the water meter",
    "chess",
    "a passport",
    "the turbine",
    "honey",
    "sailing",
    "the kiln",
    "payroll",
    "a telescope",
    "the greenhouse",
    "rye flour",
    "the backup",
    "a printer",
    "swimming",
    "the archive",
    "oysters",
    "the north bridge",
    "a tractor",
    "the vaccine",
    "old maps",
    "the lease",
    "a kayak",
    "the payment gateway",
    "saffron",
    "the night train",
    "a microscope",
    "the hedge",
    "plywood",
    "the orchestra",
    "a router",
    "the choir",
    "glass",
    "the dam",
]


def sentences(count: int, seed: int) -> list[str]:
    """So many sentences, of which hardly two are the same."""
    chance = random.Random(seed)
    found = []
    for n in range(count):
        does = chance.choice(DOES).format(
            a=chance.choice(WHAT),
            b=chance.choice(WHAT),
            c=chance.choice(WHERE),
            d=chance.choice(WHERE),
        )
        when = f"in {chance.randint(1990, 2026)}" if n % 3 else f"on day {chance.randint(1, 366)}"
        found.append(f"{chance.choice(WHO)} {chance.choice(FAMILY)} {does}, as noted {when}.")
    return found


async def measure(url: str, folder: Path, count: int, queries: int) -> list[tuple[str, str, str]]:
    """All figures with their targets."""
    settings = Settings(
        url=url, extension={"agents": {"folder": str(folder / "agents"), "schedules": False}}
    )
    async with Penstock(settings=settings, extensions=["agents"]) as app:
        texts = sentences(count, 1)
        embedder = embedder_of(app)
        embedder.embed(texts[:10])
        began = time.process_time()
        vectors = embedder.embed(texts)
        embedding = count / (time.process_time() - began)
        with Watch() as bare:
            _add(vectors, app.extensions.settings("agents").vectors)
        with Watch() as upsert:
            await _upsert(app, texts)
        del vectors
        sought = embedder.embed(sentences(queries, 2))
        slow, middle, recall = await _search(app, sought)
    return [
        ("texts embedded, one core", f"{embedding:,.0f} texts/s", "≥ 5,000 texts/s"),
        ("vectors added by usearch alone", f"{count / bare.seconds:,.0f} vectors/s", ""),
        (
            "texts embedded, written and in the graph",
            f"{count / upsert.seconds:,.0f} texts/s",
            f"{bare.seconds / upsert.seconds:.2f} of that (≥ 0.7)",
        ),
        (
            "the same by the processors' time",
            f"{upsert.busy * 1e6 / count:,.0f} µs a text",
            f"{bare.busy / upsert.busy:.2f} of usearch's {bare.busy * 1e6 / count:,.0f} µs",
        ),
        (f"search among {count:,}", f"p50 {middle:.2f} ms, p95 {slow:.2f} ms", "p95 < 5 ms"),
        ("recall@10", f"{recall:.4f}", "≥ 0.95"),
    ]


class Watch:
    """Measures a block: seconds that went by, and those that all cores worked for it."""

    seconds = 0.0
    busy = 0.0

    def __enter__(self) -> "Watch":
        self._began = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._began[0]
        self.busy = time.process_time() - self._began[1]


def _add(vectors: Any, settings: VectorSettings) -> None:
    """Have usearch alone add vectors."""
    from usearch.index import Index

    index = Index(
        ndim=vectors.shape[1],
        metric="ip",
        dtype="f16",
        connectivity=settings.m,
        expansion_add=settings.ef_construction,
    )
    index.add(numpy.arange(len(vectors)), vectors)


async def _upsert(app: Penstock, texts: list[str]) -> None:
    store, embedder = vectors_of(app), embedder_of(app)
    for start in range(0, len(texts), TOGETHER):
        some = texts[start : start + TOGETHER]
        vectors = await asyncio.to_thread(embedder.embed, some)
        entries = [
            Entry(id=f"m{start + n}", vector=vector, tenant_id=TENANT, text=text)
            for n, (vector, text) in enumerate(zip(vectors, some, strict=True))
        ]
        await app.transact(partial(_put, store, entries))
    await store.catch_up(NAMESPACE, TENANT)


def _put(store: VectorStore, entries: list[Entry], tx: Any) -> None:
    store.put(tx, NAMESPACE, entries)


async def _search(app: Penstock, sought: Any) -> tuple[float, float, float]:
    """The p95 and p50 in milliseconds, and the recall."""
    store = vectors_of(app)
    assert isinstance(store, VectorRows)
    taken: list[float] = []
    found: list[set[str]] = []
    for vector in sought:
        began = time.perf_counter()
        hits = await store.search(NAMESPACE, vector, 10, tenant=TENANT)
        taken.append((time.perf_counter() - began) * 1_000)
        found.append({hit.id for hit in hits})
    right = await store.nearest(NAMESPACE, TENANT, sought, 10)
    share = sum(len(ids & {*exact}) for ids, exact in zip(found, right, strict=True))
    cuts = statistics.quantiles(taken, n=100, method="inclusive")
    return cuts[94], cuts[49], share / (10 * len(sought))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vectors", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--url", help="a store; by default a new file")
    told = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    with tempfile.TemporaryDirectory() as folder:
        url = told.url or f"sqlite:///{folder}/bench.db"
        figures = asyncio.run(measure(url, Path(folder), told.vectors, told.queries))
    for row in (("", "measured", "target"), ("---", "---", "---"), *figures):
        sys.stdout.write(f"{line(row)}\n")


if __name__ == "__main__":
    main()
