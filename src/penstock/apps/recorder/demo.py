"""Sessions to look at before there are any: played as their assistants' hooks would tell them.

Everything takes the way of a real session, the sanitiser included. The secrets in it are made up.
"""

from collections.abc import Iterator, Mapping
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.apps.recorder.capture import capture, cleaner
from penstock.apps.recorder.captured import Captured, digest
from penstock.apps.recorder.gate import cleaner_of
from penstock.apps.recorder.writing import write

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.apps.recorder.capture import Clean

SEED = 16
DAY_MS = 86_400_000
HOUR_MS = 3_600_000
DAYS = 14
LIVE_MS = 300_000
LIVE_PACE = 1.4
PREFIX = "demo-"
"""How the assistants' own ids of these sessions begin."""

NAMES: Mapping[str, Mapping[str, str]] = {
    "claude_code": {
        "start": "SessionStart",
        "prompt": "UserPromptSubmit",
        "before": "PreToolUse",
        "after": "PostToolUse",
        "failed": "PostToolUseFailure",
        "denied": "PermissionDenied",
        "compact": "PreCompact",
        "helper": "SubagentStart",
        "helped": "SubagentStop",
        "answer": "Stop",
        "end": "SessionEnd",
    },
    "codex": {
        "start": "SessionStart",
        "prompt": "UserPromptSubmit",
        "before": "PreToolUse",
        "after": "PostToolUse",
        "answer": "Stop",
        "end": "SessionEnd",
    },
    "gemini_cli": {
        "start": "SessionStart",
        "prompt": "BeforeAgent",
        "before": "BeforeTool",
        "after": "AfterTool",
        "answer": "AfterAgent",
        "end": "SessionEnd",
    },
    "cursor": {
        "start": "sessionStart",
        "prompt": "beforeSubmitPrompt",
        "before": "preToolUse",
        "after": "postToolUse",
        "failed": "postToolUseFailure",
        "answer": "afterAgentResponse",
        "end": "sessionEnd",
    },
    "copilot": {
        "start": "sessionStart",
        "prompt": "userPromptSubmitted",
        "before": "preToolUse",
        "after": "postToolUse",
        "failed": "postToolUseFailure",
        "answer": "agentStop",
        "end": "sessionEnd",
    },
}
"""What the steps of a story are called by each assistant."""


class Step(NamedTuple):
    """One step of a story: what it is, and how many seconds after the one before."""

    what: str
    after: float
    told: Mapping[str, Any]


class Story(NamedTuple):
    """A session: by which assistant, in which project, and what happens."""

    platform: str
    project: str
    branch: str
    model: str
    steps: tuple[Step, ...]


def prompt(text: str, after: float = 45) -> Step:
    """Somebody asks for something."""
    return Step("prompt", after, {"prompt": text})


def tool(
    name: str, given: Mapping[str, Any], output: str, seconds: float, *, failed: bool = False
) -> Step:
    """A model uses a tool."""
    told = {"tool_name": name, "tool_input": given, "output": output, "seconds": seconds}
    return Step("failed" if failed else "tool", 2.5, told)


def edit(path: str, old: str, new: str) -> Step:
    """A model edits a file."""
    given = {"file_path": path, "old_string": old, "new_string": new}
    return tool("Edit", given, f"The file {path} has been updated.", 0.08)


def answer(text: str, tokens: int = 1_800) -> Step:
    """A model answers."""
    return Step("answer", 6, {"text": text, "tokens": tokens})


def _assembled(*parts: str) -> str:
    """A made-up secret; in one piece it would look like somebody's."""
    return "".join(parts)


