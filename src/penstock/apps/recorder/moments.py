"""What an event means for a conversation, in the same words for all assistants and all sources.

A hook tells one moment, a record of a transcript several: a text, tools, and what they cost.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from penstock.apps.recorder.captured import PERSON
from penstock.apps.recorder.changes import patched
from penstock.apps.recorder.platforms import HOOKS, hook_of, text_of, value
from penstock.events.event import Event

LONGEST_TEXT = 4_000
LONGEST_ERROR = 500
LONGEST_SUMMARY = 200
INTERRUPTED = "[Request interrupted by user"

TRANSCRIPT = "transcript"
STORE = "cursor_store"
TELEMETRY = "telemetry"
COUNTER = "telemetry_counter"
"""Points of a metric: they say how much was spent, and not by which answer."""
HOOK = "hook"

OURS = frozenset(
    {
        *("validation", "redaction", "extraction", "approval", "learning_edit", "supersession"),
        *("revocation", "model_answer", "erasure"),
    }
)
"""What we say about a session is not part of it."""


class Usage(NamedTuple):
    """Tokens of one answer of a model; `cache_write_1h` is a part of `cache_write`."""

    response: str
    input: int = 0
    output: int = 0
    cache_write: int = 0
    cache_write_1h: int = 0
    cache_read: int = 0


class Moment(NamedTuple):
    """One thing that happened in a conversation.

    `kind` is how `platforms.py` says what a hook means, with `usage`, `title` and `decision` for
    what only other sources tell. `turn_id` is the assistant's own name of a turn.
    """

    kind: str
    at: int
    source: str = HOOK
    text: str | None = None
    model: str | None = None
    agent: str = ""
    turn_id: str = ""
    tool_use_id: str = ""
    tool: str = ""
    input: Mapping[str, Any] = {}
    output: Any = None
    ok: bool | None = None
    interrupted: bool = False
    duration_ms: int | None = None
    usage: Usage | None = None
    uuid: str = ""
    parent: str | None = None
    ends: bool = False
    told: Mapping[str, Any] = {}


def moments(event: Event) -> Iterator[Moment]:
    """The moments of an event, in their order."""
    source = event.metadata.get("source", HOOK)
    read = _SOURCES.get(source)
    if read is not None:
        yield from read(event)
    elif event.event_type == "git_commit":
        yield Moment("commit", event.timestamp, told=event.payload)
    elif event.platform in HOOKS and event.hook_type:
        yield _of_hook(event)


def _of_hook(event: Event) -> Moment:
    payload = event.payload
    hook = hook_of(event.platform, event.hook_type or "")
    kind = _SAME.get(hook.means, hook.means)
    if kind == "model_before" and (payload.get("invocationNum") == 0 or value(payload, "prompt")):
        kind = "prompt"  # Antigravity's turns begin with the first call of the model
    text = None
    if hook.means == "turn":
        text = "\n".join(
            text_of(value(payload, name)) for writer, name in hook.texts if writer == PERSON
        )
    elif kind in _TEXTUAL:
        text = text_of(value(payload, hook.texts[0][1])) if hook.texts else ""
    output = value(payload, "tool_response")
    error = value(payload, "error")
    failed = kind == "tool_failed" or is_failure(output) or (output is None and bool(error))
    return Moment(
        kind="tool_after" if kind == "tool_failed" else kind,
        at=event.timestamp,
        text=cut(text or text_of(error)) if kind == "turn_failed" else cut(text),
        model=_name(value(payload, "model")),
        agent=str(value(payload, "agent_id") or "") if kind in _BY_AGENTS else "",
        turn_id=str(value(payload, "turn_id") or ""),
        tool_use_id=str(value(payload, "tool_use_id") or ""),
        tool=_tool_name(hook.means, payload),
        input=_tool_input(payload),
        output=_problem(output, error) if failed else output,
        ok=(not failed) if kind in ("tool_after", "tool_failed") else None,
        interrupted=bool(payload.get("is_interrupt") or _interrupted(output))
        or str(payload.get("status", "")) in ("aborted", "cancelled", "canceled"),
        duration_ms=_whole(value(payload, "duration_ms")),
        told=payload,
    )


_SAME = {
    "shell_before": "tool_before",
    "shell_after": "tool_after",
    "mcp_before": "tool_before",
    "mcp_after": "tool_after",
}
"""Cursor tells of some tools twice; both mean the same tool."""
_TEXTUAL = frozenset(
    {"prompt", "turn_end", "turn_failed", "answer", "subagent_end", "compact_after"}
)
_BY_AGENTS = frozenset(
    {
        *("tool_before", "tool_after", "tool_failed", "permission_denied", "permission_asked"),
        *("subagent_start", "subagent_end", "answer"),
    }
)


def _tool_name(means: str, payload: Mapping[str, Any]) -> str:
    name = value(payload, "tool_name")
    if name:
        return str(name)
    return "Shell" if means.startswith("shell") else ""


def _tool_input(payload: Mapping[str, Any]) -> Mapping[str, Any]:
    given = value(payload, "tool_input")
    if given is None and "command" in payload:
        given = {"command": payload["command"]}
    return decoded(given)


def decoded(given: Any) -> Mapping[str, Any]:
    """The arguments of a tool; some assistants give them as a text of JSON."""
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError:
            return {"input": given}
    return given if isinstance(given, Mapping) else {} if given is None else {"input": given}


def is_failure(output: Any) -> bool:
    """Whether a tool says of itself that it failed."""
    if not isinstance(output, Mapping):
        return False
    code = output.get("exit_code", output.get("exitCode"))
    return bool(
        output.get("is_error")
        or output.get("isError")
        or output.get("success") is False
        or output.get("error")
        or output.get("resultType") in ("failure", "denied", "rejected")
        or (isinstance(code, int) and code != 0)
    )


def _problem(output: Any, error: Any) -> Any:
    """What a tool that failed says of it, if it says so in a place of its own."""
    told = output.get("error") if isinstance(output, Mapping) else None
    return error or told or output


def _interrupted(output: Any) -> bool:
    return isinstance(output, Mapping) and bool(output.get("interrupted"))


def cut(text: str | None, longest: int = LONGEST_TEXT) -> str | None:
    """A text, or how it begins; None if there is nothing in it."""
    if not text:
        return None
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _name(model: Any) -> str | None:
    if isinstance(model, Mapping):
        model = model.get("id") or model.get("display_name")
    return model if isinstance(model, str) and model and not model.startswith("<") else None


def _whole(number: Any) -> int | None:
    return round(number) if isinstance(number, int | float) else None


SUMMARIES = (
    *("command", "file_path", "path", "notebook_path", "absolute_path", "target_file", "pattern"),
    *("query", "url", "description", "prompt", "subject", "skill", "input"),
    *("CommandLine", "TargetFile", "AbsolutePath"),
)


def summary(input_: Mapping[str, Any]) -> str:
    """What a tool was asked to do, in one line."""
    for name in SUMMARIES:
        found = input_.get(name)
        if isinstance(found, str) and "*** Begin Patch" in found:
            return cut(", ".join(patched(found)), LONGEST_SUMMARY) or "apply_patch"
        if isinstance(found, str) and found.strip():
            return cut(" ".join(found.split()), LONGEST_SUMMARY) or ""
        if isinstance(found, list) and found and all(isinstance(each, str) for each in found):
            return cut(" ".join(found), LONGEST_SUMMARY) or ""
    if not input_:
        return ""
    return cut(json.dumps(input_, ensure_ascii=False, separators=(",", ":")), LONGEST_SUMMARY) or ""


def _of_transcript(event: Event) -> Iterator[Moment]:
    """A record of Claude Code's transcript."""
    record = event.payload
    message = record.get("message")
    kind, at = record.get("type"), event.timestamp
    agent = str(record.get("agentId") or "")
    if record.get("isSidechain") and not agent:
        agent = "sidechain"
    base = Moment(
        "record",
        at,
        TRANSCRIPT,
        agent=agent,
        uuid=str(record.get("uuid") or ""),
        parent=record.get("parentUuid"),
        told=record,
    )
    if kind == "assistant" and isinstance(message, Mapping):
        yield from _answered(base, record, message)
    elif kind == "user" and isinstance(message, Mapping):
        yield from _asked(base, record, message)
    elif kind == "system" and record.get("subtype") == "compact_boundary":
        yield base._replace(kind="compact_after")
    elif kind in ("summary", "ai-title", "custom-title"):
        title = record.get("summary") or record.get("title") or record.get("aiTitle")
        yield base._replace(kind="title", text=text_of(title))
    else:
        yield base


