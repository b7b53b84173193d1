"""`penstock agents memories …`: what agents remember, and what was learned, at the terminal."""

from typing import TYPE_CHECKING, Annotated, Any

from penstock.apps.agents.access import agents_in
from penstock.apps.agents.learning.records import Pattern, Trajectory
from penstock.apps.agents.memory.memories import Memories
from penstock.apps.agents.memory.records import Memory, MemoryFilter
from penstock.apps.agents.sessions.records import AgentSession, SessionFilter
from penstock.extension import Shown
from penstock.model.clock import from_iso, iso
from penstock.model.documents import document
from penstock.model.errors import InvalidOption
from penstock.model.wording import ago, brief, counted
from penstock.operate.actor import Operator

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

MemoryId = Annotated[str, "The memory, as `agents memories` names it."]
Tenant = Annotated[str | None, "Only those of this tenant."]
Within = Annotated[str, "--tenant", "In this tenant."]
User = Annotated[str | None, "Only those of this user."]
Limit = Annotated[int, "At most so many."]


async def memories(
    app: "Penstock",
    tenant: Tenant = None,
    user: User = None,
    kind: Annotated[str | None, "--type", "episodic, semantic or procedural."] = None,
    superseded: Annotated[bool, "Those that hold no longer."] = False,
    current: Annotated[bool, "Those that still hold."] = False,
    limit: Limit = 30,
) -> Shown:
    """List memories, the latest first."""
    if superseded and current:
        raise InvalidOption("memories", "both", "one of --superseded and --current")
    rows = await agents_in(app).memories.list(
        MemoryFilter(
            tenant=tenant,
            user=user,
            memory_type=kind,
            current=True if current else False if superseded else None,
            limit=limit,
        )
    )
    now = app.store.clock.now()
    people: Any = [_memory_row(row, now) for row in rows] or "No memory matches."
    return Shown(people, document(rows))


async def search(
    app: "Penstock",
    text: Annotated[str, "What it is about, in any words."],
    tenant: Within = "",
    user: Annotated[str | None, "What is remembered of this user, or shared."] = None,
    at: Annotated[str | None, "What held at this time: 2026-11-15T03:28Z."] = None,
    history: Annotated[bool, "Also what was superseded."] = False,
    limit: Limit = 10,
) -> Shown:
    """Find memories by meaning, the best first; what is found counts as recalled."""
    found = await agents_in(app).memories.search(
        text,
        tenant=tenant,
        user=user,
        at=None if at is None else from_iso(at),
        history=history or None,
        k=limit,
    )
    now = app.store.clock.now()
    people: Any = [{"fits": f"{each.score:.2f}", **_memory_row(each.memory, now)} for each in found]
    return Shown(people or "Nothing like that is remembered.", document(found))


async def memory(app: "Penstock", memory_id: MemoryId) -> Shown:
    """Show a memory and what it is tied to."""
    graph = await agents_in(app).memories.graph([memory_id], depth=1)
    known = {each.id: each for each in graph.memories}
    found = known[memory_id]
    facts = {
        "memory": found.content,
        "type": found.memory_type,
        "of": ", ".join(filter(None, (found.tenant_id, found.user_id))) or None,
        "holds": f"since {iso(found.valid_from)}"
        + ("" if found.valid_to is None else f" until {iso(found.valid_to)}"),
        "importance": f"{found.importance:.2f}, recalled {found.access_count:,} times",
        "source": " ".join(filter(None, (found.source_type, found.source_id))),
    }
    edges = [
        {
            "from": brief(known[edge.source].content) if edge.source in known else edge.source,
            "edge": edge.edge_type,
            "to": brief(known[edge.target].content) if edge.target in known else edge.target,
        }
        for edge in graph.edges
    ]
    people = {name: value for name, value in facts.items() if value}
    told = document(found) | {"edges": document(graph.edges)}
    return Shown((people, edges) if edges else people, told)