RETRIES = Story(
    "claude_code",
    "checkout",
    "fix/retry-budget",
    "claude-sonnet-4-5",
    (
        prompt("The payment webhook retries for ever when the bank answers 429. Find out why.", 1),
        tool("Grep", {"pattern": "retry", "path": "src"}, "src/payments/webhook.py: 41, 58", 0.4),
        tool("Read", {"file_path": "src/payments/webhook.py"}, "def deliver(event): …", 0.1),
        tool(
            "Bash",
            {"command": "pytest tests/payments -q"},
            "2 failed, 18 passed in 9.31s",
            9.8,
            failed=True,
        ),
        edit(
            "src/payments/webhook.py",
            "budget = RETRIES\nwhile budget:\n    send(event)",
            "budget = event.retries_left\nwhile budget:\n    send(event)\n    budget -= 1",
        ),
        tool("Bash", {"command": "pytest tests/payments -q"}, "20 passed in 8.90s", 9.2),
        answer(
            "The retry budget was reset by every 429, so the loop never ended. The root cause was "
            "that the budget lived in the loop and not on the event. The fix keeps it on the "
            "event: always store a retry budget with the work it belongs to.",
            2_400,
        ),
        prompt(
            "Good. Log the budget too, and try it on the sandbox with "
            + _assembled("AKIA", "QZ7RWLT5", "XPB3KDVM")
            + "; mail the result to "
            + _assembled("mira.hahn", "@", "north-bakery.de"),
            130,
        ),
        edit(
            "src/payments/webhook.py",
            "    budget -= 1",
            '    budget -= 1\n    log.info("retry budget", left=budget)',
        ),
        tool("Bash", {"command": "make sandbox"}, "3 events delivered, 1 retried twice", 21.5),
        tool(
            "Bash",
            {"command": "git commit -am 'Keep the retry budget on the event'"},
            "[fix/retry-budget 4f2a91c] Keep the retry budget on the event\n 1 file changed",
            0.6,
        ),
        Step("commit", 0.2, {"subject": "Keep the retry budget on the event"}),
        answer("It is logged with every attempt, and the sandbox delivered all three events."),
    ),
)

REVIEW = Story(
    "claude_code",
    "warehouse",
    "feature/lots",
    "claude-opus-4-5",
    (
        prompt("Review the migration that adds lots to stock, before I run it tonight.", 1),
        tool("Glob", {"pattern": "migrations/*.sql"}, "migrations/0041_lots.sql", 0.2),
        tool("Read", {"file_path": "migrations/0041_lots.sql"}, "ALTER TABLE stock ADD …", 0.1),
        Step("helper", 3, {"agent_id": "a1", "agent_type": "explore"}),
        tool("Grep", {"pattern": "stock\\(", "path": "src"}, "31 matches in 12 files", 1.4),
        tool("Read", {"file_path": "src/stock/model.py"}, "class Stock: …", 0.1),
        Step("helped", 4, {"agent_id": "a1", "text": "Twelve files read stock without a lot."}),
        tool("WebFetch", {"url": "https://www.postgresql.org/docs/"}, "", 12.0, failed=True),
        answer(
            "Do not run it as it is: ADD COLUMN with a volatile default rewrites the whole table "
            "under an exclusive lock. Prefer to add the column without a default, fill it in "
            "batches, and set NOT NULL last.",
            5_200,
        ),
        prompt("Then write it that way.", 260),
        Step("compact", 1, {"trigger": "auto"}),
        tool(
            "Write",
            {
                "file_path": "migrations/0042_lots_in_steps.sql",
                "content": "ALTER TABLE stock ADD COLUMN lot TEXT;\n-- filled in batches\n",
            },
            "File created",
            0.1,
        ),
        tool("Bash", {"command": "make migrate-dry-run"}, "0042 would take 4 ms", 31.0),
        answer("We decided on three steps; the dry run holds its lock for 4 ms.", 3_100),
    ),
)

