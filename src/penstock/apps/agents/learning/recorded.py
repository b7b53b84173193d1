"""Learn from sessions of coding assistants, as the recorder's events tell of them.

It is off unless `[penstock.agents.learning] recorder = true`. Nothing of the recorder is used but
the events in the log, which its sanitiser has cleaned.
"""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.apps.agents.learning.jobs import process_later
from penstock.apps.agents.sessions.records import ACTIVE, CLOSED, Turn, written
from penstock.events.consumer import Consumer, Role, consumer_of
from penstock.events.event import Event, Session

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

NAME = "agents.sessions"
PLATFORMS = ("claude_code", "cursor", "gemini_cli", "antigravity", "codex", "copilot")
TYPES = (
    "user_prompt",
    "assistant_response",
    "tool_use",
    "error",
    "session_start",
    "session_end",
)
HOOK = "hook"
"""What a transcript or telemetry tells of a session, its hooks have told as well."""
LONGEST = 20_000
"""What a tool wrote is kept so far; what it was asked and whether it worked say more."""

_PROMPTS = ("prompt", "userPrompt", "user_prompt")
_ANSWERS = (
    *("last_assistant_message", "lastAssistantMessage", "last-assistant-message"),
    *("prompt_response", "response", "text"),
)
_TOOLS = ("tool_name", "toolName")
_RESPONSES = (
    "tool_response",
    "toolResponse",
    "toolResult",
    "tool_result",
    "tool_output",
    "output",
)
_ERRORS = ("error", "error_message", "errorMessage")


def make_consumer(app: "Penstock") -> Consumer | None:
    """Make the consumer, if the settings say so."""
    settings = app.extensions.settings("agents").learning
    if not settings.recorder:
        return None
    made = Recorded(app, learns=settings.automatic)
    return consumer_of(made, name=NAME, types=TYPES, role=Role.OPTIONAL)


def session_id_of(session: Session) -> str:
    """The id under which a recorded session is learned from."""
    told = "\n".join(session.key).encode("utf-8", "surrogatepass")
    return f"recorded-{blake2b(told, digest_size=12).hexdigest()}"


class Recorded:
    """Keeps what was asked, answered and done as turns; all that it knows is in its tables."""

    def __init__(self, app: "Penstock", *, learns: bool) -> None:
        self._app = app
        self._learns = learns

    def apply(self, tx: Any, events: Sequence[Event]) -> None:
        """Take in events, those of a session in their order."""
        by_session: dict[Session, list[Event]] = {}
        for event in events:
            if event.platform in PLATFORMS and event.metadata.get("source", HOOK) == HOOK:
                by_session.setdefault(event.session, []).append(event)
        for session, theirs in by_session.items():
            self._apply(tx, session, theirs)

    def _apply(self, tx: Any, session: Session, events: list[Event]) -> None:
        known = session_id_of(session)
        person = next((event.person for event in events if event.person), None)
        tx.agents.run("open_session", _opened(known, session, events[0], person))
        held = tx.agents.row("hold_session", {"id": known, "tenant": session.tenant_id})
        if held is None or held[2] == "archived":
            return
        tenant_id, user_id, _, count, last_active_at = held
        for event in events:
            turn = turn_of_event(event, count + 1)
            if turn is None:
                continue
            row = {
                **msgspec.structs.asdict(turn),
                "session_id": known,
                "tenant_id": tenant_id,
                "user_id": user_id,
                "succeeded": None if turn.succeeded is None else int(turn.succeeded),
                "metadata": written(turn.metadata),
            }
            tx.agents.run("add_turn", row)
            count, last_active_at = turn.n, max(last_active_at, turn.at)
        tx.agents.run("continue_session", {"id": known, "turns": count, "at": last_active_at})
        ended = [event for event in events if event.event_type == "session_end"]
        if ended:
            tx.agents.run("end_session", {"id": known, "status": CLOSED})
            if self._learns:
                process_later(self._app, _ForEvent(tx, ended[-1]), tenant_id, None, [known])

    def reset(self, tx: Any, session: Session) -> None:
        """Throw away what was taken in of a session; what was learned from it stays."""
        known = session_id_of(session)
        tx.agents.run("drop_turns", (known,))
        tx.agents.run("drop_session", (known,))

    def digest(self, tx: Any, session: Session) -> list[Any]:
        """All that was taken in of a session, to be compared."""
        known = session_id_of(session)
        return [
            tx.agents.row("session", {"id": known, "tenant": session.tenant_id}),
            *tx.agents.rows("turns_of_session", (known, 0, 1 << 62)),
        ]


class _ForEvent:
    """The transaction of a consumer, which asks of which event a job came."""

    def __init__(self, tx: Any, event: Event) -> None:
        self._tx = tx
        self._event = event

    def enqueue(self, call: Any) -> Any:
        """Enqueue a call that the event has made due, once."""
        return self._tx.enqueue(call, event=self._event)


def _opened(known: str, session: Session, first: Event, person: str | None) -> dict[str, Any]:
    told = {"source": "recorder", "platform": session.platform, "session": session.session_id}
    return {
        "id": known,
        "tenant_id": session.tenant_id,
        "workspace_id": None,
        "user_id": person,
        "started_at": first.timestamp,
        "last_active_at": first.timestamp,
        "expires_at": None,
        "status": ACTIVE,
        "turns": 0,
        "metadata": written(told),
    }


def turn_of_event(event: Event, n: int) -> Turn | None:
    """What an event tells of a session, as its nth turn; None if it is no turn."""
    payload = event.payload
    if event.event_type == "user_prompt":
        return _turn(event, n, "user", _text(payload, _PROMPTS))
    if event.event_type == "assistant_response":
        return _turn(event, n, "assistant", _text(payload, _ANSWERS))
    if event.event_type == "error":
        return _turn(event, n, "assistant", _text(payload, (*_ERRORS, *_ANSWERS)), succeeded=False)
    if event.event_type == "tool_use":
        return _tool_turn(event, n)
    return None


def _tool_turn(event: Event, n: int) -> Turn | None:
    """A tool that has ended; of those that begin nothing is known yet, and MCP tells of itself."""
    payload = event.payload
    call = payload.get("toolCall")
    name = _text(payload, _TOOLS) or (_text(call, ("name",)) if isinstance(call, Mapping) else "")
    error, response = _text(payload, _ERRORS), _text(payload, _RESPONSES)
    if not name or not (error or response) or "mcp" in (event.hook_type or "").lower():
        return None
    worked = not error and not any(_failed(payload.get(each)) for each in _RESPONSES)
    return _turn(event, n, "tool", error or response, skill_id=name, succeeded=worked)


def _failed(response: Any) -> bool:
    """Whether what a tool answered says that it failed."""
    return isinstance(response, Mapping) and bool(
        response.get("error")
        or response.get("is_error")
        or response.get("exit_code")
        or response.get("resultType", "success") != "success"
    )


def _turn(
    event: Event,
    n: int,
    role: str,
    text: str,
    *,
    skill_id: str | None = None,
    succeeded: bool | None = None,
) -> Turn | None:
    if not text:
        return None
    return Turn(
        n=n,
        role=role,
        content=text[:LONGEST],
        skill_id=skill_id,
        succeeded=succeeded,
        at=event.timestamp,
        metadata={"event_id": event.event_id},
    )


def _text(payload: Mapping[str, Any], names: Sequence[str]) -> str:
    """The first of some fields that says something, as text."""
    for name in names:
        found = payload.get(name)
        if found:
            said = found if isinstance(found, str) else msgspec.json.encode(found).decode()
            return said.replace("\0", "")
    return ""