def _answered(
    base: Moment, record: Mapping[str, Any], message: Mapping[str, Any]
) -> Iterator[Moment]:
    model = _name(message.get("model"))
    blocks = _blocks(message.get("content"))
    text = "\n".join(block["text"] for block in blocks if _is_text(block))
    yield base._replace(
        kind="answer", text=cut(text), model=model, ends=message.get("stop_reason") == "end_turn"
    )
    for block in blocks:
        if block.get("type") == "tool_use":
            yield base._replace(
                kind="tool_before",
                tool_use_id=str(block.get("id") or ""),
                tool=str(block.get("name") or ""),
                input=decoded(block.get("input")),
            )
    usage = message.get("usage")
    if model and isinstance(usage, Mapping):
        response = f"{message.get('id') or base.uuid}:{record.get('requestId') or ''}"
        yield base._replace(kind="usage", model=model, usage=_usage(response, usage))


def _usage(response: str, usage: Mapping[str, Any]) -> Usage:
    """Tokens as Anthropic counts them; where the sum of a cache is 0, its parts say more."""
    parts = usage.get("cache_creation")
    parts = parts if isinstance(parts, Mapping) else {}
    long = _count(parts.get("ephemeral_1h_input_tokens"))
    short = _count(parts.get("ephemeral_5m_input_tokens"))
    return Usage(
        response,
        _count(usage.get("input_tokens")),
        _count(usage.get("output_tokens")),
        _count(usage.get("cache_creation_input_tokens")) or long + short,
        long,
        _count(usage.get("cache_read_input_tokens")),
    )


