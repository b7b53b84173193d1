"""Read sessions: lists, one of them whole, figures over a span of time, and a search."""

from collections.abc import Sequence
from datetime import UTC, datetime
from math import log2
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from penstock.app.transact import table_store
from penstock.apps.recorder.prices import cost
from penstock.apps.recorder.records import (
    CodeChange,
    Commit,
    Day,
    Entry,
    Hit,
    Insight,
    MessageRow,
    Percentiles,
    SessionFilter,
    SessionRow,
    SessionView,
    Spent,
    Stats,
    Tokens,
    Tool,
    Turn,
)
from penstock.apps.recorder.search import Words
from penstock.model.errors import InvalidOption
from penstock.model.not_found import NotFound

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

HOUR = 3_600_000
DAY = 24 * HOUR
WINDOW = 100
"""So many decisions, the latest, make the acceptance rate."""
MOST = 500
SHORTEST_BEGINNING = 4
LATEST = 1 << 62
EVERY = SessionFilter()

R = TypeVar("R", bound=msgspec.Struct)
# Within the class, `list` is its method.
Rows = list[SessionRow]
Messages = list[MessageRow]
Hits = list[Hit]
Counts = list[tuple[int, int]]


class SessionNotFound(NotFound):
    """An id that no recorded session has, or that several begin with."""

    def __init__(self, known_as: str, several: Sequence[str] = ()) -> None:
        self.known_as = known_as
        self.several = tuple(several)
        told = f"Several sessions begin with {known_as!r}, such as {', '.join(self.several[:3])}"
        self.args = (
            f"{told}; type more of it."
            if several
            else f"No session is {known_as!r}; `penstock recorder sessions` lists them.",
        )


class Sessions:
    """`Sessions(app)`: what was recorded, as pages, commands and the API show it.

    `tenant` narrows to one tenant; None sees all. Spans of time are UTC milliseconds.
    """

    def __init__(self, app: "Penstock") -> None:
        self._app = app

    async def list(self, where: SessionFilter = EVERY) -> Rows:
        """List sessions, those with the latest activity first."""
        before_at, before_id = _place(where.before)
        asked = {
            **_narrowed(where.tenant, where.platform, where.project, where.since, where.until),
            "before_at": before_at,
            "before_id": before_id,
            "status": where.status,
            "limit": max(1, min(where.limit, MOST)),
        }

        def question(tx: Any) -> list[SessionRow]:
            rows = tx.recorder.rows("sessions", {**asked, "quiet_at": tx.now - HOUR})
            return [_session(row, tx.now) for row in rows]

        return await self._app.read(question)

    async def get(self, known_as: str, *, tenant: str | None = None) -> SessionView:
        """Find a session by its id, that of its conversation, or how one of them begins."""
        asked = {"tenant": tenant, "known_as": known_as, "beyond": known_as + "\U0010ffff"}

        def question(tx: Any) -> SessionView | list[str]:
            queries = tx.recorder
            rows = queries.rows("sessions_known_as", asked) if known_as else []
            exact = [row for row in rows if known_as in (row[0], row[2])]
            if len(exact or rows) != 1 or (not exact and len(known_as) < SHORTEST_BEGINNING):
                return [str(row[0]) for row in exact or rows]
            row = _session((exact or rows)[0], tx.now)
            of = (row.id,)
            return SessionView(
                row=row,
                turns=[_turn(each) for each in queries.rows("turns_of", of)],
                tools=[_record(Tool, each) for each in queries.rows("tools_of", of)],
                changes=[_record(CodeChange, each) for each in queries.rows("changes_of", of)],
                entries=[_record(Entry, each) for each in queries.rows("entries_of", of)],
                commits=[_commit(each) for each in queries.rows("commits_of", of)],
                spent=[
                    Spent(model=model, agent_id=agent or None, tokens=_tokens(model, *counts))
                    for model, agent, *counts in queries.rows("spent_of", of)
                ],
                insights=[_record(Insight, each) for each in queries.rows("insights_of", of)],
            )

        found = await self._app.read(question)
        if isinstance(found, SessionView):
            return found
        raise SessionNotFound(known_as, found)

    async def of_commit(self, commit: str, *, tenant: str | None = None) -> Rows:
        """The sessions in which a commit was made, by its hash or how that begins."""
        if len(commit) < SHORTEST_BEGINNING:
            raise InvalidOption("commit", commit, "4 characters of its hash or more")
        asked = {"tenant": tenant, "hash": commit, "beyond": commit + "g"}

        def question(tx: Any) -> Rows:
            return [_session(row, tx.now) for row in tx.recorder.rows("sessions_of_commit", asked)]

        return await self._app.read(question)

    async def messages(self, conversation_id: str, *, after: int = 0, limit: int = 100) -> Messages:
        """Messages of a conversation in their order; `after` is a sequence to go on from."""
        asked = {
            "conversation_id": conversation_id,
            "after": after,
            "limit": max(1, min(limit, MOST)),
        }

        def question(tx: Any) -> Messages:
            rows = list(tx.recorder.rows("messages_of", asked))
            while (missing := _missing(_by_message(rows))) and rows:
                more = {**asked, "after": rows[-1][3], "limit": missing}
                rest = list(tx.recorder.rows("messages_of", more))
                if not rest:
                    break
                rows += rest
            return [_message(parts) for parts in _by_message(rows).values()]

        return await self._app.read(question)

    async def stats(
        self,
        *,
        tenant: str | None = None,
        platform: str | None = None,
        project: str | None = None,
        since: int | None = None,
        until: int | None = None,
    ) -> Stats:
        """Figures of the sessions that were at work in a span of time."""
        asked = _narrowed(tenant, platform, project, since, until)
        return await self._app.read(lambda tx: _stats(tx, asked))

    async def active(self, *, tenant: str | None = None, since: int, until: int) -> Counts:
        """How many sessions were at work in each hour in which any was: its begin, the number."""
        asked = _narrowed(tenant, None, None, since, until)
        rows = await self._app.read(lambda tx: tx.recorder.rows("active_by_hour", asked))
        return [(int(hour) * HOUR, int(count)) for hour, count in rows]

    async def search(
        self,
        text: str,
        *,
        tenant: str | None = None,
        conversation_id: str | None = None,
        limit: int = 20,
    ) -> Hits:
        """Find messages with all of these words, the latest first.

        `"two words"` stand beside each other, and `conf*` is how one begins.
        """
        words = Words(text)
        if not words:
            return []
        asked = {
            "tenant": tenant,
            "conversation_id": conversation_id,
            "limit": max(1, min(limit, MOST)),
            "words": words.as_query(table_store(self._app, "A search").dialect),
        }
        rows = await self._app.read(lambda tx: tx.recorder.rows("search", asked))
        return [
            Hit(
                conversation_id=conversation,
                message_id=message,
                role=role,
                at=at,
                snippet=words.snippet(content),
                platform=platform,
                title=title or "",
            )
            for conversation, message, role, at, content, platform, title in rows
        ]


