"""A session of an agent and its turns, as programs, pages and the API see them."""

from typing import Any

import msgspec
from msgspec import Struct

from penstock.model.errors import InvalidOption
from penstock.model.not_found import NotFound
from penstock.model.options import as_json, check_text

ROLES = ("user", "assistant", "tool", "system")

ACTIVE = "active"
CLOSED = "closed"
EXPIRED = "expired"
ARCHIVED = "archived"
STATUSES = (ACTIVE, CLOSED, EXPIRED, ARCHIVED)

MOST = 500
LATEST = 1 << 62
BEYOND = "~"
"""Comes after every id."""


class AgentSession(Struct, frozen=True, kw_only=True):
    """A session; times are UTC milliseconds. One that was archived names the file's row."""

    id: str
    tenant_id: str
    workspace_id: str | None
    user_id: str | None
    started_at: int
    last_active_at: int
    expires_at: int | None
    status: str
    turns: int
    archive_id: str | None
    restored_at: int | None
    metadata: dict[str, Any]


class Turn(Struct, frozen=True, kw_only=True):
    """What was said or done in a session: by whom, with which skill, and whether it worked."""

    n: int
    role: str
    content: str
    skill_id: str | None = None
    succeeded: bool | None = None
    at: int
    metadata: dict[str, Any] = {}


class NewTurn(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A turn to be added.

    One with a number `n` that is there already stays as it is, so that adding may be repeated;
    without one it comes last. `succeeded` is for tools. In `metadata`, `feedback` is what the user
    thought of it (`positive`, `negative`, or a rating from 1 to 5), `task` names what the turn
    belongs to, and `patternIds` are learned patterns that were followed.
    """

    role: str
    content: str
    skill_id: str | None = None
    succeeded: bool | None = None
    at: int | None = None
    n: int | None = None
    metadata: dict[str, Any] = {}

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise InvalidOption("role", self.role, f"one of: {', '.join(ROLES)}")
        if self.n is not None and self.n < 1:
            raise InvalidOption("n", self.n, "a number from 1")
        check_text("content", self.content)


class SessionFilter(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which sessions are wanted; `before` is the `place` of the last one that was seen."""

    tenant: str | None = None
    workspace: str | None = None
    user: str | None = None
    status: str | None = None
    before: str | None = None
    limit: int = 100

    def __post_init__(self) -> None:
        if self.status is not None and self.status not in STATUSES:
            raise InvalidOption("status", self.status, f"one of: {', '.join(STATUSES)}")


class Archive(Struct, frozen=True):
    """A file of archived sessions, below the folder of the agent workers."""

    id: str
    tenant_id: str
    state: str
    job_id: str
    file: str
    sha256: str
    sessions: int
    turns: int
    bytes: int
    created_at: int


class AgentSessionNotFound(NotFound):
    """An id that no session has."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        super().__init__(f"There is no session {session_id!r}; open one first.")


class SessionEnded(InvalidOption):
    """A session that takes no more turns."""

    def __init__(self, session_id: str, status: str) -> None:
        super().__init__("session", session_id, "one that is active")
        self.session_id = session_id
        self.status = status
        self.args = (f"Session {session_id!r} is {status} and takes no more turns; open another.",)


def place(session: AgentSession) -> str:
    """Where a session stands in the list: `before` of the page after it."""
    return f"{session.started_at}-{session.id}"


def placed(before: str | None) -> tuple[int, str]:
    """The time and the id that a place is made of."""
    if before is None:
        return LATEST, BEYOND
    at, _, session_id = before.partition("-")
    if not at.isdecimal() or not session_id:
        raise InvalidOption("before", before, "the place of a session")
    return int(at), session_id


def session_of(row: tuple[Any, ...]) -> AgentSession:
    """A row of the table as a record."""
    *known, metadata = row
    fields = AgentSession.__struct_fields__
    return AgentSession(
        **dict(zip(fields, known, strict=False)), metadata=msgspec.json.decode(metadata)
    )


def turn_of(row: tuple[Any, ...]) -> Turn:
    """A row of the table as a record."""
    n, role, content, skill_id, succeeded, at, metadata = row
    return Turn(
        n=n,
        role=role,
        content=content,
        skill_id=skill_id,
        succeeded=None if succeeded is None else bool(succeeded),
        at=at,
        metadata=msgspec.json.decode(metadata),
    )


def written(document: Any) -> str:
    """A document as its column holds it."""
    return as_json("metadata", document)
