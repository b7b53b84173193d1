"""`app.agents.sessions`: open one, add turns, close it; read, and bring back what was archived."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.apps.agents.sessions.records import (
    ACTIVE,
    ARCHIVED,
    CLOSED,
    LATEST,
    MOST,
    AgentSession,
    AgentSessionNotFound,
    Archive,
    NewTurn,
    SessionEnded,
    SessionFilter,
    Turn,
    placed,
    session_of,
    turn_of,
    written,
)
from penstock.model.errors import InvalidOption
from penstock.model.ids import new_id
from penstock.model.options import check_seconds, check_text

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

EVERY = SessionFilter()
PAGE = 1_000

# Within the class, `list` is its method.
Listed = list[AgentSession]
Turns = list[Turn]
Archives = list[Archive]


class Sessions:
    """Sessions of agents. `tenant` narrows to one tenant; without it all are seen."""

    def __init__(self, app: "Penstock") -> None:
        self._app = app

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
        """Open a session; one that is there already under this id is left as it is.

        It expires after `expires_in` seconds, or when the job `session-cleanup` finds it quiet.
        """
        if session_id == "":
            raise InvalidOption("session_id", session_id, "a text, or None for a new one")
        opened = new_id() if session_id is None else check_text("session_id", session_id)
        for name, value in (("tenant", tenant), ("workspace", workspace), ("user", user)):
            if value is not None:
                check_text(name, value)
        if expires_in is not None:
            check_seconds("expires_in", expires_in)
        held = written(metadata or {})

        def work(tx: Any) -> AgentSession:
            row = {
                "id": opened,
                "tenant_id": tenant,
                "workspace_id": workspace,
                "user_id": user,
                "started_at": tx.now,
                "last_active_at": tx.now,
                "expires_at": None if expires_in is None else tx.now + int(expires_in * 1000),
                "status": ACTIVE,
                "turns": 0,
                "metadata": held,
            }
            tx.agents.run("open_session", row)
            session = find_session(tx, opened)
            if session.tenant_id != tenant:
                raise InvalidOption("session_id", opened, "one that no other tenant has")
            return session

        return await self._app.transact(work)

    async def add(
        self, session_id: str, *turns: NewTurn, tenant: str | None = None
    ) -> AgentSession:
        """Add turns to an active session, all or none: `add(id, NewTurn(role=…, content=…))`."""
        rows = [(turn, written(turn.metadata)) for turn in turns]

        def work(tx: Any) -> AgentSession:
            held = tx.agents.row("hold_session", {"id": session_id, "tenant": tenant})
            if held is None:
                raise AgentSessionNotFound(session_id)
            tenant_id, user_id, status, count, last_active_at = held
            if status != ACTIVE:
                raise SessionEnded(session_id, status)
            for turn, metadata in rows:
                n = turn.n or count + 1
                if n > count + 1:
                    raise InvalidOption("n", n, f"the number of the next turn, {count + 1}")
                at = tx.now if turn.at is None else turn.at
                tx.agents.run(
                    "add_turn",
                    {
                        "session_id": session_id,
                        "n": n,
                        "tenant_id": tenant_id,
                        "user_id": user_id,
                        "role": turn.role,
                        "content": turn.content,
                        "skill_id": turn.skill_id,
                        "succeeded": None if turn.succeeded is None else int(turn.succeeded),
                        "at": at,
                        "metadata": metadata,
                    },
                )
                if n > count:
                    count = n
                    last_active_at = max(last_active_at, at)
            told = {"id": session_id, "turns": count, "at": last_active_at}
            tx.agents.run("continue_session", told)
            return find_session(tx, session_id)

        return await self._app.transact(work)

    async def close(self, session_id: str, *, tenant: str | None = None) -> AgentSession:
        """Close a session, and have it looked through for what is to be learned, in one commit."""
        learns: bool = self._app.extensions.settings("agents").learning.automatic

        def work(tx: Any) -> AgentSession:
            session = find_session(tx, session_id, tenant)
            ended = tx.agents.run("end_session", {"id": session_id, "status": CLOSED})
            if ended and learns:
                from penstock.apps.agents.learning.jobs import process_later

                process_later(self._app, tx, session.tenant_id, session.workspace_id, [session_id])
            return find_session(tx, session_id)

        return await self._app.transact(work)

    async def get(self, session_id: str, *, tenant: str | None = None) -> AgentSession:
        """Find a session by its id."""
        return await self._app.read(lambda tx: find_session(tx, session_id, tenant))

    async def list(self, where: SessionFilter = EVERY) -> Listed:
        """List sessions, those that were opened last first."""
        before_at, before_id = placed(where.before)
        asked = {
            "tenant": where.tenant,
            "workspace": where.workspace,
            "person": where.user,
            "status": where.status,
            "before_at": before_at,
            "before_id": before_id,
            "limit": max(1, min(where.limit, MOST)),
        }
        rows = await self._app.read(lambda tx: tx.agents.rows("sessions", asked))
        return [session_of(row) for row in rows]

    async def turns(
        self, session_id: str, *, after: int = 0, limit: int = 100, tenant: str | None = None
    ) -> Turns:
        """Read turns of a session in their order, those of an archived one from its file."""
        most = max(1, min(limit, MOST))

        def question(tx: Any) -> tuple[AgentSession, list[Turn]]:
            session = find_session(tx, session_id, tenant)
            rows = tx.agents.rows("turns_of_session", (session_id, after, most))
            return session, [turn_of(row) for row in rows]

        session, found = await self._app.read(question)
        if session.status != ARCHIVED:
            return found
        from penstock.apps.agents.sessions.archive import archived_turns

        held = await archived_turns(self._app, session)
        return [turn for turn in held if turn.n > after][:most]

    async def restore(self, session_ids: Sequence[str], *, tenant: str | None = None) -> Listed:
        """Bring archived sessions back into the tables, as they were; the file stays."""
        from penstock.apps.agents.sessions.archive import restore

        return [await restore(self._app, each, tenant) for each in session_ids]

    async def archives(
        self, *, tenant: str | None = None, before: str | None = None, limit: int = 100
    ) -> Archives:
        """List the files of archived sessions, the latest first."""
        asked = {"tenant": tenant, "before": before or "~", "limit": max(1, min(limit, MOST))}
        rows = await self._app.read(lambda tx: tx.agents.rows("archives", asked))
        return [Archive(*row) for row in rows]


def find_session(tx: Any, session_id: str, tenant: str | None = None) -> AgentSession:
    """The session of this id, refused if there is none."""
    row = tx.agents.row("session", {"id": session_id, "tenant": tenant})
    if row is None:
        raise AgentSessionNotFound(session_id)
    return session_of(row)


def all_turns(tx: Any, session_id: str) -> list[Turn]:
    """All turns of a session that is not archived."""
    rows = tx.agents.rows("turns_of_session", (session_id, 0, LATEST))
    return [turn_of(row) for row in rows]
