"""Memories as rows: written, read and ended inside a transaction, each with its vector."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.json import decode, encode

from penstock.apps.agents.memory.language import content_hash
from penstock.apps.agents.memory.records import Memory, NewMemory
from penstock.apps.agents.vectors.store import MEMORIES, Entry, vectors_of

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

SHARED = "shared_memories"
"""Vectors of what everybody in a tenant may recall, beside those of whose it is."""


def insert(tx: Any, new: NewMemory, *, memory_id: str, tenant: str) -> Memory:
    """Write a memory; one with this id that is there stays as it is."""
    said = new.content.strip()
    memory = Memory(
        id=memory_id,
        tenant_id=tenant,
        workspace_id=new.workspace_id,
        user_id=new.user_id,
        memory_type=new.memory_type,
        content=said,
        embedding_id=memory_id,
        source_type=new.source_type,
        source_id=new.source_id,
        importance=float(new.importance),
        access_count=0,
        last_accessed_at=None,
        is_shared=new.is_shared,
        expires_at=new.expires_at,
        valid_from=tx.now if new.at is None else new.at,
        valid_to=None,
        metadata=new.metadata,
        created_at=tx.now,
        updated_at=tx.now,
    )
    row = msgspec.structs.asdict(memory)
    row |= {
        "content_hash": content_hash(said),
        "is_shared": int(new.is_shared),
        "metadata": text_of(new.metadata),
        "now": tx.now,
    }
    if tx.agents.run("add_memory", {name: row[name] for name in _WRITTEN}):
        return memory
    return load(tx, [memory_id], tenant)[0]


_WRITTEN = (
    *("id", "tenant_id", "workspace_id", "user_id", "memory_type", "content", "content_hash"),
    *("source_type", "source_id", "importance", "is_shared", "expires_at", "valid_from"),
    *("metadata", "now"),
)


def put(app: "Penstock", tx: Any, memories: Sequence[tuple[Memory, Any]]) -> None:
    """Keep the vectors of memories; what has nothing to embed is found by its words alone."""
    entries = {
        memory.id: Entry(
            id=memory.id,
            vector=vector,
            tenant_id=memory.tenant_id,
            user_id=memory.user_id,
            text=memory.content,
        )
        for memory, vector in memories
        if vector.any()
    }
    shared = [entries[m.id] for m, _ in memories if m.is_shared and m.id in entries]
    store = vectors_of(app)
    for namespace, some in ((MEMORIES, list(entries.values())), (SHARED, shared)):
        if some:
            store.put(tx, namespace, some)


def delete(app: "Penstock", tx: Any, memories: Sequence[Memory]) -> int:
    """Delete memories of one tenant with their vectors and edges; how many edges there were."""
    if not memories:
        return 0
    ids = [memory.id for memory in memories]
    among = {"ids": text_of(ids)}
    edges = int(tx.agents.run("delete_edges_of", among))
    tx.agents.run("delete_halved_of", among)
    tx.agents.run("delete_memories", among)
    store = vectors_of(app)
    for tenant in sorted({memory.tenant_id for memory in memories}):
        theirs = [memory for memory in memories if memory.tenant_id == tenant]
        store.remove(tx, MEMORIES, [memory.id for memory in theirs], tenant=tenant)
        shared = [memory.id for memory in theirs if memory.is_shared]
        if shared:
            store.remove(tx, SHARED, shared, tenant=tenant)
    return edges


def supersede(tx: Any, new: Memory, old: Memory, weight: float = 1.0) -> None:
    """End what held until now, and say by what it was superseded."""
    until = max(old.valid_from, new.valid_from)
    tx.agents.run("supersede_memory", {"id": old.id, "valid_to": until, "now": tx.now})
    add_edge(tx, new, old.id, "supersedes", weight)


def add_edge(tx: Any, source: Memory, target: str, edge_type: str, weight: float) -> None:
    """Write an edge from a memory to another; it has that one's owner."""
    tx.agents.run(
        "add_edge",
        {
            "source": source.id,
            "target": target,
            "edge_type": edge_type,
            "tenant_id": source.tenant_id,
            "user_id": source.user_id,
            "weight": weight,
            "now": tx.now,
        },
    )


def coverage(tx: Any, ids: Sequence[str]) -> dict[str, set[str]]:
    """The memories that hold and were made of one of these, and of which ones each was made."""
    found: dict[str, set[str]] = {}
    for target, source in tx.agents.rows("made_of", {"ids": text_of(list(ids))}):
        found.setdefault(str(target), set()).add(str(source))
    return found


def hold(tx: Any, tenant: str, users: Iterable[str | None]) -> None:
    """Have nobody else write memories of these users until this commit."""
    for user in sorted({user or "" for user in users}):
        tx.agents.row("hold_memories", {"whose": f"{tenant}/{user}"})


def load(tx: Any, ids: Sequence[str], tenant: str | None) -> list[Memory]:
    """Memories by their ids, in that order; those that are not there are left out."""
    if not ids:
        return []
    rows = tx.agents.rows("get_memories", {"ids": text_of(list(ids)), "tenant": tenant})
    found = {str(row[0]): memory_of(row) for row in rows}
    return [found[each] for each in dict.fromkeys(ids) if each in found]


def memory_of(row: Sequence[Any]) -> Memory:
    """A row of `part memory` as a record."""
    told = dict(zip(Memory.__struct_fields__, row, strict=True))
    told["is_shared"] = bool(told["is_shared"])
    told["metadata"] = decode(told["metadata"])
    return Memory(**told)


def text_of(value: Any) -> str:
    """A value as JSON."""
    return encode(value).decode()
