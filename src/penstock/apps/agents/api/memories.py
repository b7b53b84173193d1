"""Memories over HTTP: added, found by meaning, read, changed, merged, tied to each other."""

from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta, Struct

from penstock.apps.agents.access import actor_of, agents_of, ms, named_tenant
from penstock.apps.agents.memory.memories import Memories
from penstock.apps.agents.memory.records import (
    Added,
    Edge,
    Graph,
    Memory,
    MemoryFilter,
    NewMemory,
    Recalled,
)
from penstock.extension import Request
from penstock.model.documents import document, documented
from penstock.model.errors import InvalidOption

Limit = Annotated[int, Meta(ge=1, le=500)]
Before = Annotated[str | None, Meta(description="Go on after `next` of the page before.")]
Next = Annotated[str | None, Meta(description="Go on with `before=`; absent at the end.")]

MemoryDocument: Any = documented(Memory)
AddedDocument: Any = documented(Added)
RecalledDocument: Any = documented(Recalled)
EdgeDocument: Any = documented(Edge, "MemoryEdge")
GraphDocument: Any = documented(Graph, "MemoryGraph")


class MemoryList(Struct, kw_only=True):
    """A page of memories, the latest first."""

    memories: list[MemoryDocument]  # pyright: ignore[reportInvalidTypeForm]
    next: Next


class WantedMemories(Struct, kw_only=True):
    """Which memories are asked for."""

    tenant: str | None = None
    user: str | None = None
    workspace: str | None = None
    type: Annotated[str | None, Meta(description="episodic, semantic or procedural.")] = None
    current: Annotated[bool | None, Meta(description="Whether they still hold.")] = None
    before: Before = None
    limit: Limit = 50


class RecalledList(Struct, kw_only=True):
    """What is remembered about something, the best first."""

    found: list[RecalledDocument]  # pyright: ignore[reportInvalidTypeForm]


class WantedRecall(Struct, kw_only=True):
    """What is to be remembered."""

    text: Annotated[str, Meta(max_length=2_000, examples=["Where does Ada live?"])]
    tenant: str | None = None
    user: Annotated[
        str | None, Meta(description="What is remembered of this user, of nobody, or shared.")
    ] = None
    type: str | None = None
    at: Annotated[datetime | None, Meta(description="What held at this time.")] = None
    history: Annotated[bool | None, Meta(description="Also what was superseded.")] = None
    limit: Annotated[int, Meta(ge=1, le=100)] = 10


class MemoryToAdd(Struct, kw_only=True, forbid_unknown_fields=True):
    """Something to remember, unless a known memory says it already."""

    content: Annotated[str, Meta(examples=["Ada lives in Turin."])]
    tenant: str | None = None
    user_id: str | None = None
    workspace_id: str | None = None
    memory_type: str = "episodic"
    importance: float = 0.5
    source_type: str = "agent"
    source_id: str | None = None
    is_shared: bool = False
    expires_at: datetime | None = None
    at: datetime | None = None
    metadata: dict[str, Any] = {}


