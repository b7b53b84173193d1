"""`app.agents.memories`: what agents remember, added, found, changed and forgotten.

A memory and its vector are one commit. What restates a known memory of the same user is not stored.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from penstock.app.options import CallFields
from penstock.apps.agents.memory.gate import RESTATED_FROM, id_of, known_memories, restated
from penstock.apps.agents.memory.jobs import (
    Consolidated,
    ConsolidationData,
    MemoryConsolidation,
)
from penstock.apps.agents.memory.language import content_hash
from penstock.apps.agents.memory.records import (
    EDGE_TYPES,
    MEMORY_TYPES,
    Added,
    Edge,
    Graph,
    Memory,
    MemoryFilter,
    NewMemory,
    Recalled,
)
from penstock.apps.agents.memory.rows import (
    SHARED,
    add_edge,
    delete,
    hold,
    insert,
    load,
    memory_of,
    put,
    supersede,
    text_of,
)
from penstock.apps.agents.vectors.embedder import embed, embedder_of
from penstock.apps.agents.vectors.store import MEMORIES, vectors_of
from penstock.apps.agents.worker import prepared
from penstock.model.clock import LATEST
from penstock.model.errors import InvalidOption
from penstock.model.ids import new_id
from penstock.model.not_found import NotFound
from penstock.model.options import as_json, check_text
from penstock.operate.actor import PROGRAM, Actor

if TYPE_CHECKING:
    from penstock.app.handle import JobHandle
    from penstock.app.penstock import Penstock

T = TypeVar("T")

LONGEST = 20_000
MOST = 1_000
NEAR = 8
"""So many of the nearest memories are compared with what is to be remembered."""


Several = list[Memory]
Outcomes = list[Added]
Found = list[Recalled]
Edges = list[Edge]


class MemoryNotFound(NotFound):
    """An id that no memory has, or none of the caller's tenant."""

    def __init__(self, memory_id: str) -> None:
        self.memory_id = memory_id
        super().__init__(
            f"No memory has the id {memory_id!r}; `app.agents.memories.list()` lists them."
        )