def _asked(base: Moment, record: Mapping[str, Any], message: Mapping[str, Any]) -> Iterator[Moment]:
    """A record of role `user`: a prompt, or results of tools."""
    content = message.get("content")
    blocks = _blocks(content)
    results = [block for block in blocks if block.get("type") == "tool_result"]
    for block in results:
        output = block.get("content")
        yield base._replace(
            kind="tool_after",
            tool_use_id=str(block.get("tool_use_id") or ""),
            output=output,
            ok=not block.get("is_error"),
            interrupted=INTERRUPTED in text_of(output)[:200],
        )
    text = "\n".join(block["text"] for block in blocks if _is_text(block))
    if text.startswith(INTERRUPTED):
        yield base._replace(kind="interruption")
    elif text and not results and not record.get("isMeta") and not record.get("isCompactSummary"):
        yield base._replace(kind="prompt", text=cut(text))
    elif not results:
        yield base


def _blocks(content: Any) -> list[Mapping[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        return []
    return [block for block in content if isinstance(block, Mapping)]


def _is_text(block: Mapping[str, Any]) -> bool:
    return block.get("type") == "text" and isinstance(block.get("text"), str)


def _of_store(event: Event) -> Iterator[Moment]:
    """Something of Cursor's own store, as `cursor_store.py` wrote it."""
    told, at = event.payload, event.timestamp
    base = Moment("record", at, STORE, turn_id=str(told.get("turn_id") or ""), told=told)
    means = event.hook_type
    if means == "bubble.user":
        yield base._replace(kind="prompt", text=cut(text_of(told.get("text"))))
    elif means == "bubble.assistant":
        model = _name(told.get("model"))
        yield base._replace(kind="answer", text=cut(text_of(told.get("text"))), model=model)
        tool = told.get("tool")
        if isinstance(tool, Mapping):
            called = base._replace(
                tool_use_id=str(tool.get("id") or ""),
                tool=str(tool.get("name") or ""),
                input=decoded(tool.get("input")),
            )
            ok = tool.get("status") in (None, "completed", "success", "ok")
            yield called._replace(kind="tool_after", ok=ok, output=tool.get("result"))
        counts = told.get("tokens")
        if isinstance(counts, Mapping):
            usage = Usage(
                str(told.get("id")), _count(counts.get("input")), _count(counts.get("output"))
            )
            yield base._replace(kind="usage", model=model or "cursor", usage=usage)
    elif means == "composer":
        yield base._replace(kind="title", text=text_of(told.get("name")))
        if told.get("status") == "completed":
            yield base._replace(kind="turn_end", told={})


def _of_telemetry(event: Event) -> Iterator[Moment]:
    """A log record of Claude Code's telemetry, as `telemetry.py` wrote it."""
    told, at = event.payload, event.timestamp
    base = Moment("record", at, TELEMETRY, turn_id=str(told.get("prompt.id") or ""), told=told)
    model, tool = _name(told.get("model")), str(told.get("tool_name") or "")
    if event.hook_type == "api_request" and model:
        usage = Usage(
            str(told.get("request_id") or event.event_id),
            _count(told.get("input_tokens")),
            _count(told.get("output_tokens")),
            _count(told.get("cache_creation_tokens")),
            0,
            _count(told.get("cache_read_tokens")),
        )
        yield base._replace(kind="usage", model=model, usage=usage)
    elif event.hook_type == "token.usage" and model and "temporality" not in told:
        counts = [_count(told.get("value")) if told.get("type") == each else 0 for each in _COUNTED]
        usage = Usage(event.event_id, *counts)
        yield base._replace(kind="usage", source=COUNTER, model=model, usage=usage)
    elif event.hook_type == "user_prompt":
        yield base._replace(kind="prompt", text=cut(text_of(told.get("prompt"))))
    elif event.hook_type == "tool_decision":
        yield base._replace(kind="decision", tool=tool, ok=told.get("decision") == "accept")
    elif event.hook_type == "tool_result":
        yield base._replace(
            kind="tool_after",
            tool=tool,
            tool_use_id=str(told.get("tool_use_id") or ""),
            input=decoded(told.get("tool_input") or told.get("tool_parameters")),
            output=told.get("error"),
            ok=str(told.get("success")).lower() == "true",
            duration_ms=_count(told.get("duration_ms")),
        )


_COUNTED = ("input", "output", "cacheCreation", "", "cacheRead")
"""What the types of tokens are called, in the order of `Usage`; none is told of an hour's cache."""


def _count(number: Any) -> int:
    if isinstance(number, str) and number.isdecimal():
        return int(number)
    return max(0, round(number)) if isinstance(number, int | float) else 0


_SOURCES: Mapping[str, Callable[[Event], Iterator[Moment]]] = {
    TRANSCRIPT: _of_transcript,
    STORE: _of_store,
    TELEMETRY: _of_telemetry,
}
