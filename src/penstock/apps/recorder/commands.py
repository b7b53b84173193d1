"""`penstock recorder`: sessions, figures and learnings at the terminal."""

import os
import sys
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from penstock.apps.recorder import demo as playing
from penstock.apps.recorder import spans as spanning
from penstock.apps.recorder.learnings import Learnings
from penstock.apps.recorder.privacy import Choice, Privacy
from penstock.apps.recorder.reading import Sessions
from penstock.apps.recorder.records import (
    Learning,
    LearningFilter,
    SessionFilter,
    SessionRow,
    Stats,
    Tokens,
    Tool,
    Turn,
)
from penstock.apps.recorder.report import DAY_MS, own_costs
from penstock.apps.recorder.report import caught as caught_by
from penstock.apps.recorder.wording import platform
from penstock.events.pool import catch_up
from penstock.extension import Shown
from penstock.model.clock import from_iso, iso
from penstock.model.documents import document
from penstock.model.errors import InvalidOption
from penstock.model.wording import ago, brief, counted, money, short, span
from penstock.operate.actor import Operator

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

SessionName = Annotated[
    str, "The session, by our id or the assistant's own; its beginning will do."
]
LearningId = Annotated[str, "The learning, as `recorder learnings` names it."]
Project = Annotated[str | None, "Sessions of this project."]
Since = Annotated[str | None, "Last seen at this time or later: 2026-11-15T03:28Z."]
Until = Annotated[str | None, "Last seen before this time."]
Tenant = Annotated[str | None, "Only those of this tenant."]
Limit = Annotated[int, "At most so many."]


async def sessions(
    app: "Penstock",
    assistant: Annotated[str | None, "--assistant", "Only this one, such as claude_code."] = None,
    project: Project = None,
    state: Annotated[str | None, "Only active, complete or quiet ones."] = None,
    since: Since = None,
    until: Until = None,
    tenant: Tenant = None,
    commit: Annotated[str | None, "Only those that made this commit."] = None,
    limit: Limit = 30,
) -> Shown:
    """List sessions, those with the latest activity first."""
    if commit is not None:
        rows = list(await Sessions(app).of_commit(commit, tenant=tenant))
    else:
        rows = await Sessions(app).list(
            SessionFilter(
                platform=assistant,
                project=project,
                status=state,
                since=_time(since),
                until=_time(until),
                tenant=tenant,
                limit=limit,
            )
        )
    now = app.store.clock.now()
    people: Any = [_session_row(row, now) for row in rows] or "No session matches."
    return Shown(people, [document(row) for row in rows])


async def show(
    app: "Penstock",
    session: SessionName,
    turn: Annotated[int | None, "Only this turn, with all that was written."] = None,
) -> Shown:
    """Show a session: its turns and tools, what it cost and what it changed."""
    view = await Sessions(app).get(session)
    row, files = view.row, len({change.file_path for change in view.changes})
    head = {
        "session": f"{row.title} ({row.session_id})",
        "assistant": ", ".join(filter(None, (platform(row.platform), row.model))),
        "project": ", on ".join(filter(None, (row.project, row.branch))) or None,
        "state": f"{row.status}, {iso(row.started_at)}, took {span(row.last_at - row.started_at)}",
        "tokens": _tokens(row.tokens),
        "changes": f"{row.changes:,} of {counted(files, 'file')}",
        "commits": ", ".join(commit.hash[:10] for commit in view.commits) or None,
    }
    chosen = [each for each in view.turns if turn is None or each.n == turn]
    if turn is not None and not chosen:
        raise InvalidOption("turn", turn, f"1 to {len(view.turns)}")
    parts: list[Any] = [{name: value for name, value in head.items() if value}]
    for each in chosen:
        tools = [tool for tool in view.tools if tool.turn == each.n]
        parts += _turn_parts(each, tools, whole=turn is not None)
    parts += [f"{each.title}: {each.text}" for each in view.insights]
    return Shown(tuple(parts), document(view))


async def stats(
    app: "Penstock",
    days: Annotated[int, "Of so many days."] = 7,
    tenant: Tenant = None,
    project: Project = None,
) -> Shown:
    """Show how work with assistants goes: what is kept, how long tools take, what it costs."""
    now = app.store.clock.now()
    found = await Sessions(app).stats(
        tenant=tenant, project=project, since=now - days * DAY_MS, until=now
    )
    own = await own_costs(app, tenant=tenant, since=now - days * DAY_MS, until=now + 1)
    latency = [
        {
            "tool": name,
            "used": t.count,
            "median": span(t.p50),
            "p95": span(t.p95),
            "p99": span(t.p99),
        }
        for name, t in sorted(found.latency.items(), key=lambda item: -item[1].p95)
    ]
    head = _figures(found) | {"our own models": money(sum(each.cost for each in own))}
    told = document(found) | {"own_models": document(own)}
    return Shown((head, latency or "No tool was used."), told)