class Memories:
    """What agents remember: `await app.agents.memories.add("Ada lives in Turin.", user="ada")`."""

    def __init__(self, app: "Penstock", actor: Actor = PROGRAM) -> None:
        self._app = app
        self._actor = actor

    def by(self, actor: Actor) -> "Memories":
        """The same on behalf of somebody, who may be bound to a tenant."""
        return Memories(self._app, actor)

    async def add(
        self,
        content: str,
        *,
        tenant: str | None = None,
        user: str | None = None,
        workspace: str | None = None,
        memory_type: str = "episodic",
        importance: float = 0.5,
        source_type: str = "agent",
        source_id: str | None = None,
        is_shared: bool = False,
        expires_at: int | None = None,
        at: int | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> Added:
        """Remember something, unless a known memory says it already."""
        new = NewMemory(
            content=content,
            user_id=user,
            workspace_id=workspace,
            memory_type=memory_type,
            importance=importance,
            source_type=source_type,
            source_id=source_id,
            is_shared=is_shared,
            expires_at=expires_at,
            at=at,
            metadata=metadata or {},
        )
        return (await self.add_many([new], tenant=tenant))[0]

    async def add_many(
        self, memories: Sequence[NewMemory], *, tenant: str | None = None, gate: bool = True
    ) -> Outcomes:
        """Remember many things in one commit; without the `gate`, also what is known already."""
        owner = check_text("tenant", self._actor.tenant_of(tenant) or "")
        for new in memories:
            _check(new)
        texts = [new.content.strip() for new in memories]
        vectors = await embed(embedder_of(self._app), texts)
        near: list[list[str]] = [[] for _ in memories]
        if gate:
            store = vectors_of(self._app)
            for place, (new, vector) in enumerate(zip(memories, vectors, strict=True)):
                hits = await store.search(MEMORIES, vector, NEAR, tenant=owner, user=new.user_id)
                near[place] = [hit.id for hit in hits if hit.score > RESTATED_FROM]
        ids = [id_of(owner, new) for new in memories]

        def work(tx: Any) -> list[Added]:
            hold(tx, owner, {new.user_id for new in memories})
            known = known_memories(tx, owner, texts, near) if gate else {}
            added: list[Added] = []
            stored: list[tuple[Memory, Any]] = []
            for n, new in enumerate(memories):
                again = restated(new, near[n], known) if gate else None
                if again is not None:
                    row = {"id": again.id, "importance": new.importance, "now": tx.now}
                    tx.agents.run("raise_importance", row)
                    added.append(Added(again, stored=again.id == ids[n]))
                    continue
                memory = insert(tx, new, memory_id=ids[n], tenant=owner)
                stored.append((memory, vectors[n]))
                added.append(Added(memory, stored=True))
                known[memory.id] = memory
            put(self._app, tx, stored)
            return added

        async with self._actor.doing(
            "memory.add", "memories", tenant_id=owner, count=len(memories)
        ):
            return await self._app.transact(work)

    async def get(self, memory_id: str) -> Memory:
        """One of them by its id."""
        return await self._app.read(partial(_get, memory_id=memory_id, actor=self._actor))

    async def get_many(self, ids: Sequence[str]) -> Several:
        """Those of some ids that there are, in the order of the ids."""
        return await self._app.read(lambda tx: load(tx, ids, self._actor.tenant))

    async def counts(self, tenant: str | None = None) -> dict[str, int]:
        """How many there are of each type that hold, and how many were `superseded`."""
        asked = {"tenant": self._actor.tenant_of(tenant)}
        rows = await self._app.read(lambda tx: tx.agents.rows("count_memories", asked))
        found: dict[str, int] = dict.fromkeys([*MEMORY_TYPES, "superseded"], 0)
        for memory_type, current, count in rows:
            found[str(memory_type) if current else "superseded"] += int(count)
        return found

    async def search(
        self,
        text: str,
        *,
        tenant: str | None = None,
        user: str | None = None,
        k: int = 10,
        memory_type: str | None = None,
        at: int | None = None,
        history: bool | None = None,
        count: bool = True,
    ) -> Found:
        """What is remembered about something, the best first; those found count as accessed.

        With `user`, what is remembered of this user, of nobody in particular, or shared. What has
        been superseded is found if the text asks for the past, or with `history`; with `at`, what
        held at that time, in UTC milliseconds.
        """
        from penstock.apps.agents.memory.search import recall

        owner = self._actor.tenant_of(tenant) or ""
        found = await recall(
            self._app,
            text,
            tenant=owner,
            user=user,
            k=k,
            memory_type=memory_type,
            at=at,
            history=history,
        )
        if count and found:
            ids = text_of([each.memory.id for each in found])
            await self._app.transact(
                lambda tx: tx.agents.run("count_access", {"ids": ids, "now": tx.now})
            )
        return found

    async def edit(
        self,
        memory_id: str,
        *,
        content: str | None = None,
        importance: float | None = None,
        memory_type: str | None = None,
        is_shared: bool | None = None,
        expires_at: int | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> Memory:
        """Change a memory; what it then says is embedded anew."""
        old = await self.get(memory_id)
        new = NewMemory(
            content=old.content if content is None else content,
            importance=old.importance if importance is None else importance,
            memory_type=old.memory_type if memory_type is None else memory_type,
            is_shared=old.is_shared if is_shared is None else is_shared,
            expires_at=old.expires_at if expires_at is None else expires_at,
            metadata=old.metadata if metadata is None else metadata,
        )
        _check(new)
        vector = (await embed(embedder_of(self._app), [new.content.strip()]))[0]

        def work(tx: Any) -> Memory:
            known = _get(tx, memory_id, self._actor)
            said = new.content.strip()
            tx.agents.run(
                "edit_memory",
                {
                    "id": memory_id,
                    "content": said,
                    "content_hash": content_hash(said),
                    "importance": new.importance,
                    "memory_type": new.memory_type,
                    "is_shared": int(new.is_shared),
                    "expires_at": new.expires_at,
                    "metadata": text_of(new.metadata),
                    "now": tx.now,
                },
            )
            store = vectors_of(self._app)
            if known.is_shared and not new.is_shared:
                store.remove(tx, SHARED, [memory_id], tenant=known.tenant_id)
            changed = _get(tx, memory_id, self._actor)
            put(self._app, tx, [(changed, vector)])
            return changed

        return await self._change("edit", memory_id, work)

    async def delete(self, memory_id: str) -> None:
        """Forget a memory, with its vector and its edges."""

        def work(tx: Any) -> None:
            memory = _get(tx, memory_id, self._actor)
            delete(self._app, tx, [memory])

        await self._change("delete", memory_id, work)

    async def merge(self, ids: Sequence[str], *, content: str | None = None) -> Memory:
        """Make one memory of several, which it supersedes; by default, of what they say."""
        if len({*ids}) < 2:
            raise InvalidOption("ids", list(ids), "those of at least two memories")
        sources = await self.get_many(ids)
        if len(sources) < len({*ids}):
            raise MemoryNotFound(next(i for i in ids if i not in {m.id for m in sources}))
        if len({(m.tenant_id, m.user_id) for m in sources}) > 1:
            raise InvalidOption("ids", list(ids), "those of memories of one user")
        first = sources[0]
        if content is None:
            from penstock.apps.agents.memory.synthesis import synthesise

            contents = [source.content for source in sources]
            content = (await synthesise(self._app, first.tenant_id, contents)).content
        new = NewMemory(
            content=content,
            user_id=first.user_id,
            workspace_id=first.workspace_id,
            memory_type="semantic",
            importance=max(m.importance for m in sources),
            source_type="merge",
            is_shared=all(m.is_shared for m in sources),
            metadata={"sourceMemoryIds": [m.id for m in sources]},
        )
        _check(new)
        vector = (await embed(embedder_of(self._app), [new.content.strip()]))[0]
        merged_id = new_id()

        def work(tx: Any) -> Memory:
            memory = insert(tx, new, memory_id=merged_id, tenant=first.tenant_id)
            put(self._app, tx, [(memory, vector)])
            for source in sources:
                supersede(tx, memory, source)
            return memory

        return await self._change("merge", merged_id, work)

    async def link(
        self, source: str, target: str, edge_type: str = "related_to", weight: float = 1.0
    ) -> Edge:
        """Say how one memory belongs to another."""
        if edge_type not in EDGE_TYPES:
            raise InvalidOption("edge_type", edge_type, f"one of: {', '.join(EDGE_TYPES)}")
        if not 0 <= weight <= 1:
            raise InvalidOption("weight", weight, "a number from 0 to 1")
        if source == target:
            raise InvalidOption("target", target, "another memory than the source")

        def work(tx: Any) -> Edge:
            one, other = (_get(tx, each, self._actor) for each in (source, target))
            if one.tenant_id != other.tenant_id:
                raise InvalidOption("target", target, "a memory of the same tenant")
            add_edge(tx, one, target, edge_type, weight)
            return Edge(
                source=source,
                target=target,
                edge_type=edge_type,
                weight=weight,
                created_at=tx.now,
            )

        return await self._change("link", source, work)

    async def unlink(self, source: str, target: str, edge_type: str) -> bool:
        """Remove an edge; tell whether there was one."""

        def work(tx: Any) -> bool:
            memory = _get(tx, source, self._actor)
            edge = {"source": source, "target": target, "edge_type": edge_type}
            return bool(tx.agents.run("remove_edge", {**edge, "tenant": memory.tenant_id}))

        return await self._change("unlink", source, work)

    async def edges(self, memory_id: str, limit: int = 100) -> Edges:
        """How a memory belongs to others."""
        return (await self.graph([memory_id], depth=1, limit=limit)).edges

    async def graph(
        self,
        ids: Sequence[str],
        *,
        depth: int = 1,
        limit: int = 200,
    ) -> Graph:
        """Memories and those within so many edges of them, to be drawn."""
        if not 1 <= limit <= MOST or not 1 <= depth <= 5:
            raise InvalidOption("limit", limit, f"1 to {MOST}, with a depth of 1 to 5")

        def question(tx: Any) -> Graph:
            tenant = self._actor.tenant
            reached = {memory.id for memory in load(tx, ids, tenant)}
            for missing in (each for each in ids if each not in reached):
                raise MemoryNotFound(missing)
            rows: dict[tuple[str, str, str], tuple[Any, ...]] = {}
            for _ in range(depth):
                asked = {"ids": text_of(sorted(reached)), "tenant": tenant, "limit": limit}
                for row in tx.agents.rows("edges_of", asked):
                    rows[row[0], row[1], row[2]] = row
                    reached |= {row[0], row[1]}
            names = Edge.__struct_fields__
            edges = [Edge(**dict(zip(names, row, strict=True))) for row in rows.values()]
            return Graph(load(tx, sorted(reached), tenant), edges)

        return await self._app.read(question)

    async def consolidate(
        self,
        *,
        tenant: str | None = None,
        user: str | None = None,
        workspace: str | None = None,
        memory_ids: Sequence[str] | None = None,
        consolidation_type: Literal["summarize", "merge"] = "summarize",
    ) -> "JobHandle[Consolidated]":
        """Enqueue a consolidation, after those of the same user that were enqueued before it."""
        owner = self._actor.tenant_of(tenant) or ""
        data = ConsolidationData(
            user_id=user,
            workspace_id=workspace,
            memory_ids=None if memory_ids is None else [*memory_ids],
            consolidation_type=consolidation_type,
        )
        options: CallFields = {
            "tenant": owner,
            "workspace": workspace,
            "order_key": f"memories/{owner}/{user or ''}",
        }
        type_ = self._app.find_type(MemoryConsolidation.name)
        return await self._app.enqueue(prepared(type_, data, options))

    async def list(self, where: MemoryFilter = MemoryFilter()) -> Several:  # noqa: B008
        """Memories, the latest first."""
        if not 1 <= where.limit <= MOST:
            raise InvalidOption("limit", where.limit, f"1 to {MOST}")
        tenant = self._actor.tenant_of(where.tenant)

        def question(tx: Any) -> list[Memory]:
            at = LATEST if where.before is None else tx.agents.value("memory_at", (where.before,))
            if at is None:
                raise MemoryNotFound(str(where.before))
            asked = {
                "tenant": tenant,
                "user": where.user,
                "workspace": where.workspace,
                "memory_type": where.memory_type,
                "current": None if where.current is None else int(where.current),
                "before_at": at,
                "before_id": where.before or "",
                "limit": where.limit,
            }
            return [memory_of(row) for row in tx.agents.rows("list_memories", asked)]

        return await self._app.read(question)

    async def _change(self, action: str, memory_id: str, work: Callable[[Any], T]) -> T:
        async with self._actor.doing(f"memory.{action}", f"memory:{memory_id}"):
            return await self._app.transact(work)


def _get(tx: Any, memory_id: str, actor: Actor) -> Memory:
    found = load(tx, [memory_id], actor.tenant)
    if not found:
        raise MemoryNotFound(memory_id)
    return found[0]


def _check(new: NewMemory) -> None:
    for name in ("content", "user_id", "workspace_id", "source_type", "source_id"):
        if (value := getattr(new, name)) is not None:
            check_text(name, value)
    if not 0 < len(new.content.strip()) <= LONGEST:
        raise InvalidOption("content", new.content[:50], f"1 to {LONGEST:,} characters")
    if new.memory_type not in MEMORY_TYPES:
        raise InvalidOption("memory_type", new.memory_type, f"one of: {', '.join(MEMORY_TYPES)}")
    if not 0 <= new.importance <= 1:
        raise InvalidOption("importance", new.importance, "a number from 0 to 1")
    as_json("metadata", new.metadata)
