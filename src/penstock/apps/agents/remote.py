"""`remote.agents`: what agents of another machine remember and learn, through its server."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack
from urllib.parse import quote, urlencode

from msgspec import Struct, to_builtins
from msgspec.json import encode
from msgspec.structs import asdict

from penstock.apps.agents.learning.records import (
    ClassifierRow,
    Match,
    Pattern,
    Prediction,
    Trajectory,
)
from penstock.apps.agents.maintenance.deletion import Certificate, Deletion
from penstock.apps.agents.maintenance.exports import Export
from penstock.apps.agents.maintenance.quotas import Quota, Usage
from penstock.apps.agents.memory.records import (
    Added,
    Edge,
    Graph,
    Memory,
    MemoryFilter,
    NewMemory,
    Recalled,
)
from penstock.apps.agents.sessions.records import AgentSession, NewTurn, SessionFilter, Turn
from penstock.apps.agents.webhooks.records import Delivery, NewWebhook, Statistics, Webhook
from penstock.model.clock import iso
from penstock.model.documents import is_time, record

if TYPE_CHECKING:
    from penstock.app.options import AwaitingFields
    from penstock.remote.client import Remote

EVERY_MEMORY = MemoryFilter()
EVERY_SESSION = SessionFilter()

# Within the classes, `list` is a method.
Memories = list[Memory]
Found = list[Recalled]
Edges = list[Edge]
Sessions = list[AgentSession]
Turns = list[Turn]
Webhooks = list[Webhook]
Deliveries = list[Delivery]


class RemoteAgents:
    """What `app.agents` is, for a program elsewhere."""

    def __init__(self, remote: "Remote") -> None:
        self._remote = remote
        self.memories = RemoteMemories(remote)
        self.sessions = RemoteSessions(remote)
        self.learning = RemoteLearning(remote)
        self.webhooks = RemoteWebhooks(remote)
        self.quotas = RemoteQuotas(remote)
        self.exports = RemoteExports(remote)
        self.deletions = RemoteDeletions(remote)

    async def enqueue(
        self, name: str, data: Struct | Mapping[str, Any], **options: "Unpack[AwaitingFields]"
    ) -> Any:
        """Enqueue a job by the name of its type; a handle on it."""
        return await self._remote.enqueue_payload(name, encode(data).decode(), **options)


class RemoteMemories:
    """`remote.agents.memories`."""

    def __init__(self, remote: "Remote") -> None:
        self._remote = remote

    async def add(self, content: str, *, tenant: str = "", user: str | None = None) -> Added:
        """Remember something, unless a known memory says it already."""
        new = NewMemory(content=content, user_id=user)
        return (await self.add_many([new], tenant=tenant))[0]

    async def add_many(self, memories: Sequence[NewMemory], *, tenant: str = "") -> list[Added]:
        """Remember several things, one after the other."""
        added = []
        for new in memories:
            told = _timed(asdict(new)) | ({"tenant": tenant} if tenant else {})
            answer = await self._remote.ask("POST", "agents/memories", told)
            added.append(record(Added, answer))
        return added

    async def get(self, memory_id: str) -> Memory:
        """One of them by its id."""
        return record(Memory, await self._remote.ask("GET", _path("memories", memory_id)))

    async def list(self, where: MemoryFilter = EVERY_MEMORY) -> Memories:
        """Memories, the latest first."""
        given = asdict(where)
        asked = _asked(type=given.pop("memory_type"), **given)
        answer = await self._remote.ask("GET", f"agents/memories?{asked}")
        return [record(Memory, each) for each in answer["memories"]]

    async def search(
        self,
        text: str,
        *,
        tenant: str = "",
        user: str | None = None,
        k: int = 10,
        memory_type: str | None = None,
        at: int | None = None,
        history: bool | None = None,
    ) -> Found:
        """What is remembered about something, the best first; those found count as accessed."""
        asked = _asked(
            text=text,
            tenant=tenant or None,
            user=user,
            limit=k,
            type=memory_type,
            at=at,
            history=history,
        )
        answer = await self._remote.ask("GET", f"agents/search?{asked}")
        return [record(Recalled, each) for each in answer["found"]]

    async def edit(self, memory_id: str, **changes: Any) -> Memory:
        """Change a memory: `content`, `memory_type`, `importance`, `is_shared`, `metadata`."""
        path = _path("memories", memory_id)
        return record(Memory, await self._remote.ask("PATCH", path, _timed(changes)))

    async def delete(self, memory_id: str) -> None:
        """Forget a memory, with its vector and its edges."""
        await self._remote.ask("DELETE", _path("memories", memory_id))

    async def merge(self, ids: Sequence[str], *, content: str | None = None) -> Memory:
        """Make one memory of several, which it supersedes."""
        told = {"ids": [*ids], "content": content}
        return record(Memory, await self._remote.ask("POST", "agents/memories/merge", told))

    async def link(
        self, source: str, target: str, edge_type: str = "related_to", weight: float = 1.0
    ) -> Edge:
        """Say how one memory belongs to another."""
        told = {"source": source, "target": target, "edge_type": edge_type, "weight": weight}
        return record(Edge, await self._remote.ask("POST", "agents/edges", told))

    async def unlink(self, source: str, target: str, edge_type: str) -> bool:
        """Remove an edge; tell whether there was one."""
        asked = _asked(source=source, target=target, edge_type=edge_type)
        return bool((await self._remote.ask("DELETE", f"agents/edges?{asked}"))["removed"])

    async def edges(self, memory_id: str, limit: int = 100) -> Edges:
        """How a memory belongs to others."""
        return (await self.graph([memory_id], limit=limit)).edges

    async def graph(self, ids: Sequence[str], *, depth: int = 1, limit: int = 200) -> Graph:
        """Memories and those within so many edges of them."""
        memories: dict[str, Memory] = {}
        edges: dict[tuple[str, str, str], Edge] = {}
        for each in ids:
            path = f"{_path('memories', each)}/graph?{_asked(depth=depth, limit=limit)}"
            found = record(Graph, await self._remote.ask("GET", path))
            memories |= {memory.id: memory for memory in found.memories}
            edges |= {(edge.source, edge.target, edge.edge_type): edge for edge in found.edges}
        return Graph([*memories.values()], [*edges.values()])


class RemoteSessions:
    """`remote.agents.sessions`."""

    def __init__(self, remote: "Remote") -> None:
        self._remote = remote

    async def open(
        self,
        *,
        tenant: str = "",
        workspace: str | None = None,
        user: str | None = None,
        expires_in: float | None = None,
        metadata: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> AgentSession:
        """Open a session; one that is there already under this id is left as it is."""
        told = {
            "id": session_id,
            "tenant": tenant or None,
            "workspace_id": workspace,
            "user_id": user,
            "expires_in": expires_in,
            "metadata": metadata or {},
        }
        return record(AgentSession, await self._remote.ask("POST", "agents/sessions", told))

    async def add(self, session_id: str, *turns: NewTurn) -> AgentSession:
        """Add turns to an active session, all or none."""
        told = [_timed(asdict(turn)) for turn in turns]
        path = f"{_path('sessions', session_id)}/turns"
        return record(AgentSession, await self._remote.ask("POST", path, told))

    async def close(self, session_id: str) -> AgentSession:
        """Close a session, and have it looked through for what is to be learned."""
        path = f"{_path('sessions', session_id)}/close"
        return record(AgentSession, await self._remote.ask("POST", path))

    async def get(self, session_id: str) -> AgentSession:
        """Find a session by its id."""
        return record(AgentSession, await self._remote.ask("GET", _path("sessions", session_id)))

    async def list(self, where: SessionFilter = EVERY_SESSION) -> Sessions:
        """List sessions, those that were opened last first."""
        answer = await self._remote.ask("GET", f"agents/sessions?{_asked(**asdict(where))}")
        return [record(AgentSession, each) for each in answer["sessions"]]

    async def turns(self, session_id: str, *, after: int = 0, limit: int = 100) -> Turns:
        """Read turns of a session in their order."""
        path = f"{_path('sessions', session_id)}/turns?{_asked(after=after, limit=limit)}"
        answer = await self._remote.ask("GET", path)
        return [record(Turn, each) for each in answer["turns"]]

    async def restore(self, session_ids: Sequence[str]) -> Sessions:
        """Bring archived sessions back, as they were."""
        paths = [f"{_path('sessions', each)}/restore" for each in session_ids]
        return [record(AgentSession, await self._remote.ask("POST", path)) for path in paths]


class RemoteLearning:
    """`remote.agents.learning`."""

    def __init__(self, remote: "Remote") -> None:
        self._remote = remote

    async def match(
        self, task: str, *, tenant: str, skills: Sequence[str] = (), k: int = 5, use: bool = True
    ) -> list[Match]:
        """Return the active patterns that fit a task, the best first."""
        told = _task(task, tenant, skills) | {"limit": k, "use": use}
        answer = await self._remote.ask("POST", "agents/patterns/match", told)
        return [record(Match, each) for each in answer["matches"]]

    async def predict(
        self, task: str, *, tenant: str, skills: Sequence[str] = ()
    ) -> Prediction | None:
        """Say how a task is likely to end; None before a classifier has been trained."""
        told = _task(task, tenant, skills)
        found = (await self._remote.ask("POST", "agents/predict", told))["prediction"]
        return None if found is None else record(Prediction, found)

    async def trajectories(self, **asked: Any) -> list[Trajectory]:
        """List trajectories: `tenant`, `verdict`, `session`, `before`, `limit`."""
        answer = await self._remote.ask("GET", f"agents/trajectories?{_asked(**asked)}")
        return [record(Trajectory, each) for each in answer["trajectories"]]

    async def trajectory(self, trajectory_id: str) -> Trajectory:
        """Find a trajectory by its id."""
        path = _path("trajectories", trajectory_id)
        return record(Trajectory, await self._remote.ask("GET", path))

    async def patterns(
        self,
        *,
        tenant: str | None = None,
        active: bool | None = None,
        pattern_type: str | None = None,
        before: str | None = None,
        limit: int = 100,
    ) -> list[Pattern]:
        """List patterns, the latest first."""
        asked = _asked(tenant=tenant, active=active, type=pattern_type, before=before, limit=limit)
        answer = await self._remote.ask("GET", f"agents/patterns?{asked}")
        return [record(Pattern, each) for each in answer["patterns"]]

    async def pattern(self, pattern_id: str) -> Pattern:
        """Find a pattern by its id."""
        return record(Pattern, await self._remote.ask("GET", _path("patterns", pattern_id)))

    async def activate(self, pattern_id: str, *, active: bool = True) -> Pattern:
        """Switch a pattern on, or off."""
        path = f"{_path('patterns', pattern_id)}/{'activate' if active else 'deactivate'}"
        return record(Pattern, await self._remote.ask("POST", path))

    async def classifiers(
        self, *, tenant: str | None = None, limit: int = 100
    ) -> list[ClassifierRow]:
        """List the classifiers that were trained, the latest first."""
        asked = _asked(tenant=tenant, limit=limit)
        answer = await self._remote.ask("GET", f"agents/classifiers?{asked}")
        return [record(ClassifierRow, each) for each in answer["classifiers"]]


class RemoteWebhooks:
    """`remote.agents.webhooks`."""

    def __init__(self, remote: "Remote") -> None:
        self._remote = remote

    async def add(
        self, url: str, *, topics: Iterable[str] = (), tenant: str = "", **options: Any
    ) -> NewWebhook:
        """Add an endpoint: `owner`, `secret`, `headers`, `ordered`, `max_failures`, `metadata`."""
        told = {"url": url, "topics": [*topics], "tenant": tenant or None, **options}
        return record(NewWebhook, await self._remote.ask("POST", "agents/webhooks", told))

    async def get(self, webhook_id: str) -> Webhook:
        """Return a webhook."""
        return record(Webhook, await self._remote.ask("GET", _path("webhooks", webhook_id)))

    async def list(
        self, *, tenant: str | None = None, after: str = "", limit: int = 100
    ) -> Webhooks:
        """Return webhooks by id, those of one tenant or all."""
        asked = _asked(tenant=tenant, after=after or None, limit=limit)
        answer = await self._remote.ask("GET", f"agents/webhooks?{asked}")
        return [record(Webhook, each) for each in answer["webhooks"]]

    async def change(self, webhook_id: str, **changes: Any) -> Webhook:
        """Change what is named: `url`, `topics`, `owner`, `headers`, `ordered`, `max_failures`."""
        path = _path("webhooks", webhook_id)
        return record(Webhook, await self._remote.ask("PATCH", path, changes))

    async def delete(self, webhook_id: str) -> None:
        """Delete it with its subscriptions and its deliveries."""
        await self._remote.ask("DELETE", _path("webhooks", webhook_id))

    async def rotate(self, webhook_id: str, *, overlap: float = 86_400.0) -> str:
        """Replace its secret; for `overlap` seconds requests are signed with both."""
        path = f"{_path('webhooks', webhook_id)}/rotate"
        return str((await self._remote.ask("POST", path, {"overlap": overlap}))["secret"])

    async def enable(self, webhook_id: str) -> Webhook:
        """Have it told again."""
        path = f"{_path('webhooks', webhook_id)}/enable"
        return record(Webhook, await self._remote.ask("POST", path))

    async def disable(self, webhook_id: str) -> Webhook:
        """Have it told nothing."""
        path = f"{_path('webhooks', webhook_id)}/disable"
        return record(Webhook, await self._remote.ask("POST", path))

    async def test(self, webhook_id: str) -> str:
        """Deliver a test; the id of its job."""
        path = f"{_path('webhooks', webhook_id)}/test"
        return str((await self._remote.ask("POST", path))["job_id"])

    async def publish(
        self, topic: str, data: Mapping[str, Any], *, tenant: str = "", key: str | None = None
    ) -> Sequence[str]:
        """Tell all webhooks of a tenant that subscribe to a topic; the ids of the jobs."""
        told = {"topic": topic, "data": dict(data), "tenant": tenant or None, "key": key}
        answer = await self._remote.ask("POST", "agents/topics", told)
        return [str(each) for each in answer["job_ids"]]

    async def deliveries(
        self,
        webhook_id: str,
        *,
        status: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> Deliveries:
        """Return its requests, the newest first."""
        asked = _asked(status=status, before=None if before is None else iso(before), limit=limit)
        path = f"{_path('webhooks', webhook_id)}/deliveries?{asked}"
        answer = await self._remote.ask("GET", path)
        return [record(Delivery, each) for each in answer["deliveries"]]

    async def replay(self, delivery_id: str) -> str:
        """Deliver the message of a request again; the id of its job."""
        path = f"{_path('deliveries', delivery_id)}/replay"
        return str((await self._remote.ask("POST", path))["job_id"])

    async def replay_span(
        self, webhook_id: str, *, since: int, until: int | None = None, delivered: bool = False
    ) -> int:
        """Deliver again what was first sent in a span and never arrived; how many messages."""
        told = _timed({"since": since, "until": until}) | {"delivered": delivered}
        path = f"{_path('webhooks', webhook_id)}/replay"
        return int((await self._remote.ask("POST", path, told))["messages"])

    async def statistics(self, webhook_id: str, *, hours: float = 24) -> Statistics:
        """Return how its requests went in the last hours."""
        path = f"{_path('webhooks', webhook_id)}/statistics?{_asked(hours=hours)}"
        return record(Statistics, await self._remote.ask("GET", path))


class RemoteQuotas:
    """`remote.agents.quotas`."""

    def __init__(self, remote: "Remote") -> None:
        self._remote = remote

    async def set(self, tenant: str, measure: str, most: float, **options: Any) -> Quota:
        """Let a tenant use so much: `period`, `warn_at`, `action`, `throttle`."""
        path = f"{_path('quotas', tenant)}/{quote(measure, safe='')}"
        return record(Quota, await self._remote.ask("PUT", path, {"most": most, **options}))

    async def remove(self, tenant: str, measure: str) -> bool:
        """Let a tenant use as much as it likes again; whether it had a quota of its own."""
        path = f"{_path('quotas', tenant)}/{quote(measure, safe='')}"
        return bool((await self._remote.ask("DELETE", path))["removed"])

    async def usage(self, tenant: str) -> list[Usage]:
        """What a tenant has used of everything in the period that it is in now."""
        answer = await self._remote.ask("GET", f"agents/usage?{_asked(tenant=tenant)}")
        return [record(Usage, each) for each in answer["usage"]]

    async def list(self) -> list[Quota]:
        """All that were set."""
        answer = await self._remote.ask("GET", "agents/quotas")
        return [record(Quota, each) for each in answer["quotas"]]


class RemoteExports:
    """`remote.agents.exports`."""

    def __init__(self, remote: "Remote") -> None:
        self._remote = remote

    async def get(self, export_id: str) -> Export:
        """An export."""
        return record(Export, await self._remote.ask("GET", _path("exports", export_id)))

    async def delete(self, export_id: str) -> None:
        """Delete an export and its file."""
        await self._remote.ask("DELETE", _path("exports", export_id))

    async def list(self, tenant: str | None = None, limit: int = 100) -> list[Export]:
        """All of them, or a tenant's, the newest first."""
        answer = await self._remote.ask(
            "GET", f"agents/exports?{_asked(tenant=tenant, limit=limit)}"
        )
        return [record(Export, each) for each in answer["exports"]]


