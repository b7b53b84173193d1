"""Sessions of agents over HTTP, and what was learned from them."""

from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta, Struct

from penstock.apps.agents.access import actor_of, agents_of, ms, named_tenant
from penstock.apps.agents.learning.records import (
    ClassifierRow,
    Match,
    Pattern,
    Prediction,
    Trajectory,
)
from penstock.apps.agents.sessions.records import (
    AgentSession,
    NewTurn,
    SessionFilter,
    Turn,
    place,
)
from penstock.extension import Request
from penstock.model.documents import document, documented

Limit = Annotated[int, Meta(ge=1, le=500)]
Before = Annotated[str | None, Meta(description="Go on after `next` of the page before.")]
Next = Annotated[str | None, Meta(description="Go on with `before=`; absent at the end.")]

AgentSessionDocument: Any = documented(AgentSession)
TurnDocument: Any = documented(Turn, "AgentTurn")
TrajectoryDocument: Any = documented(Trajectory)
PatternDocument: Any = documented(Pattern)
MatchDocument: Any = documented(Match, "PatternMatch")
ClassifierDocument: Any = documented(ClassifierRow)
PredictionDocument: Any = documented(Prediction)


class AgentSessionList(Struct, kw_only=True):
    """A page of sessions, those that were opened last first."""

    sessions: list[AgentSessionDocument]  # pyright: ignore[reportInvalidTypeForm]
    next: Next


class WantedAgentSessions(Struct, kw_only=True):
    """Which sessions are asked for."""

    tenant: str | None = None
    workspace: str | None = None
    user: str | None = None
    status: Annotated[str | None, Meta(description="active, closed, expired or archived.")] = None
    before: Before = None
    limit: Limit = 50


class SessionToOpen(Struct, kw_only=True, forbid_unknown_fields=True):
    """A session to be opened; one that is there already under its id is left as it is."""

    id: str | None = None
    tenant: str | None = None
    workspace_id: str | None = None
    user_id: str | None = None
    expires_in: Annotated[float | None, Meta(description="After so many seconds.")] = None
    metadata: dict[str, Any] = {}


class TurnToAdd(Struct, kw_only=True, forbid_unknown_fields=True):
    """A turn; one with a number that is there already stays as it is."""

    role: Annotated[str, Meta(description="user, assistant, tool or system.")]
    content: str
    skill_id: str | None = None
    succeeded: bool | None = None
    at: datetime | None = None
    n: int | None = None
    metadata: dict[str, Any] = {}


class TurnList(Struct, kw_only=True):
    """Turns of a session in their order."""

    turns: list[TurnDocument]  # pyright: ignore[reportInvalidTypeForm]


class WantedTurns(Struct, kw_only=True):
    """Which turns are asked for."""

    after: Annotated[int, Meta(ge=0, description="Those after the one of this number.")] = 0
    limit: Limit = 100


class TrajectoryList(Struct, kw_only=True):
    """A page of trajectories, the latest first."""

    trajectories: list[TrajectoryDocument]  # pyright: ignore[reportInvalidTypeForm]
    next: Next


class WantedTrajectories(Struct, kw_only=True):
    """Which trajectories are asked for."""

    tenant: str | None = None
    verdict: Annotated[str | None, Meta(description="success, failure, partial or unknown.")] = None
    session: Annotated[str | None, Meta(description="The id of a session.")] = None
    before: Before = None
    limit: Limit = 50


class PatternList(Struct, kw_only=True):
    """A page of patterns, the latest first."""

    patterns: list[PatternDocument]  # pyright: ignore[reportInvalidTypeForm]
    next: Next


class WantedPatterns(Struct, kw_only=True):
    """Which patterns are asked for."""

    tenant: str | None = None
    active: bool | None = None
    type: Annotated[str | None, Meta(description="workflow or anti_pattern.")] = None
    before: Before = None
    limit: Limit = 50


class MatchList(Struct, kw_only=True):
    """Active patterns that fit a task, the best first."""

    matches: list[MatchDocument]  # pyright: ignore[reportInvalidTypeForm]


class Task(Struct, kw_only=True, forbid_unknown_fields=True):
    """A task for which patterns are sought; with `use` they count as used."""

    task: Annotated[str, Meta(max_length=20_000, examples=["Refund an order twice charged"])]
    tenant: str | None = None
    skills: list[str] = []
    use: bool = True
    limit: Annotated[int, Meta(ge=1, le=50)] = 5


class Forecast(Struct, kw_only=True):
    """How a task is likely to end; null before a classifier has been trained."""

    prediction: PredictionDocument | None  # pyright: ignore[reportInvalidTypeForm]


class ClassifierList(Struct, kw_only=True):
    """Classifiers that were trained, the latest first."""

    classifiers: list[ClassifierDocument]  # pyright: ignore[reportInvalidTypeForm]


class WantedClassifiers(Struct, kw_only=True):
    """Which classifiers are asked for."""

    tenant: str | None = None
    limit: Limit = 20


async def list_agent_sessions(request: Request) -> dict[str, Any]:
    """List sessions of agents, those that were opened last first."""
    wanted: WantedAgentSessions = request.query
    rows = await agents_of(request).sessions.list(
        SessionFilter(
            tenant=named_tenant(request, wanted.tenant),
            workspace=wanted.workspace,
            user=wanted.user,
            status=wanted.status,
            before=wanted.before,
            limit=wanted.limit,
        )
    )
    more = place(rows[-1]) if len(rows) == wanted.limit else None
    return {"sessions": document(rows), "next": more}


