"""The recorder over HTTP: sessions, search, figures, learnings, spans, and what was taken out."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta, Struct

from penstock.apps.recorder import spans
from penstock.apps.recorder.learnings import Learnings
from penstock.apps.recorder.privacy import Choice, Privacy, Proof, line_of
from penstock.apps.recorder.reading import SessionNotFound, Sessions
from penstock.apps.recorder.records import (
    Caught,
    Hit,
    Learning,
    LearningFilter,
    SessionFilter,
    SessionRow,
    SessionView,
    Stats,
)
from penstock.apps.recorder.report import caught
from penstock.extension import Request
from penstock.model.clock import milliseconds
from penstock.model.documents import document, documented
from penstock.model.errors import InvalidOption
from penstock.operate.actor import Operator, own_tenant

Limit = Annotated[int, Meta(ge=1, le=500)]
Before = Annotated[str | None, Meta(description="Go on after `next` of the page before.")]
Next = Annotated[str | None, Meta(description="Go on with `before=`; absent at the end.")]
Since = Annotated[datetime | None, Meta(description="Last seen at this time or later.")]
Until = Annotated[datetime | None, Meta(description="Last seen before this time.")]

SessionRowDocument: Any = documented(SessionRow)
SessionViewDocument: Any = documented(SessionView)
StatsDocument: Any = documented(Stats)
HitDocument: Any = documented(Hit)
LearningDocument: Any = documented(Learning)
CaughtDocument: Any = documented(Caught)
ProofDocument: Any = documented(Proof)


class SessionList(Struct, kw_only=True):
    """A page of sessions, those with the latest activity first."""

    sessions: list[SessionRowDocument]  # pyright: ignore[reportInvalidTypeForm]
    next: Next


class WantedSessions(Struct, kw_only=True):
    """Which sessions are asked for."""

    platform: Annotated[str | None, Meta(examples=["claude_code"])] = None
    project: str | None = None
    status: Annotated[str | None, Meta(description="active, complete or quiet.")] = None
    tenant: str | None = None
    since: Since = None
    until: Until = None
    before: Before = None
    limit: Limit = 50


class WantedStats(Struct, kw_only=True):
    """Of which sessions figures are asked for."""

    platform: str | None = None
    project: str | None = None
    tenant: str | None = None
    since: Since = None
    until: Until = None


class HitList(Struct, kw_only=True):
    """Messages in which words occur, the latest first."""

    hits: list[HitDocument]  # pyright: ignore[reportInvalidTypeForm]


class WantedHits(Struct, kw_only=True):
    """What is searched for."""

    text: Annotated[str, Meta(max_length=500, examples=["retry budget"])]
    tenant: str | None = None
    limit: Limit = 20


class LearningList(Struct, kw_only=True):
    """A page of learnings, the latest first."""

    learnings: list[LearningDocument]  # pyright: ignore[reportInvalidTypeForm]
    next: Next


class WantedLearnings(Struct, kw_only=True):
    """Which learnings are asked for."""

    status: str | None = None
    category: str | None = None
    session: Annotated[str | None, Meta(description="The id of a session.")] = None
    text: Annotated[str, Meta(max_length=500)] | None = None
    tenant: str | None = None
    before: Before = None
    limit: Limit = 50


class LearningChange(Struct, kw_only=True, forbid_unknown_fields=True):
    """What is changed of a learning; what is not said stays."""

    title: str | None = None
    content: str | None = None
    category: str | None = None
    tags: list[str] | None = None


class Revocation(Struct, kw_only=True, forbid_unknown_fields=True):
    """Why a learning is withdrawn."""

    reason: str = ""


MaybeRevocation = Revocation | None


class CaughtList(Struct, kw_only=True):
    """What each rule of the sanitiser has taken out."""

    rules: list[CaughtDocument]  # pyright: ignore[reportInvalidTypeForm]


class WantedCaught(Struct, kw_only=True):
    """Of what the sanitiser is asked to tell."""

    session: Annotated[str | None, Meta(description="The id of a session.")] = None
    tenant: str | None = None
    since: Annotated[datetime | None, Meta(description="Taken out at this time or later.")] = None


async def list_sessions(request: Request) -> dict[str, Any]:
    """Sessions, those with the latest activity first."""
    wanted: WantedSessions = request.query
    rows = await Sessions(request.app).list(
        SessionFilter(
            platform=wanted.platform,
            project=wanted.project,
            status=wanted.status,
            tenant=own_tenant(request.tenant, wanted.tenant),
            since=_ms(wanted.since),
            until=_ms(wanted.until),
            before=wanted.before,
            limit=wanted.limit,
        )
    )
    more = rows[-1].place if len(rows) == wanted.limit else None
    return {"sessions": document(rows), "next": more}


async def get_session(request: Request) -> Any:
    """One session: its turns, tools, changes, commits, what it cost, and insights."""
    return document(await _view(request))


async def read_session_spans(request: Request) -> dict[str, Any]:
    """One session as OpenTelemetry spans, as a collector takes them (OTLP, JSON)."""
    return spans.otlp([await _view(request)])


async def export_session(request: Request) -> AsyncIterator[bytes]:
    """All that there is of a session, one JSON document a line, with a hash at the end."""
    view = await _view(request)
    documents = _privacy(request).export(Choice(session=view.row.id))

    async def lines() -> AsyncIterator[bytes]:
        async for each in documents:
            yield line_of(each)

    return lines()


async def delete_session(request: Request) -> Any:
    """Delete a session with all that was derived from it, and prove that nothing is left."""
    privacy, name = _privacy(request), request.path["session_id"]
    chosen = [each async for each in privacy.sessions(Choice(session=name))]
    if len(chosen) != 1:
        raise SessionNotFound(name, [each.id for each in chosen])
    return document(await privacy.delete(chosen[0]))


async def search_sessions(request: Request) -> dict[str, Any]:
    """Messages in which words occur, the latest first."""
    wanted: WantedHits = request.query
    tenant = own_tenant(request.tenant, wanted.tenant)
    hits = await Sessions(request.app).search(wanted.text, tenant=tenant, limit=wanted.limit)
    return {"hits": document(list(hits))}


async def read_session_stats(request: Request) -> Any:
    """How work with assistants goes: what is kept, how long tools take, what it costs."""
    wanted: WantedStats = request.query
    found = await Sessions(request.app).stats(
        tenant=own_tenant(request.tenant, wanted.tenant),
        platform=wanted.platform,
        project=wanted.project,
        since=_ms(wanted.since),
        until=_ms(wanted.until),
    )
    return document(found)


async def list_learnings(request: Request) -> dict[str, Any]:
    """Learnings, the latest first."""
    wanted: WantedLearnings = request.query
    where = LearningFilter(
        tenant=own_tenant(request.tenant, wanted.tenant),
        status=wanted.status,
        category=wanted.category,
        conversation_id=wanted.session,
        text=wanted.text,
        before=wanted.before,
        limit=wanted.limit,
    )
    rows = await _learnings(request).list(where)
    more = rows[-1].id if len(rows) == wanted.limit else None
    return {"learnings": document(rows), "next": more}


async def get_learning(request: Request) -> Any:
    """One learning, and how far its publishing has come."""
    return document(await _learnings(request).get(request.path["learning_id"]))


async def change_learning(request: Request) -> Any:
    """Change what a learning says, as long as nothing of it was published."""
    change: LearningChange = request.body
    if change == LearningChange():
        raise InvalidOption("change", "none", "a title, a content, a category or tags")
    changed = await _learnings(request).edit(
        request.path["learning_id"],
        title=change.title,
        content=change.content,
        category=change.category,
        tags=change.tags,
    )
    return document(changed)


async def approve_learning(request: Request) -> Any:
    """Approve a learning; if publishing is switched on, it is published from here on."""
    return document(await _learnings(request).approve(request.path["learning_id"]))


async def reject_learning(request: Request) -> Any:
    """Reject a learning."""
    return document(await _learnings(request).reject(request.path["learning_id"]))


async def revoke_learning(request: Request) -> Any:
    """Withdraw a learning that was published; copies that others hold stay."""
    why: Revocation = request.body or Revocation()
    return document(await _learnings(request).revoke(request.path["learning_id"], why.reason))


async def list_caught(request: Request) -> dict[str, Any]:
    """What each rule of the sanitiser has taken out; never what it was."""
    wanted: WantedCaught = request.query
    found = await caught(
        request.app,
        tenant=own_tenant(request.tenant, wanted.tenant),
        conversation_id=wanted.session,
        since=_ms(wanted.since) or 0,
    )
    return {"rules": document(found)}


async def _view(request: Request) -> SessionView:
    return await Sessions(request.app).get(request.path["session_id"], tenant=request.tenant)


def _learnings(request: Request) -> Learnings:
    return Learnings(request.app, Operator(request.app, request.actor, request.tenant).actor)


def _privacy(request: Request) -> Privacy:
    return Privacy(request.app, Operator(request.app, request.actor, request.tenant).actor)


def _ms(moment: datetime | None) -> int | None:
    return None if moment is None else milliseconds(moment)
