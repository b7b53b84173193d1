"""The recorder in the dashboard: sessions, search, metrics, learnings, and what was taken out."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from penstock.apps.recorder import wording
from penstock.apps.recorder.learnings import CATEGORIES, Learnings
from penstock.apps.recorder.privacy import Choice, Chosen, Privacy
from penstock.apps.recorder.reading import SessionNotFound, Sessions
from penstock.apps.recorder.records import (
    CodeChange,
    Learning,
    LearningFilter,
    Percentiles,
    SessionFilter,
    SessionView,
    Stats,
    Tokens,
    Tool,
    Turn,
)
from penstock.apps.recorder.report import DAY_MS, caught, caught_by_day, own_costs
from penstock.apps.recorder.timeline import DECISIONS, TOOLS, timeline_of
from penstock.extension import Request
from penstock.model.clock import from_iso
from penstock.model.errors import InvalidOption
from penstock.model.wording import money, short
from penstock.model.wording import span as duration
from penstock.operate.actor import Operator

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

HOUR_MS = 3_600_000
SHOWN = 50
TURNS_SHOWN = 25
HITS_SHOWN = 40
CLIPPED = 6_000
"""Longer texts are shown up to here; the API and an export have all of them."""
SPANS = {"24h": DAY_MS, "7d": 7 * DAY_MS, "30d": 30 * DAY_MS, "90d": 90 * DAY_MS}
USUAL_SPAN = "7d"
STEPS_MS = (HOUR_MS, 6 * HOUR_MS)
MOST_POINTS = 200
STATUSES = {"active": "in_progress", "complete": "completed", "quiet": "quiet"}
"""The colours of sessions."""
DECIDED = {
    "proposed": "queued",
    "approved": "completed",
    "rejected": "cancelled",
    "superseded": "quiet",
}
UPLOADED = {
    "pending": ("queued", "waits to be published"),
    "ipfs_uploaded": ("in_progress", "pinned, not yet registered"),
    "tx_submitted": ("in_progress", "waits for confirmations"),
    "confirmed": ("completed", "published"),
    "failed": ("failed", "could not be published"),
}
"""The colours of learnings and of their uploads, and the words for these."""

WORDS = {
    "money": money,
    "short": short,
    "platform": wording.platform,
    "statuses": STATUSES,
}
"""What every template of the recorder has at hand."""


class TurnShown(Struct, frozen=True, kw_only=True):
    """A turn with its tools, and what there is to say about it in a line."""

    turn: Turn
    tools: list[Tool]
    about: str
    prompt: str
    answer: str
    clipped: bool


class Ranged(Struct, frozen=True, kw_only=True):
    """How long a tool took, with its place on a scale in hundredths."""

    name: str
    times: Percentiles
    x: float
    middle: float
    width: float


async def show_sessions(request: Request) -> dict[str, Any]:
    """A page of sessions, those with the latest activity first."""
    given = {name: request.query.get(name, "") for name in ("platform", "project", "status")}
    before = request.query.get("before", "")
    where = SessionFilter(
        **{name: value or None for name, value in given.items()},
        tenant=request.tenant,
        before=before or None,
        limit=SHOWN,
    )
    sessions = Sessions(request.app)
    rows = await sessions.list(where)
    return WORDS | {
        "rows": rows,
        "given": given,
        "before": before,
        "following": rows[-1].place if len(rows) == SHOWN else None,
        "platforms": wording.PLATFORMS,
        "stats": await _stats(request, DAY_MS),
    }


async def show_session(request: Request) -> dict[str, Any]:
    """One session: its timeline, its turns, what it cost and what it changed."""
    app, session_id = request.app, request.path["session_id"]
    view = await Sessions(app).get(session_id, tenant=request.tenant)
    number = _whole(request.query.get("turns", "")) or 1
    turns = _turns_shown(view, number)
    learned = LearningFilter(tenant=request.tenant, conversation_id=view.row.id, limit=SHOWN)
    return WORDS | {
        "view": view,
        "timeline": timeline_of(view, app.store.clock.now()),
        "turns": turns,
        "number": number,
        "of_turns": -(-len(view.turns) // TURNS_SHOWN),
        "turns_shown": TURNS_SHOWN,
        "tool_words": TOOLS,
        "decisions": DECISIONS,
        "files": _files(view.changes),
        "added": sum(change.added for change in view.changes),
        "removed": sum(change.removed for change in view.changes),
        "tokens": _in_all(view.row.tokens),
        "caught": await caught(app, tenant=request.tenant, conversation_id=view.row.id),
        "learnings": await Learnings(app).list(learned),
        "decided": DECIDED,
    }


async def show_delete(request: Request) -> dict[str, Any]:
    """What there is of a session, before it goes; and afterwards that nothing is left."""
    privacy, name = Privacy(request.app, _actor(request).actor), request.path["session_id"]
    try:
        chosen = await _chosen(privacy, name)
    except SessionNotFound:
        chosen = Chosen(name, "", "", name, None, 0, "")
    counts = await privacy.left(chosen)
    return {
        "session_id": name,
        "title": chosen.title or chosen.session_id,
        "counts": counts,
        "left": sum(counts.values()),
        "published": len(await privacy.published(chosen)),
    }


async def delete(request: Request) -> str:
    """Delete a session; the page that follows tells that nothing is left."""
    privacy = Privacy(request.app, _actor(request).actor)
    proof = await privacy.delete(
        await _chosen(privacy, request.path["session_id"]), leave_published=True
    )
    told = ", ".join(f"{count:,} {name}" for name, count in proof.erased.items())
    return f"Deleted: {told}." if proof.complete else "Something is left; delete it again."


async def _chosen(privacy: Privacy, name: str) -> Chosen:
    found = [each async for each in privacy.sessions(Choice(session=name))]
    if len(found) != 1:
        raise SessionNotFound(name, [each.id for each in found])
    return found[0]


async def show_search(request: Request) -> dict[str, Any]:
    """Messages in which words occur."""
    text = request.query.get("text", "").strip()
    sessions = Sessions(request.app)
    hits = await sessions.search(text, tenant=request.tenant, limit=HITS_SHOWN) if text else []
    return WORDS | {
        "text": text,
        "hits": [(hit, wording.snippet(hit.snippet)) for hit in hits],
        "roles": {"user": "Person", "assistant": "Model", "tool": "Tool"},
    }


async def show_metrics(request: Request) -> dict[str, Any]:
    """How work with assistants goes, over a span of time."""
    name = request.query.get("span", "")
    span = name if name in SPANS else USUAL_SPAN
    stats, now = await _stats(request, SPANS[span]), request.app.store.clock.now()
    own = await own_costs(
        request.app, tenant=request.tenant, since=now - SPANS[span], until=now + 1
    )
    active = await Sessions(request.app).active(
        tenant=request.tenant, since=now - SPANS[span], until=now + 1
    )
    return WORDS | {
        "own": own,
        "span": span,
        "spans": list(SPANS),
        "stats": stats,
        "tokens": _in_all(stats.tokens),
        "charts": _charts(stats) | {"active": _active(active, now - SPANS[span], now)},
        "latency": _ranges(stats.latency),
    }


async def show_learnings(request: Request) -> dict[str, Any]:
    """Learnings, the latest first, with what became of them."""
    given = {name: request.query.get(name, "") for name in ("status", "category", "text")}
    before = request.query.get("before", "")
    learnings = Learnings(request.app, _actor(request).actor)
    where = LearningFilter(
        **{name: value or None for name, value in given.items()},
        tenant=request.tenant,
        before=before or None,
        limit=SHOWN,
    )
    rows = await learnings.list(where)
    return WORDS | {
        "rows": rows,
        "given": given,
        "before": before,
        "following": rows[-1].id if len(rows) == SHOWN else None,
        "counts": await learnings.counts(),
        "categories": CATEGORIES,
        "decided": DECIDED,
        "uploaded": UPLOADED,
    }


async def decide(request: Request) -> str:
    """Approve, reject, edit or revoke a learning."""
    form = request.form
    learning_id, action = form.get("learning", ""), form.get("action", "")
    learnings = Learnings(request.app, _actor(request).actor)
    if action == "approve":
        return f"Approved: {_called(await learnings.approve(learning_id))}."
    if action == "reject":
        return f"Rejected: {_called(await learnings.reject(learning_id))}."
    if action == "revoke":
        revoked = await learnings.revoke(learning_id, form.get("reason", ""))
        return f"Revoked: {_called(revoked)}."
    if action == "edit":
        changed = await learnings.edit(
            learning_id,
            title=form.get("title", ""),
            content=form.get("content", ""),
            category=form.get("category", ""),
            tags=[tag for each in form.get("tags", "").split(",") if (tag := each.strip())],
        )
        return f"Saved: {_called(changed)}."
    raise InvalidOption("action", action, "one of: approve, reject, edit, revoke")


async def count_proposed(app: "Penstock") -> int:
    """How many learnings wait for somebody to decide."""
    return (await Learnings(app).counts()).get("proposed", 0)


async def count_active(app: "Penstock") -> int:
    """How many sessions were seen in the last hour."""
    asked = {"tenant": None, "platform": None, "project": None}

    def question(tx: Any) -> int:
        return int(tx.recorder.value("count_active", {**asked, "since": tx.now - HOUR_MS}))

    return await app.read(question)


async def show_report(request: Request) -> dict[str, Any]:
    """What the sanitiser has taken out, by rule."""
    name = request.query.get("span", "")
    span = name if name in SPANS else "30d"
    since = request.app.store.clock.now() - SPANS[span]
    rows = await caught(request.app, tenant=request.tenant, since=since)
    days = await caught_by_day(request.app, tenant=request.tenant, since=since)
    by_category: dict[str, int] = {}
    for row in rows:
        by_category[row.category] = by_category.get(row.category, 0) + row.count
    return WORDS | {
        "span": span,
        "spans": list(SPANS),
        "rows": rows,
        "total": sum(row.count for row in rows),
        "most": max((row.count for row in rows), default=1),
        "categories": sorted(by_category.items(), key=lambda each: -each[1]),
        "chart": _chart(
            [at for at, _ in days], [("taken out", "wait", [float(count) for _, count in days])]
        ),
    }


async def _stats(request: Request, within: int) -> Stats:
    now = request.app.store.clock.now()
    return await Sessions(request.app).stats(tenant=request.tenant, since=now - within, until=now)


def _turns_shown(view: SessionView, number: int) -> list[TurnShown]:
    first = (number - 1) * TURNS_SHOWN
    shown = []
    for turn in view.turns[first : first + TURNS_SHOWN]:
        changes = [change for change in view.changes if change.turn == turn.n]
        prompt, answer = turn.prompt or "", turn.answer or ""
        shown.append(
            TurnShown(
                turn=turn,
                tools=[tool for tool in view.tools if tool.turn == turn.n],
                about=_about(turn, changes),
                prompt=prompt[:CLIPPED],
                answer=answer[:CLIPPED],
                clipped=len(prompt) > CLIPPED or len(answer) > CLIPPED,
            )
        )
    return shown


def _about(turn: Turn, changes: Sequence[CodeChange]) -> str:
    """How long a turn took, what it changed and what it cost."""
    told = []
    if turn.ended_at is not None:
        told.append(duration(turn.ended_at - turn.started_at))
    if turn.response_ms is not None:
        told.append(f"first tool after {duration(turn.response_ms)}")
    if changes:
        added, removed = (sum(getattr(c, name) for c in changes) for name in ("added", "removed"))
        told.append(f"+{added:,} −{removed:,}")
    if turn.tokens.cost is not None:
        told.append(money(turn.tokens.cost))
    return ", ".join(told)


def _files(changes: Sequence[CodeChange]) -> list[tuple[str, int, int, int, list[str | None]]]:
    """The files that were changed: how often, by how many lines, and what became of it."""
    files: dict[str, list[CodeChange]] = {}
    for change in changes:
        files.setdefault(change.file_path, []).append(change)
    return [
        (
            path,
            len(each),
            sum(change.added for change in each),
            sum(change.removed for change in each),
            list(dict.fromkeys(change.decision for change in each)),
        )
        for path, each in sorted(files.items(), key=lambda item: -len(item[1]))
    ]


def _charts(stats: Stats) -> dict[str, Any]:
    days = stats.by_day
    times = [from_iso(f"{day.date}T00:00:00Z") for day in days]
    kept = [None if day.acceptance_rate is None else 100 * day.acceptance_rate for day in days]
    work = [
        ("tools", "wait", [float(day.tools) for day in days]),
        ("failed", "bad", [float(day.failures) for day in days]),
    ]
    return {
        "sessions": _chart(times, [("sessions", "busy", [float(d.sessions) for d in days])]),
        "acceptance": _chart(times, [("kept", "good", kept)], " %"),
        "productivity": _chart(times, [("productivity", "wait", [d.productivity for d in days])]),
        "tools": _chart(times, work),
        "cost": _chart(times, [("cost", "warn", [round(day.cost, 4) for day in days])], " $"),
    }


def _active(hours: Sequence[tuple[int, int]], since: int, until: int) -> dict[str, Any]:
    """Sessions at work over a span of time; of a long one, the most in each of its parts."""
    step = next((each for each in STEPS_MS if (until - since) // each <= MOST_POINTS), DAY_MS)
    times = list(range(since // step * step, until + 1, step))
    most = dict.fromkeys(times, 0)
    for at, count in hours:
        begin = at // step * step
        most[begin] = max(most.get(begin, 0), count)
    times = sorted(most)
    return _chart(times, [("active", "busy", [float(most[at]) for at in times])])


def _chart(
    times: list[int], lines: Sequence[tuple[str, str, Sequence[float | None]]], unit: str = ""
) -> dict[str, Any]:
    """What the filter `chart` draws."""
    drawn = [
        {"label": label, "colour": colour, "values": list(values)}
        for label, colour, values in lines
    ]
    return {"times": times, "lines": drawn, "unit": unit}


def _ranges(latency: dict[str, Percentiles]) -> list[Ranged]:
    """Tools with the slowest first, on one scale whose steps are powers: ms beside minutes."""
    slow = sorted(latency.items(), key=lambda item: -item[1].p95)
    most = max((times.p99 for _, times in slow), default=1.0)
    ranges = []
    for name, times in slow:
        x, middle, end = (_rooted(figure, most) for figure in (times.p50, times.p95, times.p99))
        ranges.append(Ranged(name=name, times=times, x=x, middle=middle, width=max(0.6, end - x)))
    return ranges


def _rooted(figure: float, most: float) -> float:
    return 100 * (max(0.0, figure) / most) ** 0.35 if most > 0 else 0.0


def _in_all(tokens: Tokens) -> int:
    return tokens.input + tokens.output + tokens.cache_write + tokens.cache_read


def _called(learning: Learning) -> str:
    return learning.title.rstrip(".")


def _actor(request: Request) -> Operator:
    return Operator(request.app, request.actor, request.tenant)


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and 0 < len(text) < 7 else None
