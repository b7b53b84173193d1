"""What a hook was told, made an event of the log: recognised, made safe, known again.

A hook loads this in a process that must be gone within milliseconds: it imports next to nothing.
"""

from __future__ import annotations  # not evaluated: a hook need not load typing

import os
from collections.abc import Mapping
from stat import S_ISREG

from penstock.apps.recorder.captured import (
    TOOL,
    Captured,
    Message,
    Redaction,
    digest,
    hook_event_id,
    written,
)
from penstock.apps.recorder.platforms import (
    ALIASES,
    CURSOR,
    GEMINI_CLI,
    HOOKS,
    SAME,
    UNKNOWN,
    Hook,
    hook_of,
    text_of,
    value,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Clean = Callable[[Any], tuple[Any, tuple[Redaction, ...]]]
    """Takes out of a JSON value what must not be kept, and says what it was by rule."""

LONGEST_READ = 400_000
LONGEST_KEPT = 200_000
"""Longer texts of a payload are cut, before and after they are made safe: no half of a secret is
left. What people, models and tools wrote is kept whole, as messages."""
WHOLE = 1 << 62

DEEPEST = 60

RULES = "PENSTOCK_RECORDER__RULES"
PSEUDONYMS = "PENSTOCK_RECORDER__PSEUDONYMS"

_OPEN, _CLOSE = "<private>", "</private>"


def capture(
    platform: str, hook_type: str, payload: Mapping[str, Any], now: int, clean: Clean
) -> Captured:
    """An event of what a hook of an assistant was told."""
    platform = recognised(platform, payload)
    told = value(payload, "hook_event_name")
    hook_type = told if isinstance(told, str) and told else hook_type or "unknown"
    hook = hook_of(platform, hook_type)
    payload = _readable(payload, hook)
    safe, messages, redactions = _made_safe(payload, hook, clean)
    session = value(payload, "session_id")
    session = session if isinstance(session, str) and session else f"none-{os.getsid(0)}"
    given = _milliseconds(payload.get("timestamp"))
    timestamp = now if given is None else given
    name = SAME.get(hook_type, hook_type) if platform == "copilot" else hook_type
    known_by = (platform, session, name)
    call = value(safe, "tool_use_id")
    if isinstance(call, str | int) and call != "":
        event_id = hook_event_id((*known_by, str(call)), timestamp, unique=True)
    elif given is not None:
        fields = [written(value(safe, field)) for field in _TELLING]
        event_id = hook_event_id((*known_by, str(given), *fields), timestamp, unique=True)
    else:
        event_id = hook_event_id((*known_by, written(safe)), timestamp, unique=False)
    return Captured(
        platform=platform,
        session_id=clean(session)[0][:500],
        hook_type=hook_type[:100],
        event_type=hook.event_type,
        event_id=event_id,
        timestamp=timestamp,
        payload=safe,
        source="hook",
        messages=messages,
        metadata=_metadata(payload, safe, hook, clean),
        redactions=redactions,
    )


def cleaner(
    session: str = "", rules: str | None = None, *, pseudonyms: bool | None = None
) -> tuple[Clean, str]:
    """The sanitiser as hooks use it, and the version of its rules.

    Rules of the user's own, and pseudonyms within a session, are what `[penstock.recorder]` says;
    a hook has them from its launcher, as it reads no settings.
    """
    from penstock.apps.recorder.sanitise import VERSION, Sanitiser

    if rules is None:
        rules = os.environ.get(RULES, "")
    if pseudonyms is None:
        pseudonyms = os.environ.get(PSEUDONYMS, "").lower() in ("1", "true", "yes")
    sanitiser = Sanitiser(rules or None, pseudonyms=pseudonyms, session=session)

    def clean(found: Any) -> tuple[Any, tuple[Redaction, ...]]:
        cleaned = sanitiser.value(found)
        return cleaned.value, tuple(
            Redaction(one.category, one.rule_id, one.hash, one.replacement, one.confidence)
            for one in cleaned.findings
        )

    return clean, VERSION


def stub(platform: str, hook_type: str, payload: Any, now: int, problem: str) -> Captured:
    """An event that says only that there was one: what it held could not be read or made safe."""
    told = payload if isinstance(payload, Mapping) else {}
    session, name = value(told, "session_id"), value(told, "hook_event_name") or hook_type
    hook = hook_of(platform, str(name))
    session = session if _is_plain(session) else "unreadable"
    return Captured(
        platform=platform if platform in HOOKS else "unknown",
        session_id=session,
        hook_type=name if hook is not UNKNOWN else "unknown",
        event_type=hook.event_type,
        event_id=hook_event_id((platform, session, os.urandom(8).hex()), now, unique=False),
        timestamp=now,
        payload={"left_out": problem},
        source="hook",
        metadata={"means": hook.means},
    )


def _is_plain(text: Any) -> bool:
    """Whether a text is one that no secret or name fits into: a number in hexadecimal digits."""
    return isinstance(text, str) and len(text) <= 40 and not set(text) - set("0123456789abcdef-")


_TELLING = ("tool_name", "tool_input", "prompt", "response", "error", "agent_id", "message")
"""What tells two events of one moment apart, whichever spelling they come in."""


def recognised(platform: str, payload: Mapping[str, Any]) -> str:
    """The assistant that ran the hook: some run what is installed for another one."""
    if "cursor_version" in payload or "generation_id" in payload:
        return "cursor"
    transcript = value(payload, "transcript_path")
    if isinstance(transcript, str):
        for folder, whose in _FOLDERS:
            if folder in transcript.replace("\\", "/"):
                return whose
    if platform not in ("claude_code", "cursor"):
        return platform
    name = value(payload, "hook_event_name")
    if "turn_id" in payload:
        return "codex"
    if "sessionId" in payload or "toolName" in payload:
        return "copilot"
    if name in GEMINI_CLI and name not in _CLAUDES:
        return "gemini_cli"
    if name in CURSOR:
        return "cursor"
    # Claude Code tells no time; Copilot does, in either spelling.
    return "copilot" if "timestamp" in payload else platform


_FOLDERS = (
    ("/.claude/", "claude_code"),
    ("/.codex/", "codex"),
    ("/.copilot/", "copilot"),
    ("/.cursor/", "cursor"),
    ("/.gemini/antigravity", "antigravity"),
    ("/.gemini/", "gemini_cli"),
)
_CLAUDES = ("SessionStart", "SessionEnd", "Notification")


def _readable(payload: Mapping[str, Any], hook: Hook) -> dict[str, Any]:
    """What is read of a payload: texts that become messages whole, others as far as is kept."""
    texts = {alias for _, field in hook.texts for alias in ALIASES.get(field, (field,))}
    return {
        shortened(str(name), 1_000, 0): shortened(each, WHOLE if name in texts else LONGEST_READ, 1)
        for name, each in payload.items()
    }


def _made_safe(
    payload: Mapping[str, Any], hook: Hook, clean: Clean
) -> tuple[dict[str, Any], tuple[Message, ...], tuple[Redaction, ...]]:
    """The payload without what must not be kept, the messages in it, and what else was found."""
    messages: list[Message] = []
    texts: dict[str, Any] = {}
    for role, field in hook.texts:
        alias = next((each for each in ALIASES.get(field, (field,)) if payload.get(each)), None)
        if alias is None:
            continue
        cleaned, found = clean({alias: payload[alias]})
        texts.update(cleaned)
        # Its name may have been taken for a secret's, and the whole of it replaced.
        content = "\n".join(text for text in map(text_of, cleaned.values()) if text)
        if content:
            about = _about(payload) if role == TOOL else {}
            messages.append(Message(role, content, None, about, found))
    others = {name: each for name, each in payload.items() if name not in texts}
    rest, redactions = clean(others)
    return shortened({**rest, **texts}, LONGEST_KEPT, 0), tuple(messages), redactions


def _about(payload: Mapping[str, Any]) -> dict[str, str]:
    """Which call of a tool a message is of."""
    found = {name: value(payload, name) for name in ("tool_name", "tool_use_id")}
    return {name: each[:200] for name, each in found.items() if isinstance(each, str)}


def shortened(found: Any, longest: int, depth: int) -> Any:
    """A JSON value without its private parts, and without what is too long or too deep."""
    if isinstance(found, str):
        text = without_private(found) if _OPEN in found else found
        if len(text) > longest:
            text = f"{text[:longest]}… [{len(text) - longest} more characters]"
        return _writable(text)
    if depth >= DEEPEST:
        return None if isinstance(found, Mapping | list) else found
    if isinstance(found, Mapping):
        return {
            shortened(str(name), 1_000, depth): shortened(each, longest, depth + 1)
            for name, each in found.items()
        }
    if isinstance(found, list):
        return [shortened(each, longest, depth + 1) for each in found]
    return found


def _writable(text: str) -> str:
    """A text as every store takes it: without NUL, and without half a surrogate pair."""
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()
    return text


def without_private(text: str) -> str:
    """A text without what stands in `<private>…</private>`; one that stays open ends it."""
    kept = []
    while True:
        before, opened, rest = text.partition(_OPEN)
        kept.append(before)
        if not opened:
            return "".join(kept)
        _, closed, text = rest.partition(_CLOSE)
        if not closed:
            return "".join(kept)


def _milliseconds(given: Any) -> int | None:
    """A time that an assistant told, in milliseconds or as ISO 8601; None if it is none."""
    if isinstance(given, int | float) and not isinstance(given, bool):
        at = int(given)
    elif isinstance(given, str):
        from datetime import UTC, datetime

        try:
            told = datetime.fromisoformat(given)
        except ValueError:
            return None
        at = round((told if told.tzinfo else told.replace(tzinfo=UTC)).timestamp() * 1000)
    else:
        return None
    return at if 1_000_000_000_000 <= at < 10_000_000_000_000 else None


def _metadata(
    payload: Mapping[str, Any], safe: Mapping[str, Any], hook: Hook, clean: Clean
) -> dict[str, Any]:
    """What columns of the log are filled from, and what the folder tells of its repository."""
    metadata: dict[str, Any] = {"means": hook.means}
    for ours, theirs in _COLUMNS.items():
        found = value(safe, theirs)
        if isinstance(found, str | int | float) and not isinstance(found, bool):
            metadata[ours] = int(found) if ours == "duration_ms" and found != str(found) else found
    cwd = _folder(payload)
    if cwd:
        if "cwd" not in safe:
            metadata["cwd"] = _folder(safe)
        root, branch, head = repository(cwd)
        metadata["workspace_hash"] = digest(root)
        metadata["project_name"] = clean(os.path.basename(root))[0]
        if branch:
            metadata["git_branch"] = clean(branch)[0]
        if head:
            metadata["git_head"] = head
    return metadata


def _folder(payload: Mapping[str, Any]) -> str:
    """The folder that an assistant works in; empty if it says none."""
    roots = value(payload, "workspaces")
    first = roots[0] if isinstance(roots, list) and roots else None
    found = payload.get("cwd") or first
    return found if isinstance(found, str) else ""


_COLUMNS = {
    "message_model": "model",
    "agent_id": "agent_id",
    "duration_ms": "duration_ms",
    "version": "version",
}


def repository(folder: str) -> tuple[str, str, str]:
    """The root of the repository that a folder is in, its branch, and the commit it is at.

    Only read: no process is started for it. Without a repository the folder itself is the root.
    """
    at = os.path.abspath(folder)
    while True:
        git = os.path.join(at, ".git")
        if os.path.exists(git):
            break
        parent = os.path.dirname(at)
        if parent == at:
            return os.path.abspath(folder), "", ""
        at = parent
    if os.path.isfile(git):  # a worktree, or a submodule
        pointer = _line(git).removeprefix("gitdir:").strip()
        git = os.path.normpath(os.path.join(at, pointer))
    head = _line(os.path.join(git, "HEAD"))
    name = head.removeprefix("ref:").strip()
    if name == head:
        return at, "", _commit(head)
    shared = _line(os.path.join(git, "commondir"))
    common = os.path.normpath(os.path.join(git, shared)) if shared else git
    if ".." in name or os.path.isabs(name):
        return at, "", ""
    commit = _commit(_line(os.path.join(common, name))) or _packed(common, name)
    return at, name.removeprefix("refs/heads/"), commit


def _line(path: str) -> str:
    return _read(path, 1_000).partition("\n")[0].strip()


def _packed(git: str, name: str) -> str:
    lines = _read(os.path.join(git, "packed-refs"), 1 << 20).splitlines()
    return next((_commit(line[:40]) for line in lines if line[40:].strip() == name), "")


def _read(path: str, most: int) -> str:
    """The beginning of a file; nothing if it is none, such as a pipe that would keep us waiting."""
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        if not S_ISREG(os.fstat(opened).st_mode):
            return ""
        return os.read(opened, most).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(opened)


def _commit(text: str) -> str:
    is_hash = len(text) in (40, 64) and all(letter in "0123456789abcdef" for letter in text)
    return text if is_hash else ""