async def remember(
    app: "Penstock",
    actor: str,
    content: Annotated[str, "What to remember."],
    tenant: Within = "",
    user: Annotated[str | None, "Of this user; otherwise of the whole tenant."] = None,
    kind: Annotated[str, "--type", "episodic, semantic or procedural."] = "episodic",
    importance: Annotated[float, "From 0 to 1."] = 0.5,
) -> Shown:
    """Remember something, unless a known memory says it already."""
    added = await _memories(app, actor).add(
        content, tenant=tenant, user=user, memory_type=kind, importance=importance
    )
    words = "Remembered" if added.stored else "Known already"
    return Shown(f"{words}: {added.memory.id}", document(added))


async def edit(
    app: "Penstock",
    actor: str,
    memory_id: MemoryId,
    content: Annotated[str | None, "What it is to say."] = None,
    kind: Annotated[str | None, "--type", "episodic, semantic or procedural."] = None,
    importance: Annotated[float | None, "From 0 to 1."] = None,
) -> Shown:
    """Change a memory; what it then says is embedded anew."""
    if content is None and kind is None and importance is None:
        raise InvalidOption("change", "none", "--content, --type or --importance")
    changed = await _memories(app, actor).edit(
        memory_id, content=content, memory_type=kind, importance=importance
    )
    return Shown(f"Saved: {brief(changed.content)}", document(changed))


async def forget(app: "Penstock", actor: str, memory_id: MemoryId) -> Shown:
    """Delete a memory with its vector and its edges."""
    await _memories(app, actor).delete(memory_id)
    return Shown("The memory is deleted.", {"deleted": memory_id})


async def merge(
    app: "Penstock",
    *ids: Annotated[str, "The memories, at least two."],
    actor: str,
    content: Annotated[str | None, "What it says; otherwise made of what they say."] = None,
) -> Shown:
    """Make one memory of several, which it supersedes."""
    merged = await _memories(app, actor).merge(ids, content=content)
    return Shown(f"{merged.id}: {brief(merged.content)}", document(merged))


async def link(
    app: "Penstock",
    actor: str,
    source: MemoryId,
    other: MemoryId,
    kind: Annotated[str, "--type", "related_to, caused_by, part_of or supersedes."] = "related_to",
    remove: Annotated[bool, "Remove the edge instead."] = False,
) -> Shown:
    """Say how one memory belongs to another, or that it no longer does."""
    own = _memories(app, actor)
    if remove:
        removed = await own.unlink(source, other, kind)
        told = "The edge is removed." if removed else "There was no such edge."
        return Shown(told, {"removed": removed})
    edge = await own.link(source, other, kind)
    return Shown("The two are tied.", document(edge))


async def sessions(
    app: "Penstock",
    tenant: Tenant = None,
    user: User = None,
    status: Annotated[str | None, "active, closed, expired or archived."] = None,
    limit: Limit = 30,
) -> Shown:
    """List sessions of agents, those opened last first."""
    rows = await agents_in(app).sessions.list(
        SessionFilter(tenant=tenant, user=user, status=status, limit=limit)
    )
    now = app.store.clock.now()
    people: Any = [_session_row(row, now) for row in rows] or "No session matches."
    return Shown(people, document(rows))


async def session(
    app: "Penstock",
    session_id: Annotated[str, "The session, as `agents sessions` names it."],
    limit: Limit = 200,
) -> Shown:
    """Show a session with its turns, and the tasks that were seen in it."""
    found = await agents_in(app).sessions.get(session_id)
    turns = await agents_in(app).sessions.turns(session_id, limit=limit)
    tasks = await agents_in(app).learning.trajectories(session=session_id)
    said = [
        {"n": turn.n, "by": turn.role, "skill": turn.skill_id or "", "said": brief(turn.content)}
        for turn in turns
    ]
    now = app.store.clock.now()
    told = document(found) | {"said": document(turns), "tasks": document(tasks)}
    parts: list[Any] = [_session_row(found, now), said or "Nothing was said yet."]
    parts += [[_task_row(task, now) for task in tasks]] if tasks else []
    return Shown(tuple(parts), told)


