"""Memories in the dashboard: searched by meaning, listed, drawn, edited, merged and deleted."""

from typing import Any

from penstock.apps.agents.access import actor_of, agents_of, given, named_tenant, number
from penstock.apps.agents.memory.memories import Memories, MemoryNotFound
from penstock.apps.agents.memory.records import (
    EDGE_TYPES,
    MEMORY_TYPES,
    Graph,
    Memory,
    MemoryFilter,
    Recalled,
)
from penstock.apps.agents.pages.graph import COLOURS, EDGES, legend, narrow, wide
from penstock.extension import Request
from penstock.model.errors import InvalidOption

SHOWN = 50
FOUND = 20
DRAWN = 40
"""A picture of more memories is none that anybody reads."""
SEARCHED = 20
"""Who is bound to no tenant and names none searches those of so many."""
STATES = {"": None, "current": True, "superseded": False}
PICKED = "pick-"


async def show_memories(request: Request) -> dict[str, Any]:
    """List memories, the latest first, or what a search found; as a list or as a picture."""
    told = given(request, "text", "tenant", "user", "type", "state", "view", "before")
    tenant = named_tenant(request, told["tenant"] or None)
    memories = _memories(request)
    where = MemoryFilter(
        tenant=tenant,
        user=told["user"] or None,
        memory_type=told["type"] or None,
        current=STATES.get(told["state"]),
        before=told["before"] or None,
        limit=SHOWN,
    )
    tenants = await _tenants(request)
    scores: dict[str, Recalled] = {}
    if told["text"]:
        chosen = [tenant] if tenant is not None else tenants[:SEARCHED]
        found = await _search(memories, told["text"], chosen, where)
        rows = [each.memory for each in found]
        scores = {each.memory.id: each for each in found}
    else:
        rows = await memories.list(where)
    before = told.pop("before")
    return {
        "rows": rows,
        "scores": scores,
        "given": told,
        "before": before,
        "following": rows[-1].id if len(rows) == SHOWN and not scores else None,
        "counts": await memories.counts(tenant),
        "tenants": tenants,
        "bound": request.tenant is not None,
        "types": MEMORY_TYPES,
        "colours": COLOURS,
        **(await _drawn(memories, rows) if told["view"] == "graph" else {"pictures": None}),
    }


async def show_memory(request: Request) -> dict[str, Any]:
    """Show one memory, what is known of it, and what it is tied to."""
    memories = _memories(request)
    memory = await memories.get(request.path["memory_id"])
    graph = await memories.graph([memory.id], depth=2, limit=DRAWN)
    near = {each.id: each for each in graph.memories}
    ties = [edge for edge in graph.edges if memory.id in (edge.source, edge.target)]
    return {
        "memory": memory,
        "ties": ties,
        "near": near,
        "edge_words": EDGES,
        "edge_types": EDGE_TYPES,
        "types": MEMORY_TYPES,
        "colours": COLOURS,
        **_pictures(graph, memory.id),
    }


async def show_delete(request: Request) -> dict[str, Any]:
    """Show what goes with a memory, before it goes; and afterwards that it is gone."""
    memories = _memories(request)
    try:
        memory = await memories.get(request.path["memory_id"])
        ties = len(await memories.edges(memory.id))
    except MemoryNotFound:
        return {"memory": None, "ties": 0}
    return {"memory": memory, "ties": ties}


async def delete(request: Request) -> str:
    """Forget the memory of the page."""
    await _memories(request).delete(request.path["memory_id"])
    return "The memory is deleted."


async def change(request: Request) -> str:
    """Edit, delete, merge, tie or untie memories."""
    form, memories = request.form, _memories(request)
    memory_id = form.get("memory", "")
    match form.get("action", ""):
        case "edit":
            changed = await memories.edit(
                memory_id,
                content=form.get("content") or None,
                memory_type=form.get("type") or None,
                importance=number(form, "importance"),
            )
            return f"Saved: {_called(changed)}"
        case "delete":
            await memories.delete(memory_id)
            return "The memory is deleted."
        case "merge":
            picked = [name.removeprefix(PICKED) for name in form if name.startswith(PICKED)]
            merged = await memories.merge(picked, content=form.get("content") or None)
            return f"{len(picked):,} memories became one: {_called(merged)}"
        case "link":
            weight = number(form, "weight")
            await memories.link(
                memory_id,
                form.get("target", ""),
                form.get("edge_type", ""),
                1.0 if weight is None else weight,
            )
            return "The two are tied."
        case "unlink":
            await memories.unlink(memory_id, form.get("target", ""), form.get("edge_type", ""))
            return "The two are no longer tied."
        case other:
            raise InvalidOption("action", other, "one of: edit, delete, merge, link, unlink")


async def _search(
    memories: Memories, text: str, tenants: list[str], where: MemoryFilter
) -> list[Recalled]:
    """Search the memories of some tenants, the best first; a look counts as no access."""
    found: list[Recalled] = []
    for tenant in tenants:
        found += await memories.search(
            text,
            tenant=tenant,
            user=where.user,
            memory_type=where.memory_type,
            history=None if where.current is not False else True,
            k=FOUND,
            count=False,
        )
    kept = [each for each in found if where.current is None or _holds(each) == where.current]
    return sorted(kept, key=lambda each: -each.score)[:FOUND]


def _holds(found: Recalled) -> bool:
    return found.memory.valid_to is None


async def _drawn(memories: Memories, rows: list[Memory]) -> dict[str, Any]:
    """Draw those of some memories that are tied to others, with these."""
    if not rows:
        return {"pictures": None}
    graph = await memories.graph([memory.id for memory in rows], depth=1, limit=2 * DRAWN)
    return _pictures(graph)


def _pictures(graph: Graph, here: str = "") -> dict[str, Any]:
    tied = {end for edge in graph.edges for end in (edge.source, edge.target)}
    kept = [each for each in graph.memories if each.id in tied or each.id == here]
    drawn = Graph(_foremost(kept, here), graph.edges)
    if len(drawn.memories) < 2:
        return {"pictures": None, "legend": [], "more": False}
    return {
        "pictures": {"wide": wide(drawn, here), "slim": narrow(drawn, here)},
        "legend": legend(drawn),
        "more": len(kept) > len(drawn.memories),
    }


def _foremost(memories: list[Memory], here: str) -> list[Memory]:
    return sorted(memories, key=lambda each: (each.id != here, -each.valid_from))[:DRAWN]


async def _tenants(request: Request) -> list[str]:
    if request.tenant is not None:
        return [request.tenant]
    rows = await request.app.read(lambda tx: tx.agents.rows("memory_tenants", ()))
    return [str(tenant) for (tenant,) in rows]


def _memories(request: Request) -> Memories:
    return agents_of(request).memories.by(actor_of(request))


def _called(memory: Memory) -> str:
    words = " ".join(memory.content.split())
    return words if len(words) <= 80 else f"{words[:79]}…"