class RemoteDeletions:
    """`remote.agents.deletions`."""

    def __init__(self, remote: "Remote") -> None:
        self._remote = remote

    async def request(self, *, tenant: str | None = None, person: str | None = None) -> str:
        """Have all that there is of a tenant, or of a person, erased; the id of the deletion."""
        told = {"tenant": tenant, "user_id": person}
        return str((await self._remote.ask("POST", "agents/deletions", told))["deletion_id"])

    async def get(self, deletion_id: str) -> Deletion:
        """A deletion, and its certificate when it is done."""
        return record(Deletion, await self._remote.ask("GET", _path("deletions", deletion_id)))

    async def verify(self, certificate: Certificate) -> bool:
        """Whether a certificate is as that installation has signed it."""
        told = to_builtins(certificate)
        return bool((await self._remote.ask("POST", "agents/deletions/verify", told))["valid"])

    async def list(self, limit: int = 100) -> list[Deletion]:
        """All of them, the newest first."""
        answer = await self._remote.ask("GET", f"agents/deletions?{_asked(limit=limit)}")
        return [record(Deletion, each) for each in answer["deletions"]]


def _path(subject: str, name: str) -> str:
    return f"agents/{subject}/{quote(name, safe='')}"


def _task(task: str, tenant: str, skills: Sequence[str]) -> dict[str, Any]:
    return {"task": task, "tenant": tenant or None, "skills": [*skills]}


def _asked(**given: Any) -> str:
    told = {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in _timed(given).items()
        if value is not None
    }
    return urlencode(told)


def _timed(given: Mapping[str, Any]) -> dict[str, Any]:
    """What is told, with times as JSON has them."""
    return {
        name: iso(value) if is_time(name) and isinstance(value, int) else value
        for name, value in given.items()
    }