async def search(
    app: "Penstock",
    words: Annotated[
        str, 'Words that occur together; "two words" beside each other, conf* begins.'
    ],
    tenant: Tenant = None,
    limit: Limit = 20,
) -> Shown:
    """Find messages in which words occur, the latest first."""
    hits = await Sessions(app).search(words, tenant=tenant, limit=limit)
    now = app.store.clock.now()
    people: Any = [
        {
            "session": hit.conversation_id[:12],
            "title": brief(hit.title)[:40],
            "by": hit.role,
            "when": ago(hit.at, now),
            "found": hit.snippet,
        }
        for hit in hits
    ]
    return Shown(people or "Nothing was found.", [document(hit) for hit in hits])


async def caught(
    app: "Penstock",
    days: Annotated[int, "Of so many days."] = 30,
    tenant: Tenant = None,
) -> Shown:
    """Show what the sanitiser has taken out, by rule; never what it was."""
    now = app.store.clock.now()
    found = await caught_by(app, tenant=tenant, since=now - days * DAY_MS)
    people: Any = [
        {
            "rule": each.rule_id,
            "category": each.category,
            "by": each.detector,
            "count": each.count,
            "sessions": each.sessions,
            "last": ago(each.last_at, now),
        }
        for each in found
    ]
    return Shown(people or "Nothing had to be taken out.", [document(each) for each in found])


async def learnings(
    app: "Penstock",
    state: Annotated[str | None, "Only proposed, approved, rejected or superseded ones."] = None,
    category: Annotated[str | None, "Only those of this category."] = None,
    words: Annotated[str | None, "Only those in which these words occur."] = None,
    tenant: Tenant = None,
    limit: Limit = 30,
) -> Shown:
    """List what was learned, the latest first."""
    where = LearningFilter(status=state, category=category, text=words, tenant=tenant, limit=limit)
    rows = await Learnings(app).list(where)
    now = app.store.clock.now()
    people: Any = [_learning_row(row, now) for row in rows] or "No learning matches."
    return Shown(people, [document(row) for row in rows])


async def learning(app: "Penstock", learning_id: LearningId) -> Shown:
    """Show one learning, where it comes from, and how far its publishing has come."""
    row = await Learnings(app).get(learning_id)
    upload = row.upload
    told: dict[str, Any] = {
        "title": row.title,
        "state": row.status,
        "category": row.category,
        "confidence": f"{row.confidence:.2f}, by {row.source}",
        "session": row.conversation_id,
        "tags": ", ".join(row.tags) or None,
        "published": None if upload is None else upload.status,
        "cid": None if upload is None else upload.ipfs_cid,
        "transaction": None if upload is None else upload.chain_tx_hash,
        "error": None if upload is None else upload.last_error,
    }
    head = {name: value for name, value in told.items() if value}
    return Shown((head, row.content), document(row))


async def approve(app: "Penstock", actor: str, learning_id: LearningId) -> Shown:
    """Approve a learning; if publishing is switched on, it is published from here on."""
    done = await Learnings(app, Operator(app, actor).actor).approve(learning_id)
    return Shown(f"Approved: {done.title}", document(done))


async def reject(app: "Penstock", actor: str, learning_id: LearningId) -> Shown:
    """Reject a learning."""
    done = await Learnings(app, Operator(app, actor).actor).reject(learning_id)
    return Shown(f"Rejected: {done.title}", document(done))


async def edit(
    app: "Penstock",
    actor: str,
    learning_id: LearningId,
    title: Annotated[str | None, "Another title."] = None,
    content: Annotated[str | None, "What was learned, in other words."] = None,
    category: Annotated[str | None, "Another category."] = None,
    tags: Annotated[str | None, "Other tags, with commas between them."] = None,
) -> Shown:
    """Change what a learning says, as long as nothing of it was published."""
    split = None if tags is None else [tag for each in tags.split(",") if (tag := each.strip())]
    done = await Learnings(app, Operator(app, actor).actor).edit(
        learning_id, title=title, content=content, category=category, tags=split
    )
    return Shown(f"Saved: {done.title}", document(done))


async def revoke(
    app: "Penstock",
    actor: str,
    learning_id: LearningId,
    reason: Annotated[str, "Why, for the record."] = "",
) -> Shown:
    """Withdraw a learning that was published; copies that others hold stay."""
    done = await Learnings(app, Operator(app, actor).actor).revoke(learning_id, reason)
    return Shown(f"Revoked: {done.title}", document(done))


