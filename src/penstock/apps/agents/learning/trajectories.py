"""Sessions become trajectories: each task of a session with its verdict and its embedding."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from penstock.apps.agents.learning.records import SUCCESS, Trajectory, trajectory_of
from penstock.apps.agents.learning.verdicts import judge, skills_of, split, task_text
from penstock.apps.agents.sessions.records import (
    ARCHIVED,
    AgentSession,
    AgentSessionNotFound,
    Turn,
    session_of,
    written,
)
from penstock.apps.agents.sessions.sessions import all_turns, find_session
from penstock.apps.agents.vectors.embedder import embed, embedder_of
from penstock.apps.agents.vectors.store import TRAJECTORIES, Entry, vectors_of
from penstock.model.ids import derived_id

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

MOST_PATTERNS = 20
"""So many patterns may have been followed in one task."""


class Seen(Struct, frozen=True):
    """A session as it was read, and what was made of it."""

    session: AgentSession
    trajectories: list[Trajectory]


class Processed(Struct, frozen=True):
    """How many sessions were looked at, and how their tasks ended."""

    sessions: int
    verdicts: Mapping[str, int]


def trajectories_in(session: AgentSession, turns: Sequence[Turn]) -> list[Trajectory]:
    """The tasks of a session in which somebody asked for something, judged."""
    found: list[Trajectory] = []
    for task in split(turns):
        content = task_text(task)
        if not content:
            continue
        judged = judge(task)
        followed = list(dict.fromkeys(each for turn in task for each in _pattern_ids(turn)))
        helped = followed[:MOST_PATTERNS] if judged.verdict == SUCCESS else []
        trajectory_id = derived_id(
            max(0, session.started_at), "trajectory", session.tenant_id, session.id, str(task[0].n)
        )
        found.append(
            Trajectory(
                id=trajectory_id,
                tenant_id=session.tenant_id,
                workspace_id=session.workspace_id,
                user_id=session.user_id,
                session_id=session.id,
                turn_ids=[turn.n for turn in task],
                skill_ids=skills_of(task),
                content=content,
                started_at=task[0].at,
                ended_at=task[-1].at,
                verdict=judged.verdict,
                verdict_reason=judged.reason,
                metrics=replace(judged.metrics, credited=helped),
                embedding_id=trajectory_id,
                created_at=0,
            )
        )
    return found


def _pattern_ids(turn: Turn) -> list[str]:
    named = turn.metadata.get("patternIds", [])
    return [each for each in named if isinstance(each, str)] if isinstance(named, list) else []


async def read_sessions(
    app: "Penstock", session_ids: Sequence[str], tenant: str | None
) -> list[Seen]:
    """Read some sessions; those that are not there, or archived, are left out."""

    def question(tx: Any) -> list[Seen]:
        found: list[Seen] = []
        for session_id in session_ids:
            try:
                session = find_session(tx, session_id, tenant)
            except AgentSessionNotFound:
                continue
            if session.status != ARCHIVED:
                found.append(Seen(session, trajectories_in(session, all_turns(tx, session.id))))
        return found

    return await app.read(question)


async def unseen(app: "Penstock", tenant: str | None, limit: int) -> list[str]:
    """The sessions that are over and were not looked through yet, the oldest first."""
    asked = {"tenant": tenant, "limit": limit}
    rows = await app.read(lambda tx: tx.agents.rows("sessions_to_learn_from", asked))
    return [session_of(row).id for row in rows]


async def write(app: "Penstock", seen: Sequence[Seen]) -> Processed:
    """Keep the trajectories of some sessions with their vectors, in one commit."""
    made = [trajectory for each in seen for trajectory in each.trajectories]
    embedder, store = embedder_of(app), vectors_of(app)
    vectors: Any = await embed(embedder, [each.content for each in made]) if made else ()
    entries = {
        each.id: Entry(
            id=each.id,
            vector=vector,
            tenant_id=each.tenant_id,
            user_id=each.user_id,
            metadata={"verdict": each.verdict, "session_id": each.session_id},
            text=each.content,
            model=embedder.model,
        )
        for each, vector in zip(made, vectors, strict=True)
    }

    def work(tx: Any) -> Processed:
        verdicts: Counter[str] = Counter()
        sessions = 0
        for each in seen:
            told = {"id": each.session.id, "turns": each.session.turns}
            if not tx.agents.run("learned_from_session", told):
                continue  # it has gone on; it is looked at again
            sessions += 1
            _put(tx, store, each, entries)
            verdicts.update(trajectory.verdict for trajectory in each.trajectories)
        return Processed(sessions, dict(verdicts))

    return await app.transact(work)


def _put(tx: Any, store: Any, seen: Seen, entries: Mapping[str, Entry]) -> None:
    """Replace what was made of a session before, and give patterns their due."""
    tenant = seen.session.tenant_id
    before = [
        trajectory_of(row) for row in tx.agents.rows("trajectories_of_session", (seen.session.id,))
    ]
    known = {each.id: each for each in before}
    due: Counter[str] = Counter()
    for old in before:
        due.subtract(old.metrics.credited)
        if old.id not in {new.id for new in seen.trajectories}:
            tx.agents.run("drop_trajectory", (old.id,))
            store.remove(tx, TRAJECTORIES, [old.id], tenant=tenant)
    changed: list[Entry] = []
    for new in seen.trajectories:
        due.update(new.metrics.credited)
        old_one = known.get(new.id)
        if old_one is not None and replace(old_one, created_at=0) == new:
            continue
        tx.agents.run(
            "put_trajectory",
            {
                **asdict(new),
                "turn_ids": written(new.turn_ids),
                "skill_ids": written(new.skill_ids),
                "metrics": written(new.metrics),
                "now": tx.now,
            },
        )
        changed.append(entries[new.id])
    if changed:
        store.put(tx, TRAJECTORIES, changed)
    for pattern_id, more in sorted(due.items()):
        if more:
            tx.agents.run("credit_pattern", {"id": pattern_id, "tenant": tenant, "more": more})
