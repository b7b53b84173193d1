"""`remote.recorder`: what another machine has recorded, through its server."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from msgspec.structs import asdict

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
from penstock.model.clock import iso
from penstock.model.documents import record

if TYPE_CHECKING:
    from penstock.remote.client import Remote

EVERY_SESSION = SessionFilter()
EVERY_LEARNING = LearningFilter()


class RemoteRecorder:
    """What `app.recorder` is, for a program elsewhere."""

    def __init__(self, remote: "Remote") -> None:
        self._remote = remote
        self.sessions = RemoteSessions(remote)
        self.learnings = RemoteLearnings(remote)

    async def caught(self, *, session: str | None = None, since: int | None = None) -> list[Caught]:
        """What each rule of the sanitiser has taken out."""
        asked = _asked(session=session, since=since)
        answer = await self._remote.ask("GET", f"recorder/caught?{asked}")
        return [record(Caught, each) for each in answer["rules"]]


class RemoteSessions:
    """`remote.recorder.sessions`."""

    def __init__(self, remote: "Remote") -> None:
        self._remote = remote

    async def list(self, where: SessionFilter = EVERY_SESSION) -> list[SessionRow]:
        """List sessions, those with the latest activity first."""
        answer = await self._remote.ask("GET", f"recorder/sessions?{_asked(**asdict(where))}")
        return [record(SessionRow, each) for each in answer["sessions"]]

    async def get(self, known_as: str) -> SessionView:
        """Find a session by its id, that of its conversation, or how one of them begins."""
        answer = await self._remote.ask("GET", f"recorder/sessions/{quote(known_as, safe='')}")
        return record(SessionView, answer)

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
        asked = _asked(tenant=tenant, platform=platform, project=project, since=since, until=until)
        return record(Stats, await self._remote.ask("GET", f"recorder/stats?{asked}"))

    async def search(
        self, text: str, *, tenant: str | None = None, limit: int = 20
    ) -> Sequence[Hit]:
        """Find messages with all of these words, the latest first."""
        asked = _asked(text=text, tenant=tenant, limit=limit)
        answer = await self._remote.ask("GET", f"recorder/search?{asked}")
        return [record(Hit, each) for each in answer["hits"]]


class RemoteLearnings:
    """`remote.recorder.learnings`."""

    def __init__(self, remote: "Remote") -> None:
        self._remote = remote

    async def list(self, where: LearningFilter = EVERY_LEARNING) -> list[Learning]:
        """Learnings, the latest first."""
        given = asdict(where)
        asked = _asked(session=given.pop("conversation_id"), **given)
        answer = await self._remote.ask("GET", f"recorder/learnings?{asked}")
        return [record(Learning, each) for each in answer["learnings"]]

    async def get(self, learning_id: str) -> Learning:
        """One of them, by its id."""
        return record(Learning, await self._remote.ask("GET", _path(learning_id)))

    async def approve(self, learning_id: str) -> Learning:
        """Approve a learning; if publishing is switched on, it is published from here on."""
        return record(Learning, await self._remote.ask("POST", f"{_path(learning_id)}/approve"))

    async def reject(self, learning_id: str) -> Learning:
        """Reject a learning."""
        return record(Learning, await self._remote.ask("POST", f"{_path(learning_id)}/reject"))

    async def edit(
        self,
        learning_id: str,
        *,
        title: str | None = None,
        content: str | None = None,
        category: str | None = None,
        tags: Sequence[str] | None = None,
    ) -> Learning:
        """Change what a learning says, as long as nothing of it was published."""
        told = {"title": title, "content": content, "category": category, "tags": tags}
        change = {name: value for name, value in told.items() if value is not None}
        return record(Learning, await self._remote.ask("PATCH", _path(learning_id), change))

    async def revoke(self, learning_id: str, reason: str = "") -> Learning:
        """Withdraw a learning that was published; copies that others hold stay."""
        path = f"{_path(learning_id)}/revoke"
        return record(Learning, await self._remote.ask("POST", path, {"reason": reason}))


def _path(learning_id: str) -> str:
    return f"recorder/learnings/{quote(learning_id, safe='')}"


def _asked(**given: Any) -> str:
    told = {name: value for name, value in given.items() if value is not None}
    for name in ("since", "until"):
        if name in told:
            told[name] = iso(told[name])
    return urlencode(told)