def entropy(counts: Sequence[int]) -> float:
    """How various something is, in bits: 0 if all of it is alike."""
    total = sum(counts)
    return -sum(count / total * log2(count / total) for count in counts if count) + 0.0


def _stats(tx: Any, asked: dict[str, Any]) -> Stats:
    queries = tx.recorder
    count, turns, tools, failures, interruptions, *_ = queries.row("totals", asked)
    changes, direct, rejected, iterations, decided, productivity = queries.row(
        "sums_of_metrics", asked
    )
    window = [each for (each,) in queries.rows("last_decisions", {**asked, "limit": WINDOW})]
    by_model = [
        Spent(model=model, agent_id=None, tokens=_tokens(model, *counts))
        for model, *counts in queries.rows("spent_by_model", asked)
    ]
    return Stats(
        sessions=int(count),
        active=int(queries.value("count_active", {**asked, "since": tx.now - HOUR})),
        turns=int(turns),
        tools=int(tools),
        failures=int(failures),
        interruptions=int(interruptions),
        acceptance_rate=_share(sum(each != "rejected" for each in window), len(window)),
        direct_accept_rate=_share(direct, decided),
        rejection_rate=_share(rejected, decided),
        iteration_rate=_share(iterations, changes),
        response=_percentiles(queries.row("response_percentiles", asked)),
        latency={
            name: found
            for name, *figures in queries.rows("tool_percentiles", asked)
            if (found := _percentiles(figures)) is not None
        },
        diversity=entropy([int(each) for _, each in queries.rows("tool_counts", asked)]),
        productivity=None if productivity is None else float(productivity),
        tokens=_sum([each.tokens for each in by_model]),
        by_model=by_model,
        by_day=_days(queries, asked),
    )


def _days(queries: Any, asked: dict[str, Any]) -> list[Day]:
    spent: dict[int, list[Tokens]] = {}
    for day, model, *counts in queries.rows("spent_by_day", asked):
        spent.setdefault(int(day), []).append(_tokens(model, *counts))
    decided = {int(day): counts for day, *counts in queries.rows("decided_by_day", asked)}
    days: list[Day] = []
    for number, sessions, turns, tools, failures, productivity in queries.rows("by_day", asked):
        day = int(number)
        tokens = _sum(spent.get(day, []))
        days.append(
            Day(
                date=datetime.fromtimestamp(day * DAY / 1000, UTC).date().isoformat(),
                sessions=int(sessions),
                turns=int(turns),
                tools=int(tools),
                failures=int(failures),
                tokens=tokens.input + tokens.output + tokens.cache_write + tokens.cache_read,
                cost=tokens.cost or 0.0,
                acceptance_rate=_share(*decided.get(day, (0, 0))),
                productivity=None if productivity is None else float(productivity),
            )
        )
    return days


def _narrowed(
    tenant: str | None,
    platform: str | None,
    project: str | None,
    since: int | None,
    until: int | None,
) -> dict[str, Any]:
    return {
        "tenant": tenant,
        "platform": platform,
        "project": project,
        "since": since or 0,
        "until": LATEST if until is None else until,
    }


