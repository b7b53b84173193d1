"""Sessions for tests: demo stories played into an application, and views made by hand."""

from typing import Any

from penstock import Penstock
from penstock.apps.recorder.captured import conversation_id
from penstock.apps.recorder.demo import RETRIES, Story, played
from penstock.apps.recorder.learnings import EXTRACTION, Learnings
from penstock.apps.recorder.learnings import record as record_learning
from penstock.apps.recorder.records import (
    CodeChange,
    Commit,
    LearningFilter,
    SessionRow,
    SessionView,
    Tokens,
    Tool,
    Turn,
)
from penstock.apps.recorder.writing import write
from penstock.events.event import NewEvent
from penstock.events.pool import catch_up

RECORDER = "penstock.apps.recorder.extension:recorder"
NOON = 1_800_000_000_000


async def record(
    app: Penstock, story: Story = RETRIES, session: str = "s1", *, tenant: str = ""
) -> str:
    """Play a story that began an hour ago and let consumers apply it; the id of its session."""
    begins = app.store.clock.now() - 3_600_000
    captured = [each._replace(tenant_id=tenant) for each in played(story, session, begins)]
    await write(app, captured)
    await catch_up(app)
    return conversation_id(tenant, story.platform, session)


async def learn(app: Penstock, session_id: str = "s1", **fields: Any) -> str:
    """Something that was learned from a session; its id."""
    found = {
        "category": "bug_fix",
        "title": "Keep a retry budget with its work",
        "content": "One that lives in the loop is reset by every answer.",
        "confidence": 0.8,
        "tags": ["retries"],
        **fields,
    }
    payload = {
        "version": "1",
        "outcome": "extracted",
        "value": 0.7,
        "source": "offline",
        "learnings": [found],
    }
    event = NewEvent(
        event_type=EXTRACTION, session_id=session_id, platform="claude_code", payload=payload
    )
    await app.transact(lambda tx: record_learning(app, tx, event))
    rows = await Learnings(app).list(LearningFilter())
    return next(row.id for row in rows if row.title == found["title"])


def a_tool(n: int, at: int, **fields: Any) -> Tool:
    """A tool that took a second, `at` seconds after noon."""
    given: dict[str, Any] = {
        "n": n,
        "turn": 1,
        "tool_use_id": f"call-{n}",
        "name": "Bash",
        "summary": "make test",
        "status": "ok",
        "started_at": NOON + 1_000 * at,
        "duration_ms": 1_000,
    }
    return Tool(**(given | fields))


def a_turn(n: int, at: int, until: int, **fields: Any) -> Turn:
    """A turn between two seconds after noon."""
    given: dict[str, Any] = {
        "n": n,
        "status": "complete",
        "started_at": NOON + 1_000 * at,
        "ended_at": NOON + 1_000 * until,
        "prompt": "Why?",
        "answer": "Because.",
        "model": "claude-sonnet-4-5",
        "tokens": Tokens(input=10, output=20, cost=0.01),
    }
    return Turn(**(given | fields))


def a_change(n: int, at: int, decision: str | None = "accepted") -> CodeChange:
    """An edit, `at` seconds after noon."""
    return CodeChange(
        n=n,
        turn=1,
        tool=None,
        file_path="src/a.py",
        kind="edit",
        added=3,
        removed=1,
        at=NOON + 1_000 * at,
        decision=decision,
    )


def a_commit(at: int) -> Commit:
    """A commit, `at` seconds after noon."""
    return Commit(hash="4f2a91c0", branch="main", at=NOON + 1_000 * at, files=["src/a.py"])


def a_view(turns: list[Turn], tools: list[Tool] | None = None, **fields: Any) -> SessionView:
    """A session of these parts."""
    tools = tools or []
    last = max([NOON, *(turn.ended_at or turn.started_at for turn in turns)])
    row = SessionRow(
        id="ab" * 16,
        platform="claude_code",
        session_id="s1",
        tenant_id="",
        title="Why?",
        project="checkout",
        branch="main",
        model="claude-sonnet-4-5",
        status="complete",
        started_at=NOON,
        last_at=last,
        ended_at=last,
        turns=len(turns),
        tools=len(tools),
        failures=sum(tool.status == "failed" for tool in tools),
        changes=0,
        messages=2 * len(turns),
        tokens=Tokens(input=100, output=200, cost=0.5),
        acceptance_rate=None,
        productivity=None,
    )
    parts: dict[str, Any] = {
        "changes": [],
        "entries": [],
        "commits": [],
        "spent": [],
        "insights": [],
    }
    return SessionView(row=row, turns=turns, tools=tools, **(parts | fields))