class MemoryChange(Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is changed of a memory; what is not said stays."""

    content: str | None = None
    memory_type: str | None = None
    importance: float | None = None
    is_shared: bool | None = None
    expires_at: datetime | None = None
    metadata: dict[str, Any] | None = None


class Merging(Struct, kw_only=True, forbid_unknown_fields=True):
    """Which memories become one, and what it says; without `content`, it is made of theirs."""

    ids: Annotated[list[str], Meta(min_length=2, max_length=100)]
    content: str | None = None


class NewEdge(Struct, kw_only=True, forbid_unknown_fields=True):
    """How one memory belongs to another."""

    source: str
    target: str
    edge_type: str = "related_to"
    weight: float = 1.0


class NamedEdge(Struct, kw_only=True):
    """An edge, by its ends and its type."""

    source: str
    target: str
    edge_type: str


class WantedGraph(Struct, kw_only=True):
    """How far a memory's surroundings are asked for."""

    depth: Annotated[int, Meta(ge=1, le=5)] = 1
    limit: Limit = 100


class Removed(Struct, kw_only=True):
    """Whether there was something to remove."""

    removed: bool


async def list_memories(request: Request) -> dict[str, Any]:
    """List memories, the latest first."""
    wanted: WantedMemories = request.query
    rows = await _memories(request).list(
        MemoryFilter(
            tenant=named_tenant(request, wanted.tenant),
            user=wanted.user,
            workspace=wanted.workspace,
            memory_type=wanted.type,
            current=wanted.current,
            before=wanted.before,
            limit=wanted.limit,
        )
    )
    return {
        "memories": document(rows),
        "next": rows[-1].id if len(rows) == wanted.limit else None,
    }


async def add_memory(request: Request) -> Any:
    """Remember something; the answer says whether it was stored, or what says it already."""
    told: MemoryToAdd = request.body
    new = NewMemory(
        content=told.content,
        user_id=told.user_id,
        workspace_id=told.workspace_id,
        memory_type=told.memory_type,
        importance=told.importance,
        source_type=told.source_type,
        source_id=told.source_id,
        is_shared=told.is_shared,
        expires_at=ms(told.expires_at),
        at=ms(told.at),
        metadata=told.metadata,
    )
    tenant = named_tenant(request, told.tenant) or ""
    [added] = await _memories(request).add_many([new], tenant=tenant)
    return document(added)


async def search_memories(request: Request) -> dict[str, Any]:
    """Find what is remembered about something, by meaning; what is found counts as recalled."""
    wanted: WantedRecall = request.query
    found = await _memories(request).search(
        wanted.text,
        tenant=named_tenant(request, wanted.tenant) or "",
        user=wanted.user,
        memory_type=wanted.type,
        at=ms(wanted.at),
        history=wanted.history,
        k=wanted.limit,
    )
    return {"found": document(found)}


async def get_memory(request: Request) -> Any:
    """One memory."""
    return document(await _memories(request).get(request.path["memory_id"]))


async def change_memory(request: Request) -> Any:
    """Change a memory; what it then says is embedded anew."""
    change: MemoryChange = request.body
    if change == MemoryChange():
        raise InvalidOption("change", "none", "a content, a type, an importance or another field")
    changed = await _memories(request).edit(
        request.path["memory_id"],
        content=change.content,
        memory_type=change.memory_type,
        importance=change.importance,
        is_shared=change.is_shared,
        expires_at=ms(change.expires_at),
        metadata=change.metadata,
    )
    return document(changed)


async def delete_memory(request: Request) -> dict[str, bool]:
    """Delete a memory with its vector and its edges."""
    await _memories(request).delete(request.path["memory_id"])
    return {"removed": True}


async def merge_memories(request: Request) -> Any:
    """Make one memory of several, which it supersedes."""
    merging: Merging = request.body
    return document(await _memories(request).merge(merging.ids, content=merging.content))


async def read_memory_graph(request: Request) -> Any:
    """One memory and those within so many edges of it."""
    wanted: WantedGraph = request.query
    graph = await _memories(request).graph(
        [request.path["memory_id"]], depth=wanted.depth, limit=wanted.limit
    )
    return document(graph)


async def link_memories(request: Request) -> Any:
    """Say how one memory belongs to another."""
    edge: NewEdge = request.body
    linked = await _memories(request).link(edge.source, edge.target, edge.edge_type, edge.weight)
    return document(linked)


async def unlink_memories(request: Request) -> dict[str, bool]:
    """Remove an edge."""
    edge: NamedEdge = request.query
    removed = await _memories(request).unlink(edge.source, edge.target, edge.edge_type)
    return {"removed": removed}


def _memories(request: Request) -> Memories:
    return agents_of(request).memories.by(actor_of(request))