def _session(row: Sequence[Any], now: int) -> SessionRow:
    *plain, spent, acceptance_rate, productivity = row
    id_, platform, session_id, tenant_id, title, project, branch, model, *figures = plain
    started_at, last_at, ended_at, turns, tools, failures, changes, messages = figures
    status = _status(last_at, ended_at, now)
    parts = [each.rsplit(" ", 5) for each in spent.split("|")] if spent else []
    return SessionRow(
        id=id_,
        platform=platform,
        session_id=session_id,
        tenant_id=tenant_id,
        title=title,
        project=project,
        branch=branch,
        model=model,
        status=status,
        started_at=started_at,
        last_at=last_at,
        ended_at=ended_at,
        turns=turns,
        tools=tools,
        failures=failures,
        changes=changes,
        messages=messages,
        tokens=_sum([_tokens(model, *map(int, counts)) for model, *counts in parts]),
        acceptance_rate=acceptance_rate,
        productivity=productivity,
    )


def _status(last_at: int, ended_at: int | None, now: int) -> str:
    if ended_at is not None:
        return "complete"
    return "active" if last_at >= now - HOUR else "quiet"


def _tokens(
    model: str | None, given: int, output: int, write: int, write_1h: int, read: int
) -> Tokens:
    """Tokens of one model, as rows count them, with what they cost."""
    counts = {"output": int(output), "cache_write": int(write), "cache_read": int(read)}
    if not (given or any(counts.values())):
        return Tokens()
    dollars = cost(model, given=int(given), cache_write_1h=int(write_1h), **counts)
    return Tokens(input=int(given), cost=dollars, **counts)


def _sum(parts: Sequence[Tokens]) -> Tokens:
    """All of them together; the cost is None if none of their prices is known."""
    known = [each.cost for each in parts if each.cost is not None]
    return Tokens(
        input=sum(each.input for each in parts),
        output=sum(each.output for each in parts),
        cache_write=sum(each.cache_write for each in parts),
        cache_read=sum(each.cache_read for each in parts),
        cost=sum(known) if known else None,
    )


def _turn(row: Sequence[Any]) -> Turn:
    n, status, started_at, ended_at, prompt, answer, model, *rest = row
    *counts, response_ms, agent_id, branch = rest
    return Turn(
        n=n,
        status=status,
        started_at=started_at,
        ended_at=ended_at,
        prompt=prompt,
        answer=answer,
        model=model,
        tokens=_tokens(model, *counts),
        response_ms=response_ms,
        agent_id=agent_id,
        branch=branch,
    )


def _commit(row: Sequence[Any]) -> Commit:
    hash_, branch, at, files, subject = row
    return Commit(
        hash=hash_, branch=branch, at=at, files=msgspec.json.decode(files), subject=subject
    )


def _by_message(rows: Sequence[Sequence[Any]]) -> dict[str, list[Sequence[Any]]]:
    """Rows by the message that they are, or are a part of; parts whose first was read before go."""
    found: dict[str, list[Sequence[Any]]] = {}
    for row in rows:
        part = _part(row)
        if part is None or part["part"] == 1:
            found[row[0]] = [row]
        elif part["of"] in found:
            found[part["of"]].append(row)
    return found


def _missing(messages: dict[str, list[Sequence[Any]]]) -> int:
    """How many parts of messages were not read yet."""
    wanted = ((_part(parts[0]), len(parts)) for parts in messages.values())
    return sum(part["parts"] - count for part, count in wanted if part is not None)


def _part(row: Sequence[Any]) -> dict[str, Any] | None:
    """Which part of which message a row is; None if it is all of one."""
    if '"parts"' not in row[7]:
        return None
    told: dict[str, Any] = msgspec.json.decode(row[7])
    return told


def _message(parts: Sequence[Sequence[Any]]) -> MessageRow:
    """A message of its parts; whoever goes on after it goes on after the last of them."""
    content = "".join(part[2] for part in parts)
    first, last = parts[0], parts[-1]
    return _record(MessageRow, (*first[:2], content, last[3], *first[4:]))


def _record(kind: type[R], row: Sequence[Any]) -> R:
    """A row whose columns are the fields of a record, in their order; further ones are left."""
    return kind(**dict(zip(kind.__struct_fields__, row, strict=False)))


def _share(part: int, whole: int) -> float | None:
    return int(part) / int(whole) if whole else None


def _percentiles(figures: Sequence[Any]) -> Percentiles | None:
    count, p50, p95, p99 = figures
    if not count:
        return None
    return Percentiles(count=int(count), p50=float(p50), p95=float(p95), p99=float(p99))


def _place(before: str | None) -> tuple[int, str]:
    """Where a list goes on: the `place` of a session."""
    if before is None:
        return LATEST, ""
    at, _, id_ = before.partition("-")
    if not at.isdecimal():
        raise InvalidOption("before", before, "the place of a session")
    return int(at), id_