async def trajectories(
    app: "Penstock",
    tenant: Tenant = None,
    verdict: Annotated[str | None, "success, failure, partial or unknown."] = None,
    limit: Limit = 30,
) -> Shown:
    """List tasks that were seen in sessions, the latest first, with how they ended."""
    rows = await agents_in(app).learning.trajectories(tenant=tenant, verdict=verdict, limit=limit)
    now = app.store.clock.now()
    people: Any = [_task_row(row, now) for row in rows] or "No task matches."
    return Shown(people, document(rows))


async def patterns(
    app: "Penstock",
    tenant: Tenant = None,
    active: Annotated[bool, "Only those that are used."] = False,
    limit: Limit = 30,
) -> Shown:
    """List patterns, the latest first, with how they fare."""
    rows = await agents_in(app).learning.patterns(
        tenant=tenant, active=True if active else None, limit=limit
    )
    people: Any = [_pattern_row(row) for row in rows] or "No pattern was found yet."
    return Shown(people, document(rows))


async def pattern(
    app: "Penstock",
    actor: str,
    pattern_id: Annotated[str, "The pattern, as `agents patterns` names it."],
    on: Annotated[bool, "--on", "Switch it on."] = False,
    off: Annotated[bool, "--off", "Switch it off; it stays off."] = False,
) -> Shown:
    """Show a pattern, or switch it on or off."""
    if on and off:
        raise InvalidOption("pattern", "both", "one of --on and --off")
    learning = agents_in(app).learning
    found = await learning.pattern(pattern_id)
    if on or off:
        action = "pattern.activate" if on else "pattern.deactivate"
        async with Operator(app, actor).actor.doing(action, f"pattern:{pattern_id}"):
            found = await learning.activate(pattern_id, active=on)
    return Shown(_pattern_row(found), document(found))


async def classifiers(app: "Penstock", tenant: Tenant = None, limit: Limit = 10) -> Shown:
    """List classifiers with the figures of their training, the latest first."""
    rows = await agents_in(app).learning.classifiers(tenant=tenant, limit=limit)
    now = app.store.clock.now()
    people: Any = [
        {
            "classifier": row.id,
            "tenant": row.tenant_id,
            "in use": "yes" if row.is_active else "",
            "tasks": row.figures.get("training", {}).get("trajectories", 0),
            "right": _share(row.figures.get("training", {}).get("accuracy")),
            "before it": _share(row.figures.get("training", {}).get("previousAccuracy")),
            "trained": ago(row.created_at, now),
        }
        for row in rows
    ]
    return Shown(people or "None was trained yet.", document(rows))


def _memories(app: "Penstock", actor: str) -> Memories:
    return agents_in(app).memories.by(Operator(app, actor).actor)


def _memory_row(row: Memory, now: int) -> dict[str, Any]:
    return {
        "memory": row.id,
        "type": row.memory_type if row.valid_to is None else f"{row.memory_type}, superseded",
        "of": "/".join(filter(None, (row.tenant_id, row.user_id))),
        "importance": f"{row.importance:.2f}",
        "since": ago(row.valid_from, now),
        "says": brief(row.content),
    }


def _session_row(row: AgentSession, now: int) -> dict[str, Any]:
    return {
        "session": row.id,
        "state": row.status,
        "of": "/".join(filter(None, (row.tenant_id, row.user_id))),
        "turns": row.turns,
        "started": ago(row.started_at, now),
        "active": ago(row.last_active_at, now),
    }


def _task_row(row: Trajectory, now: int) -> dict[str, Any]:
    return {
        "task": row.id,
        "verdict": row.verdict,
        "skills": ", ".join(row.skill_ids),
        "ended": ago(row.ended_at, now),
        "about": brief(row.content)[:80],
        "reason": row.verdict_reason,
    }


def _pattern_row(row: Pattern) -> dict[str, Any]:
    return {
        "pattern": row.id,
        "kind": row.pattern_type,
        "used": "yes" if row.is_active else "no",
        "confidence": _share(row.confidence),
        "followed": f"{row.usage_count:,}, helped {row.success_count:,}",
        "seen in": counted(len(row.exemplar_trajectory_ids), "task"),
        "says": brief(row.content),
    }


def _share(fraction: float | None) -> str:
    return "–" if fraction is None else f"{fraction:.0%}"
