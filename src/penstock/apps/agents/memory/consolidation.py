"""Episodic memories become semantic ones: what is alike is said once, what has changed is ended.

Whatever it writes has an id that follows from the job and the sources, and a cluster that a memory
covers already is left alone: a job that is run again, or resumed, adds nothing.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from penstock.app.context import Context
from penstock.apps.agents.memory.changes import restates
from penstock.apps.agents.memory.clusters import (
    Cluster,
    Source,
    clustered,
    nearest,
    superseded,
    told_by,
)
from penstock.apps.agents.memory.jobs import Consolidated, ConsolidationData
from penstock.apps.agents.memory.language import content_hash
from penstock.apps.agents.memory.records import Memory, NewMemory
from penstock.apps.agents.memory.rows import (
    coverage,
    hold,
    insert,
    memory_of,
    put,
    text_of,
)
from penstock.apps.agents.memory.synthesis import Synthesis, synthesise
from penstock.apps.agents.model import is_extractive, model_of
from penstock.apps.agents.vectors.embedder import embed, embedder_of
from penstock.apps.agents.vectors.store import MEMORIES, vectors_of
from penstock.model.ids import derived_id

T = TypeVar("T")

CONSOLIDATION = "consolidation"
FEW = 8
PAGE = 5_000
BATCH = 400
"""So many clusters, or changes, go into one commit."""
SURE = 3
"""From so many sources on, a synthesis is held to be right with .9, and with .7 below."""


async def consolidate(data: ConsolidationData, ctx: Context) -> Consolidated:
    """Consolidate the memories of each user apart from those of others."""
    sources = await _sources(data, ctx)
    if len(sources) < 2:
        return Consolidated(consolidated=False, reason="insufficient_memories")
    ctx.progress({"phase": "analyzing", "percent": 10})
    clusters: list[Cluster] = []
    known: dict[str, list[Source]] = {}
    for theirs in _by_user(sources):
        near, said = await asyncio.gather(
            nearest(ctx.app, ctx.job.tenant_id, theirs), _aside(told_by, theirs)
        )
        others = await _others(ctx, theirs, {each for _, each, _ in near.beside})
        for place, other, _ in near.beside:
            if other in others and others[other].memory_type != "episodic":
                known.setdefault(theirs[place].id, []).append(others[other])
        # What a consolidation has made is not changed by itself: it ends with what it was made of.
        told = {id_: each for id_, each in others.items() if each.source_type != CONSOLIDATION}
        changed = await _aside(superseded, theirs, said, near, told)
        pairs = list(changed.values())
        for begin in range(0, len(pairs), BATCH):
            await _supersede(ctx, pairs[begin : begin + BATCH])
        clusters += await _aside(clustered, theirs, near, changed)
    ctx.progress({"phase": "generating", "percent": 40})
    several = [cluster for cluster in clusters if len(cluster.members) > 1]
    created = 0
    batch = BATCH if is_extractive(model_of(ctx.app)) else 1
    for begin in range(0, len(several), batch):
        created += await _generate(data, ctx, several[begin : begin + batch], known)
    ctx.progress({"phase": "indexing", "percent": 80})
    if created:
        await vectors_of(ctx.app).catch_up(MEMORIES, ctx.job.tenant_id)
    ctx.progress({"phase": "complete", "percent": 100})
    return Consolidated(
        consolidated=True,
        clusters_processed=len(clusters),
        memories_created=created,
        source_memories_processed=len(sources),
    )


async def _aside(think: Callable[..., T], sources: Sequence[Source], *given: Any) -> T:
    """Think about many memories in a thread, and about a few, which takes no time, at once."""
    if len(sources) <= FEW:
        return think(sources, *given)
    return await asyncio.to_thread(think, sources, *given)


async def _sources(data: ConsolidationData, ctx: Context) -> list[Source]:
    """The memories as they were when the job was enqueued: an earlier run of it changes nothing."""
    asked = {
        "tenant": ctx.job.tenant_id,
        "user": data.user_id,
        "workspace": data.workspace_id,
        "as_of": ctx.job.created_at,
    }
    found: list[Source] = []
    if data.memory_ids is not None:
        wanted = list(dict.fromkeys(data.memory_ids))
        for begin in range(0, len(wanted), PAGE):
            some = {**asked, "ids": text_of(wanted[begin : begin + PAGE])}
            found += await _read(ctx, "sources_among", some)
        return found
    after = ""
    while True:
        page = await _read(ctx, "sources", {**asked, "after": after, "limit": PAGE})
        found += page
        if len(page) < PAGE:
            return found
        after = page[-1].id


async def _read(ctx: Context, query: str, asked: dict[str, Any]) -> list[Source]:
    rows: list[tuple[Any, ...]] = await ctx.read(lambda tx: tx.agents.rows(query, asked))
    found: list[Source] = []
    for row in rows:
        named = dict(zip(Source.__struct_fields__, row, strict=True))
        named["is_shared"] = bool(named["is_shared"])
        found.append(Source(**named))
    return found


def _by_user(sources: Sequence[Source]) -> list[list[Source]]:
    found: dict[str | None, list[Source]] = {}
    for source in sources:
        found.setdefault(source.user_id, []).append(source)
    return list(found.values())


async def _others(ctx: Context, sources: Sequence[Source], ids: set[str]) -> dict[str, Source]:
    """What else is known of the same user and holds."""
    if not ids:
        return {}
    asked = {
        "tenant": ctx.job.tenant_id,
        "as_of": ctx.job.created_at,
        "ids": text_of(sorted(ids)),
    }
    found = await _read(ctx, "known_among", asked)
    return {each.id: each for each in found if each.user_id == sources[0].user_id}


async def _supersede(ctx: Context, pairs: Sequence[tuple[Source, Source, float]]) -> None:
    """End what has changed, and what was made of it."""

    def work(tx: Any) -> None:
        hold(tx, ctx.job.tenant_id, {new.user_id for _, new, _ in pairs})
        for old, new, score in pairs:
            row = {
                "old": old.id,
                "new": new.id,
                "tenant": ctx.job.tenant_id,
                "user": new.user_id,
                "valid_to": new.valid_from,
                "weight": round(min(1.0, score / 5), 3),
                "now": tx.now,
            }
            for name in ("link_changed", "end_changed"):
                tx.agents.run(name, row)

    await ctx.transact(work)


async def _generate(
    data: ConsolidationData,
    ctx: Context,
    clusters: Sequence[Cluster],
    known: Mapping[str, Sequence[Source]],
) -> int:
    """Write what clusters say, those that no memory covers; how many memories this job made.

    `known` are semantic memories near the members of clusters, by the ids of those.
    """
    app, tenant = ctx.app, ctx.job.tenant_id
    covered = await ctx.read(lambda tx: _coverage(tx, clusters))
    open_ = [cluster for cluster in clusters if not _covered(cluster, covered)]
    texts = [
        await synthesise(app, tenant, [each.content for each in _by_time(cluster)])
        for cluster in open_
    ]
    vectors = await embed(embedder_of(app), [text.content for text in texts])

    def work(tx: Any) -> int:
        hold(tx, tenant, {cluster.members[0].user_id for cluster in clusters})
        now_covered = _coverage(tx, clusters)
        made = sum(_made_by(ctx, cluster) in now_covered for cluster in clusters)
        writing = _Writing(ctx, data)
        for n, cluster in enumerate(open_):
            if not _covered(cluster, now_covered):
                near = [each for member in cluster.members for each in known.get(member.id, ())]
                made += writing.write(tx, cluster, texts[n], vectors[n], near, now_covered)
        put(app, tx, writing.stored)
        return made

    return await ctx.transact(work)


def _by_time(cluster: Cluster) -> list[Source]:
    return sorted(cluster.members, key=lambda each: (each.valid_from, each.created_at, each.id))


def _coverage(tx: Any, clusters: Sequence[Cluster]) -> dict[str, set[str]]:
    """The memories that were made of these, and of which ones each was made."""
    return coverage(tx, [member.id for cluster in clusters for member in cluster.members])


def _covered(cluster: Cluster, covered: dict[str, set[str]]) -> bool:
    ids = {member.id for member in cluster.members}
    return any(ids <= sources for sources in covered.values())


def _made_by(ctx: Context, cluster: Cluster) -> str:
    """The id of what this job makes of a cluster."""
    ids = sorted(member.id for member in cluster.members)
    return derived_id(ctx.job.created_at, CONSOLIDATION, ctx.job.id, *ids)


class _Writing:
    """Writes what clusters say."""

    def __init__(self, ctx: Context, data: ConsolidationData) -> None:
        self._ctx = ctx
        self._data = data
        self.stored: list[tuple[Memory, Any]] = []

    def write(
        self,
        tx: Any,
        cluster: Cluster,
        synthesis: Synthesis,
        vector: Any,
        near: Sequence[Source],
        covered: dict[str, set[str]],
    ) -> int:
        """Store a synthesis unless it is known, with its edges; tell whether it was stored."""
        known = self._known(tx, cluster, synthesis, near)
        target = known or self._insert(tx, cluster, synthesis, vector)
        now = tx.now
        tx.agents.many(
            "add_edge",
            [
                self._edge(cluster, source=member.id, target=target, weight=cosine, now=now)
                for member, cosine in zip(cluster.members, cluster.cosines, strict=True)
            ],
        )
        ids = {member.id for member in cluster.members}
        for former, sources in covered.items():
            if former != target and sources <= ids:
                edge = self._edge(cluster, source=target, target=former, weight=1.0, now=now)
                tx.agents.run("add_edge", {**edge, "edge_type": "supersedes"})
                latest = max(member.valid_from for member in cluster.members)
                ended = {"id": former, "valid_to": latest, "now": now}
                tx.agents.run("supersede_memory", ended)
        if self._data.consolidation_type == "merge":
            for member in cluster.members:
                self._halve(tx, member)
        return 0 if known else 1

    def _known(
        self, tx: Any, cluster: Cluster, synthesis: Synthesis, near: Sequence[Source]
    ) -> str | None:
        """A semantic memory of the same user that says it already."""
        asked = {
            "tenant": self._ctx.job.tenant_id,
            "ids": text_of([content_hash(synthesis.content)]),
            "now": tx.now,
        }
        for row in tx.agents.rows("same_memories", asked):
            memory = memory_of(row)
            whose = cluster.members[0].user_id
            if memory.memory_type != "episodic" and memory.user_id == whose:
                return memory.id
        for each in near:
            if each.valid_to is None and restates(each.content, synthesis.content):
                return each.id
        return None

    def _insert(self, tx: Any, cluster: Cluster, synthesis: Synthesis, vector: Any) -> str:
        members = cluster.members
        workspaces = {member.workspace_id for member in members}
        metadata = {
            "sourceMemoryIds": [member.id for member in members],
            "consolidationType": self._data.consolidation_type,
            "synthesisConfidence": 0.9 if len(members) >= SURE else 0.7,
            "synthesisedBy": synthesis.by,
        }
        new = NewMemory(
            content=synthesis.content,
            user_id=members[0].user_id,
            workspace_id=workspaces.pop() if len(workspaces) == 1 else None,
            memory_type="semantic",
            importance=max(member.importance for member in members),
            source_type=CONSOLIDATION,
            source_id=self._ctx.job.id,
            is_shared=all(member.is_shared for member in members),
            at=max(member.valid_from for member in members),
            metadata=metadata,
        )
        memory = insert(
            tx, new, memory_id=_made_by(self._ctx, cluster), tenant=self._ctx.job.tenant_id
        )
        self.stored.append((memory, vector))
        return memory.id

    def _edge(
        self, cluster: Cluster, *, source: str, target: str, weight: float, now: int
    ) -> dict[str, Any]:
        return {
            "source": source,
            "target": target,
            "edge_type": "part_of",
            "tenant_id": self._ctx.job.tenant_id,
            "user_id": cluster.members[0].user_id,
            "weight": weight,
            "now": now,
        }

    def _halve(self, tx: Any, member: Source) -> None:
        """Make a source less important, once for each job."""
        row = {
            "job": self._ctx.job.id,
            "memory": member.id,
            "tenant": self._ctx.job.tenant_id,
            "user": member.user_id,
        }
        if tx.agents.run("note_halved", row):
            tx.agents.run("halve_memory", {"memory": member.id, "now": tx.now})