async def open_agent_session(request: Request) -> Any:
    """Open a session."""
    told: SessionToOpen = request.body
    opened = await agents_of(request).sessions.open(
        tenant=named_tenant(request, told.tenant) or "",
        workspace=told.workspace_id,
        user=told.user_id,
        expires_in=told.expires_in,
        metadata=told.metadata,
        session_id=told.id,
    )
    return document(opened)


async def get_agent_session(request: Request) -> Any:
    """One session."""
    session_id = request.path["session_id"]
    return document(await agents_of(request).sessions.get(session_id, tenant=request.tenant))


async def list_agent_turns(request: Request) -> dict[str, Any]:
    """Turns of a session in their order; those of an archived one come from its file."""
    wanted: WantedTurns = request.query
    turns = await agents_of(request).sessions.turns(
        request.path["session_id"],
        after=wanted.after,
        limit=wanted.limit,
        tenant=request.tenant,
    )
    return {"turns": document(turns)}


async def add_agent_turns(request: Request) -> Any:
    """Add turns to an active session, all or none."""
    turns: list[TurnToAdd] = request.body
    made = [
        NewTurn(
            role=turn.role,
            content=turn.content,
            skill_id=turn.skill_id,
            succeeded=turn.succeeded,
            at=ms(turn.at),
            n=turn.n,
            metadata=turn.metadata,
        )
        for turn in turns
    ]
    session_id = request.path["session_id"]
    added = await agents_of(request).sessions.add(session_id, *made, tenant=request.tenant)
    return document(added)


async def close_agent_session(request: Request) -> Any:
    """Close a session; it is then looked through for what is to be learned from it."""
    session_id = request.path["session_id"]
    return document(await agents_of(request).sessions.close(session_id, tenant=request.tenant))


async def restore_agent_session(request: Request) -> Any:
    """Bring an archived session back, as it was."""
    session_id = request.path["session_id"]
    async with actor_of(request).doing("session.restore", f"session:{session_id}"):
        [restored] = await agents_of(request).sessions.restore([session_id], tenant=request.tenant)
    return document(restored)


async def list_trajectories(request: Request) -> dict[str, Any]:
    """List trajectories, the latest first."""
    wanted: WantedTrajectories = request.query
    rows = await agents_of(request).learning.trajectories(
        tenant=named_tenant(request, wanted.tenant),
        verdict=wanted.verdict,
        session=wanted.session,
        before=wanted.before,
        limit=wanted.limit,
    )
    more = f"{rows[-1].ended_at}-{rows[-1].id}" if len(rows) == wanted.limit else None
    return {"trajectories": document(rows), "next": more}


async def get_trajectory(request: Request) -> Any:
    """One trajectory."""
    found = await agents_of(request).learning.trajectory(
        request.path["trajectory_id"], tenant=request.tenant
    )
    return document(found)


async def list_patterns(request: Request) -> dict[str, Any]:
    """List patterns, the latest first."""
    wanted: WantedPatterns = request.query
    rows = await agents_of(request).learning.patterns(
        tenant=named_tenant(request, wanted.tenant),
        active=wanted.active,
        pattern_type=wanted.type,
        before=wanted.before,
        limit=wanted.limit,
    )
    more = rows[-1].id if len(rows) == wanted.limit else None
    return {"patterns": document(rows), "next": more}


async def get_pattern(request: Request) -> Any:
    """One pattern."""
    found = await agents_of(request).learning.pattern(
        request.path["pattern_id"], tenant=request.tenant
    )
    return document(found)


async def activate_pattern(request: Request) -> Any:
    """Switch a pattern on."""
    return await _switched(request, active=True)


async def deactivate_pattern(request: Request) -> Any:
    """Switch a pattern off; it stays off."""
    return await _switched(request, active=False)


async def match_patterns(request: Request) -> dict[str, Any]:
    """Find the active patterns that fit a task."""
    told: Task = request.body
    found = await agents_of(request).learning.match(
        told.task,
        tenant=named_tenant(request, told.tenant) or "",
        skills=told.skills,
        k=told.limit,
        use=told.use,
    )
    return {"matches": document(found)}


async def predict_verdict(request: Request) -> dict[str, Any]:
    """Say how a task is likely to end."""
    told: Task = request.body
    found = await agents_of(request).learning.predict(
        told.task, tenant=named_tenant(request, told.tenant) or "", skills=told.skills
    )
    return {"prediction": document(found)}


async def list_classifiers(request: Request) -> dict[str, Any]:
    """List classifiers with the figures of their training, the latest first."""
    wanted: WantedClassifiers = request.query
    rows = await agents_of(request).learning.classifiers(
        tenant=named_tenant(request, wanted.tenant), limit=wanted.limit
    )
    return {"classifiers": document(rows)}


async def _switched(request: Request, *, active: bool) -> Any:
    pattern_id = request.path["pattern_id"]
    action = "pattern.activate" if active else "pattern.deactivate"
    async with actor_of(request).doing(action, f"pattern:{pattern_id}"):
        found = await agents_of(request).learning.activate(
            pattern_id, active=active, tenant=request.tenant
        )
    return document(found)