async def demo(
    app: "Penstock",
    actor: str,
    days: Annotated[int, "Of so many days."] = 14,
    drop: Annotated[bool, "Delete them again."] = False,
) -> Shown:
    """Write made-up sessions of several assistants, to look around in."""
    if drop:
        privacy = Privacy(app, Operator(app, actor).actor)
        chosen = [each async for each in privacy.sessions(Choice(since=0))]
        ours = [each for each in chosen if each.session_id.startswith(playing.PREFIX)]
        for each in ours:
            await privacy.delete(each, leave_published=True)
        return Shown(f"{counted(len(ours), 'session')} deleted.", {"deleted": len(ours)})
    sessions = await playing.play(app, days=days)
    await catch_up(app)
    return Shown(f"{counted(sessions, 'session')} written.", {"sessions": sessions})


async def up(
    app: "Penstock",
    port: Annotated[
        int | None, "The port of the dashboard; by default that of the settings."
    ] = None,
    opens: Annotated[bool, "--open", "Open the dashboard in a browser."] = False,
) -> None:
    """Run the recorder until Ctrl-C: workers, consumers and the dashboard, on its own store."""
    words = [sys.executable, "-m", "penstock.cli", "up", "penstock.apps.recorder.app"]
    words += [] if port is None else ["--port", str(port)]
    words += ["--open"] if opens else []
    os.execve(sys.executable, words, {**os.environ, "PENSTOCK_URL": app.settings.url})


async def spans(app: "Penstock", session: SessionName) -> str:
    """Write a session as OpenTelemetry spans (OTLP, JSON), for a collector."""
    view = await Sessions(app).get(session)
    return msgspec.json.encode(spanning.otlp([view])).decode()


def _time(text: str | None) -> int | None:
    return None if text is None else from_iso(text)


def _session_row(row: SessionRow, now: int) -> dict[str, Any]:
    return {
        "session": row.id[:12],
        "assistant": platform(row.platform),
        "state": row.status,
        "turns": row.turns,
        "tools": row.tools,
        "failed": row.failures,
        "changes": row.changes,
        "cost": money(row.tokens.cost),
        "last": ago(row.last_at, now),
        "title": " · ".join(filter(None, (row.project, brief(row.title)))),
    }


def _turn_parts(turn: Turn, tools: list[Tool], *, whole: bool) -> list[str]:
    took = "" if turn.ended_at is None else f", {span(turn.ended_at - turn.started_at)}"
    cost = "" if turn.tokens.cost is None else f", {money(turn.tokens.cost)}"
    lines = [f"\nTurn {turn.n} ({turn.status}{took}{cost})"]
    if turn.prompt:
        lines.append(f"  > {turn.prompt if whole else brief(turn.prompt)}")
    for tool in tools:
        state = "" if tool.status == "ok" else f" {tool.status}"
        lines.append(f"  · {tool.name} {brief(tool.summary)} {span(tool.duration_ms)}{state}")
    if turn.answer:
        lines.append(f"  < {turn.answer if whole else brief(turn.answer)}")
    return ["\n".join(lines)]


def _figures(stats: Stats) -> dict[str, Any]:
    turns = counted(stats.turns, "turn")
    return {
        "sessions": f"{stats.sessions:,}, {stats.active:,} active now, {turns}",
        "tools": f"{stats.tools:,}, {stats.failures:,} failed, {stats.interruptions:,} interrupted",
        "changes kept": f"{_part(stats.acceptance_rate)}, {_part(stats.rejection_rate)} undone, "
        f"{_part(stats.iteration_rate)} edited again",
        "productivity": "–" if stats.productivity is None else f"{stats.productivity:.0f} of 100",
        "first tool after": "–" if stats.response is None else span(stats.response.p50),
        "tokens": _tokens(stats.tokens),
    }


def _tokens(tokens: Tokens) -> str:
    return (
        f"{short(tokens.input)} in, {short(tokens.output)} out, "
        f"{short(tokens.cache_read)} from cache, {money(tokens.cost)}"
    )


def _part(fraction: float | None) -> str:
    return "–" if fraction is None else f"{fraction:.0%}"


def _learning_row(row: Learning, now: int) -> dict[str, Any]:
    return {
        "learning": row.id,
        "state": row.status if row.upload is None else row.upload.status,
        "category": row.category,
        "confidence": round(row.confidence, 2),
        "when": ago(row.created_at, now),
        "title": row.title,
    }
