"""Memories that are alike, and those that have changed, among the memories of one user.

Up to a few thousand are all compared with each other; of more, the neighbours that the vector
index finds are.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy
from msgspec import Struct

from penstock.apps.agents.memory.changes import ABOUT, CHANGED, Weights, change
from penstock.apps.agents.memory.language import Statement, take_apart
from penstock.apps.agents.vectors.embedder import embed, embedder_of
from penstock.apps.agents.vectors.store import MEMORIES, Entry, vectors_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from penstock.app.penstock import Penstock

    Vectors = NDArray[numpy.float32]

ALIKE = 0.8
"""Memories whose vectors have a greater cosine belong together."""
EXACT = 4_000
NEIGHBOURS = 16
COMPARED = 8
"""So many of the nearest earlier statements are looked at for one that has changed."""
MANY = 4
"""What somebody has said of more things than these is a list of them, and no fact that changes."""
CHUNK = 20_000


class Source(Struct, frozen=True):
    """A memory, as far as it is compared with others."""

    id: str
    user_id: str | None
    workspace_id: str | None
    memory_type: str
    source_type: str
    content: str
    importance: float
    is_shared: bool
    valid_from: int
    valid_to: int | None
    created_at: int


class Near(Struct, frozen=True):
    """For each of some memories the places of the nearest ones, -1 where there is none, and how
    near they are; and what was near beside them, by its id.
    """

    places: "NDArray[numpy.int32]"
    cosines: "NDArray[numpy.float32]"
    beside: list[tuple[int, str, float]]


class Cluster(Struct, frozen=True):
    """Memories that are alike, the oldest first, and how near each is to that one."""

    members: list[Source]
    cosines: list[float]


async def nearest(app: "Penstock", tenant: str, sources: Sequence[Source]) -> Near:
    """Find which memories of one user are near which."""
    known = {source.id: place for place, source in enumerate(sources)}
    k = min(NEIGHBOURS, max(1, len(sources) - 1))
    places = numpy.full((len(sources), k), -1, numpy.int32)
    cosines = numpy.full((len(sources), k), -1, numpy.float32)
    beside: list[tuple[int, str, float]] = []
    store = vectors_of(app)
    whole: list[Vectors] = []
    for begin in range(0, len(sources), CHUNK):
        vectors = await _vectors(app, tenant, sources[begin : begin + CHUNK])
        if len(sources) <= EXACT:
            whole.append(vectors)
        found = await store.neighbours(MEMORIES, vectors, k + 1, tenant=tenant)
        for place, others in enumerate(found, begin):
            column = 0
            for other, cosine in others:
                at = known.get(other)
                if at is None:
                    if cosine > ABOUT:
                        beside.append((place, other, cosine))
                elif at != place and column < k:
                    places[place, column], cosines[place, column] = at, cosine
                    column += 1
    if whole and len(sources) > 1:
        all_ = numpy.concatenate(whole)
        await asyncio.to_thread(_compare_all, all_, places, cosines)
    return Near(places, cosines, beside)


def _compare_all(
    vectors: "Vectors", places: "NDArray[numpy.int32]", cosines: "NDArray[numpy.float32]"
) -> None:
    """Fill in the nearest ones of each, every pair compared."""
    count, k = places.shape
    for begin in range(0, count, 512):
        block = vectors[begin : begin + 512] @ vectors.T
        rows = numpy.arange(len(block))
        block[rows, rows + begin] = -2
        best = numpy.argsort(-block, axis=1, kind="stable")[:, :k]
        found = numpy.take_along_axis(block, best, axis=1)
        places[begin : begin + 512] = numpy.where(found > -2, best, -1)
        cosines[begin : begin + 512] = found


async def _vectors(app: "Penstock", tenant: str, sources: Sequence[Source]) -> "Vectors":
    """The vectors of memories; what has none gets one, in a commit of its own."""
    store, embedder = vectors_of(app), embedder_of(app)
    found = await store.get(MEMORIES, [source.id for source in sources], tenant=tenant)
    lacking = [source for source in sources if source.id not in found]
    if lacking:
        made = await embed(embedder, [source.content for source in lacking])
        entries = [
            Entry(
                id=source.id,
                vector=vector,
                tenant_id=tenant,
                user_id=source.user_id,
                text=source.content,
            )
            for source, vector in zip(lacking, made, strict=True)
            if vector.any()
        ]
        if entries:
            await app.transact(lambda tx: store.put(tx, MEMORIES, entries))
        found = {**found, **{s.id: v for s, v in zip(lacking, made, strict=True)}}
    return numpy.stack([found[source.id] for source in sources])


def told_by(sources: Sequence[Source]) -> list[Statement]:
    """What each of some memories says."""
    return [take_apart(source.content) for source in sources]


def superseded(
    sources: Sequence[Source],
    said: Sequence[Statement],
    near: Near,
    others: Mapping[str, Source],
) -> dict[str, tuple[Source, Source, float]]:
    """The memories that a later one of the sources has changed: the old, the new, and how clearly.

    `said` is what the sources say, and `others` are those beside them by their ids. Each memory is
    superseded once at most, by the first that changes it, and each changes at most one.
    """
    everything = [*sources, *others.values()]
    statements = [*said, *told_by([*others.values()])]
    patterns = [each.vocabulary - each.names - each.values for each in statements]
    told = Counter(patterns)
    weights = Weights(statements)
    place_of = {source.id: place for place, source in enumerate(everything)}
    candidates: list[list[tuple[int, float]]] = []
    for row, cosines in zip(near.places, near.cosines, strict=True):
        candidates.append(
            [
                (int(at), float(c))
                for at, c in zip(row, cosines, strict=True)
                if at >= 0 and c > ABOUT
            ]
        )
    for place, other, cosine in near.beside:
        if other in place_of:
            candidates[place].append((place_of[other], cosine))
    found: dict[str, tuple[Source, Source, float]] = {}
    order = sorted(
        range(len(sources)),
        key=lambda n: (sources[n].valid_from, sources[n].created_at, sources[n].id),
    )
    for n in order:
        new = everything[n]
        earlier = [
            (at, cosine)
            for at, cosine in candidates[n]
            if everything[at].valid_from < new.valid_from
            and everything[at].id not in found
            and told[patterns[at]] <= MANY
        ]
        earlier.sort(key=lambda each: (-each[1], everything[each[0]].id))
        best, old = CHANGED, None
        for at, cosine in earlier[:COMPARED]:
            score = change(statements[at], statements[n], cosine, weights)
            if score >= best:
                best, old = score, everything[at]
        if old is not None:
            found[old.id] = old, new, best
    return found


def clustered(sources: Sequence[Source], near: Near, left_out: Mapping[str, Any]) -> list[Cluster]:
    """Put memories together with the oldest one that they are like; some have none."""
    order = sorted(range(len(sources)), key=lambda n: (sources[n].created_at, sources[n].id))
    free = [source.valid_to is None and source.id not in left_out for source in sources]
    found: list[Cluster] = []
    for first in order:
        if not free[first]:
            continue
        free[first] = False
        members, cosines = [sources[first]], [1.0]
        for at, cosine in zip(near.places[first], near.cosines[first], strict=True):
            if at >= 0 and cosine > ALIKE and free[at]:
                free[at] = False
                members.append(sources[at])
                cosines.append(round(float(cosine), 6))
        found.append(Cluster(members, cosines))
    return found