BUTTONS = Story(
    "cursor",
    "shopfront",
    "dark-mode",
    "gpt-5",
    (
        prompt("The buttons are unreadable in dark mode.", 1),
        tool("read_file", {"target_file": "src/button.css"}, ".button { color: #333 }", 0.3),
        tool(
            "edit_file",
            {"file_path": "src/button.css", "old_string": "#333", "new_string": "var(--text)"},
            "Applied",
            0.4,
        ),
        answer("The colour was fixed; it follows the theme now."),
        prompt("Not on the primary one, please: it must stay white.", 8),
        tool(
            "edit_file",
            {
                "file_path": "src/button.css",
                "old_string": "var(--text)",
                "new_string": "var(--on-accent)",
            },
            "Applied",
            0.4,
        ),
        answer("The primary button keeps its own colour."),
    ),
)

QUERY = Story(
    "gemini_cli",
    "reports",
    "main",
    "gemini-2.5-pro",
    (
        prompt("Why does the monthly report take two minutes?", 1),
        tool("run_shell_command", {"command": "make explain"}, "Seq Scan on orders", 14.2),
        tool("read_file", {"absolute_path": "reports/monthly.sql"}, "SELECT … FROM orders", 0.2),
        tool("replace", {"file_path": "reports/monthly.sql"}, "Successfully modified", 0.3),
        tool("run_shell_command", {"command": "make explain"}, "Index Scan using orders_m", 1.1),
        answer(
            "The report cast the date column, so its index could not be used. Use a range on the "
            "bare column instead of a function on it: two minutes became one second."
        ),
    ),
)

UPGRADE = Story(
    "codex",
    "notifier",
    "python-3.13",
    "gpt-5-codex",
    (
        prompt("Bring this to Python 3.13.", 1),
        tool("shell", {"command": "uv python pin 3.13"}, "Pinned", 0.8),
        tool("shell", {"command": "make test"}, "Exit code 1: No module named 'cgi'", 22.0),
        tool("shell", {"command": "make test"}, "Exit code 1: No module named 'imp'", 21.0),
        tool("apply_patch", {"input": "*** Update File: app/mail.py"}, "Success", 0.2),
        tool("shell", {"command": "make test"}, "212 passed", 24.0),
        answer("cgi and imp are gone in 3.13; email.message and importlib take their place."),
    ),
)

READING = Story(
    "copilot",
    "handbook",
    "main",
    "claude-sonnet-4-5",
    (
        prompt("Write a short page on how we do releases.", 1),
        tool("view", {"path": "docs"}, "index.md", 0.2),
        tool("create", {"path": "docs/releases.md"}, "Created", 0.1),
        answer("docs/releases.md says it on one page."),
    ),
)

STORIES = (RETRIES, REVIEW, BUTTONS, QUERY, UPGRADE, READING)


class Told(NamedTuple):
    """What a hook is given: when, for which event, and its JSON."""

    at: int
    event: str
    payload: dict[str, Any]


def told(story: Story, session: str, begins: int, pace: float = 1.0) -> Iterator[Told]:
    """A story as its assistant tells it to hooks, from a time on; a larger `pace` takes longer."""
    return (each for each in _happens(story, session, begins, pace) if isinstance(each, Told))


def played(
    story: Story, session: str, begins: int, pace: float = 1.0, clean: "Clean | None" = None
) -> Iterator[Captured]:
    """The same as it is captured, with what git and a transcript tell beside hooks."""
    clean = clean or cleaner()[0]
    for each in _happens(story, session, begins, pace):
        if isinstance(each, Captured):
            yield each
        else:
            captured = capture(story.platform, each.event, each.payload, each.at, clean)
            about = {**captured.metadata, "git_branch": story.branch}
            yield captured._replace(platform=story.platform, timestamp=each.at, metadata=about)


