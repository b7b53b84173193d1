"""Conversations for tests: what was said, written as hooks write it."""

from typing import Any

from penstock import Penstock
from penstock.apps.recorder.captured import Captured, Message, conversation_id
from penstock.apps.recorder.writing import write
from penstock.events.event import Session
from penstock.events.pool import catch_up

PLATFORM = "claude_code"
TYPES = {"user": "user_prompt", "assistant": "assistant_response", "tool": "tool_use"}

LOCKED = (
    ("user", "the nightly import dies with 'database is locked'"),
    ("assistant", "Let me look at how transactions begin."),
    (
        "assistant",
        (
            "The root cause is that a plain BEGIN is deferred: two writers both upgrade a read "
            "lock. The fix is to open every writing transaction with BEGIN IMMEDIATE, so the "
            "second waits."
        ),
    ),
    ("tool", "12 passed, exit status 0"),
    ("user", "thanks, that works"),
)


async def say(
    app: Penstock,
    *told: tuple[str, str],
    session: str = "s1",
    ends: bool = True,
    begin: int = 0,
    tenant: str = "",
) -> str:
    """Have things said in a session, which then ends; the id of the conversation."""
    now = app.store.clock.now()
    captured = [
        _captured(session, f"{session}-{begin + n}", now, TYPES[role], tenant, role, text)
        for n, (role, text) in enumerate(told)
    ]
    if ends:
        captured.append(_captured(session, f"{session}-end-{begin}", now, "session_end", tenant))
    await write(app, captured)
    await catch_up(app, "learnings")
    return conversation_id(tenant, PLATFORM, session)


def session_of(session: str = "s1", tenant: str = "") -> Session:
    """The session as the log knows it."""
    return Session(tenant, PLATFORM, session)


def _captured(
    session: str,
    event_id: str,
    at: int,
    event_type: str,
    tenant: str,
    role: str = "",
    text: str = "",
) -> Captured:
    messages = (Message(role, text),) if text else ()
    payload: dict[str, Any] = {"text": text, "cwd": f"/work/{text}"} if text else {}
    return Captured(
        platform=PLATFORM,
        session_id=session,
        hook_type="Hook",
        event_type=event_type,
        event_id=event_id,
        timestamp=at,
        payload=payload,
        source="import",
        messages=messages,
        tenant_id=tenant,
    )