def _happens(story: Story, session: str, begins: int, pace: float) -> Iterator["Told | Captured"]:
    names = NAMES[story.platform]
    at, calls, turn = float(begins), 0, 0

    def tell(what: str, **payload: Any) -> Iterator[Told]:
        if what in names:
            common = {"session_id": session, "cwd": f"/srv/{story.project}", "model": story.model}
            document = {**common, **payload, "hook_event_name": names[what]}
            yield Told(round(at), names[what], document)

    yield from tell("start", source="startup")
    for step in story.steps:
        at += 1_000 * step.after * pace
        if step.what == "prompt":
            turn += 1
            yield from tell("prompt", prompt=step.told["prompt"])
        elif step.what in ("tool", "failed"):
            calls += 1
            call = {name: step.told[name] for name in ("tool_name", "tool_input")}
            call["tool_use_id"] = f"{session}-{calls}"
            yield from tell("before", **call)
            at += 1_000 * step.told["seconds"]
            took = round(1_000 * step.told["seconds"])
            if step.what == "failed" and "failed" in names:
                yield from tell("failed", **call, error=step.told["output"], duration_ms=took)
            else:
                output = {"stdout": step.told["output"]}
                yield from tell("after", **call, tool_response=output, duration_ms=took)
        elif step.what == "answer":
            text = step.told["text"]
            yield _usage(story, session, round(at), turn, step.told["tokens"])
            said = {"last_assistant_message": text, "prompt_response": text, "text": text}
            yield from tell("answer", **said)
        elif step.what == "commit":
            yield _commit(story, session, round(at), step.told["subject"])
        else:
            yield from tell(step.what, last_assistant_message=step.told.get("text"), **step.told)
    at += 20_000
    yield from tell("end", reason="exit")


async def play(app: "Penstock", *, days: int = DAYS) -> int:
    """Write sessions of some days up to now; how many. Played again, they are there once."""
    now, count = app.store.clock.now(), 0
    for day in range(now // DAY_MS - days + 1, now // DAY_MS + 1):
        chance = Random(f"{SEED} {day}")
        for n, story in enumerate(chance.sample(STORIES, chance.randint(1, 3))):
            begins = day * DAY_MS + round(HOUR_MS * chance.uniform(7 + 3 * n, 9 + 3 * n))
            session, pace = f"{PREFIX}{day}-{n}", chance.uniform(0.6, 2.5)
            captured = list(played(story, session, begins, pace, cleaner_of(app, session)))
            if captured[-1].timestamp < now:
                await write(app, captured)
                count += 1
    return count


async def go_on(app: "Penstock") -> int:
    """Write what has happened by now in a session that is under way; how many events are new."""
    now = app.store.clock.now()
    slot = now // LIVE_MS
    story = STORIES[slot % len(STORIES)]
    session = f"{PREFIX}{slot}-live"
    live = played(story, session, slot * LIVE_MS, LIVE_PACE, cleaner_of(app, session))
    return (await write(app, [each for each in live if each.timestamp <= now])).events


def _commit(story: Story, session: str, at: int, subject: str) -> Captured:
    told = {
        "hash": digest(session, subject) + digest(subject)[:8],
        "branch": story.branch,
        "files": ["src/payments/webhook.py"],
        "subject": subject,
    }
    return Captured(
        platform=story.platform,
        session_id=session,
        hook_type="git",
        event_type="git_commit",
        event_id=f"{session}-commit-{at}",
        timestamp=at,
        payload=told,
        source="hook",
    )


def _usage(story: Story, session: str, at: int, turn: int, tokens: int) -> Captured:
    """What a transcript tells of an answer: the model, and what it took."""
    usage = {
        "input_tokens": tokens // 4,
        "output_tokens": tokens,
        "cache_creation_input_tokens": 3 * tokens,
        "cache_read_input_tokens": 22 * tokens,
    }
    message = {
        "id": f"{session}-{turn}",
        "model": story.model,
        "role": "assistant",
        "content": [],
        "usage": usage,
    }
    record = {"type": "assistant", "uuid": f"{session}-{turn}", "message": message}
    return Captured(
        platform=story.platform,
        session_id=session,
        hook_type="assistant",
        event_type="assistant_response",
        event_id=f"{session}-usage-{turn}",
        timestamp=at,
        payload=record,
        source="transcript",
    )
