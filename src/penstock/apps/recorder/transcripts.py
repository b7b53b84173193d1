"""Transcripts of Claude Code: files that are opened with care, and records that become events.

A file has one JSON document a line. An event has the id of its record, so a record that comes
again, in a file that was read before or in a copy that another session began with, is there once.
"""

import json
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from penstock.apps.recorder.capture import LONGEST_KEPT, WHOLE, shortened
from penstock.apps.recorder.captured import MODEL, PERSON, TOOL, Captured, Message, digest
from penstock.apps.recorder.moments import TRANSCRIPT
from penstock.apps.recorder.platforms import text_of
from penstock.model.clock import from_iso
from penstock.model.errors import InvalidOption, PenstockError

if TYPE_CHECKING:
    from penstock.apps.recorder.capture import Clean
    from penstock.apps.recorder.captured import Redaction

PLATFORM = "claude_code"
LARGEST_FILE = 8 << 30
LONGEST_LINE = 64 << 20
CHUNK = 2 << 20
LARGEST_EVENT = 900_000
RESULTS = frozenset(
    {"structuredPatch", "type", "interrupted", "durationMs", "totalDurationMs", "agentId", "status"}
)
"""What is kept of a tool's own account of its result; the rest stands in the record once more."""


class UntrustedFile(PenstockError):
    """A file that is not read, because it may not be what it seems."""

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(f"{path} is not read: {problem}.")


def open_below(root: str, path: str) -> int:
    """Open a regular file of this user below a folder, following no link on the way; its fd.

    The path may come from anywhere: all checks are of what was opened.
    """
    inside = os.path.relpath(os.path.abspath(path), os.path.abspath(root))
    parts = inside.split(os.sep)
    if os.pardir in parts or os.path.isabs(inside):
        raise UntrustedFile(path, f"it is not below {root}")
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    folder = os.open(os.path.abspath(root), os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
    try:
        for n, part in enumerate(parts):
            last = n == len(parts) - 1
            try:
                opened = os.open(part, flags | (0 if last else os.O_DIRECTORY), dir_fd=folder)
            except OSError as error:
                raise UntrustedFile(path, f"it cannot be opened ({error.strerror})") from error
            os.close(folder)
            folder = opened
        found = os.fstat(folder)
        if not stat.S_ISREG(found.st_mode):
            raise UntrustedFile(path, "it is not a regular file")
        if hasattr(os, "getuid") and found.st_uid != os.getuid():
            raise UntrustedFile(path, "it belongs to another user")
        if found.st_size > LARGEST_FILE:
            raise UntrustedFile(path, f"it is larger than {LARGEST_FILE >> 30} GiB")
    except BaseException:
        os.close(folder)
        raise
    return folder


class Chunk(NamedTuple):
    """Whole lines of a file, where they end, and the time of the record before them."""

    data: bytes
    end: int
    since: int


def chunks(file: int, begin: int, since: int) -> Iterator[Chunk]:
    """Read whole lines from a place on; a line that is still being written is left.

    A line that is too long to be read is passed over.
    """
    position, rest, skipping = begin, b"", False
    while part := os.pread(file, CHUNK, position):
        position += len(part)
        end = part.rfind(b"\n") + 1
        if not end:
            rest = b"" if skipping else rest + part
            skipping = skipping or len(rest) > LONGEST_LINE
            rest = b"" if skipping else rest
            continue
        if skipping:
            first = part.index(b"\n") + 1
            whole, skipping = part[first:end], False
        else:
            whole = rest + part[:end]
        rest = part[end:]
        yield Chunk(whole, position - len(rest), since)
        since = _last_time(whole) or since


def _last_time(data: bytes) -> int | None:
    """The time of the last record that tells one."""
    at = data.rfind(b'"timestamp":"')
    return None if at < 0 else _milliseconds(data[at + 13 : at + 40].partition(b'"')[0].decode())


def _milliseconds(text: Any) -> int | None:
    if not isinstance(text, str):
        return None
    try:
        return from_iso(text)
    except InvalidOption:
        return None


def captured(chunk: Chunk, file_session: str, clean: "Clean") -> list[Captured]:
    """The events of a chunk, made safe; a line that is no JSON object is left out."""
    found: list[Captured] = []
    since = chunk.since
    sessions: dict[str, str] = {}
    for line in chunk.data.splitlines():
        record = _decoded(line)
        if isinstance(record, dict):
            at = _milliseconds(record.get("timestamp"))
            since = since if at is None else at
            told = record.get("sessionId")
            session = told if isinstance(told, str) and told else file_session
            if session not in sessions:
                sessions[session] = clean(session)[0][:500]
            found.append(_event(record, line, sessions[session], since, clean))
    return found


def _decoded(line: bytes) -> Any:
    """A line of JSON; None if it is none."""
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    try:
        return json.loads(line)  # it bears half a surrogate pair, as JavaScript writes one
    except ValueError:
        return None


def _event(record: dict[str, Any], line: bytes, session: str, at: int, clean: "Clean") -> Captured:
    kind = record.get("type")
    kind = kind if isinstance(kind, str) and _PLAIN.fullmatch(kind) else "unknown"
    uuid = record.get("uuid")
    unique = digest(uuid) if isinstance(uuid, str) and uuid else digest(session, str(line))
    try:
        payload, short = _lighter(record), len(line) <= LONGEST_KEPT
        if not short or any(each in line for each in _UNUSUAL):
            payload = shortened(payload, WHOLE, 0)
        payload, redactions = _made_safe(payload, clean)
        messages = tuple(_messages(payload))
        if not short:
            payload = shortened(payload, LONGEST_KEPT, 0)
    except Exception as error:
        redactions, messages = (), ()
        payload = {"left_out": f"it could not be made safe ({type(error).__name__})"}
    if len(line) > LARGEST_EVENT and len(msgspec.json.encode(payload)) > LARGEST_EVENT:
        payload = _bones(payload)
    return Captured(
        platform=PLATFORM,
        session_id=session,
        hook_type=f"transcript.{kind}",
        event_type=_event_type(kind, payload),
        event_id=f"transcript-{unique}",
        timestamp=at,
        payload=payload,
        source=TRANSCRIPT,
        messages=messages,
        metadata=_metadata(payload),
        redactions=redactions,
    )


_UNUSUAL = (b"<private", b"\\u003", b"\\u0000", b"\\ud", b"\\uD")
"""Without one of these, as JSON writes them, a short line has no private part, no NUL and no half
of a surrogate pair."""
_PLAIN = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"  # an id
    r"|\d{4}-\d\d-\d\dT[\d:.]+Z|\d{1,4}(?:\.\d{1,4}){2}"  # a time, a version
    r"|[a-z][a-z_-]{0,39}"  # a word
)
_AROUND = frozenset(
    {
        *("uuid", "parentUuid", "sessionId", "timestamp", "type", "subtype", "level", "userType"),
        *("version", "leafUuid", "role", "stop_reason", "service_tier", "usage"),
    }
)
"""What stands around texts. Most of a record's fields are such; in an id, a time or a word of
these the sanitiser has nothing to look for, and to ask it for each takes longer than for a text."""


def _made_safe(
    record: dict[str, Any], clean: "Clean"
) -> tuple[dict[str, Any], tuple["Redaction", ...]]:
    """A record without what must not be kept."""
    message = record.get("message")
    around = {name: each for name, each in record.items() if _is_plain(name, each)}
    rest = {name: each for name, each in record.items() if name not in around}
    within: dict[str, Any] = {}
    if isinstance(message, dict):
        within = {name: each for name, each in message.items() if _is_plain(name, each)}
        rest["message"] = {name: each for name, each in message.items() if name not in within}
    safe, redactions = clean(rest)
    if within and isinstance(safe.get("message"), dict):
        safe["message"] = {**within, **safe["message"]}
    return {**around, **safe}, redactions


def _is_plain(name: str, value: Any) -> bool:
    if value is None or isinstance(value, int):
        return True
    if name not in _AROUND:
        return False
    if isinstance(value, dict):
        return all(_is_plain(each, told) for each, told in value.items())
    return isinstance(value, str) and _PLAIN.fullmatch(value) is not None


def _lighter(record: dict[str, Any]) -> dict[str, Any]:
    """A record without pictures, and without what it holds twice."""
    found = dict(record)
    result = record.get("toolUseResult")
    if result is not None:
        told = result if isinstance(result, dict) else {}
        found["toolUseResult"] = {name: each for name, each in told.items() if name in RESULTS}
    message = record.get("message")
    if isinstance(message, dict) and isinstance(message.get("content"), list):
        content = [_without_picture(block) for block in message["content"]]
        found["message"] = {**message, "content": content}
    return found


def _without_picture(block: Any) -> Any:
    if not isinstance(block, dict):
        return block
    source = block.get("source")
    if isinstance(source, dict) and isinstance(source.get("data"), str):
        return {**block, "source": {**source, "data": f"[{len(source['data'])} characters]"}}
    if isinstance(block.get("content"), list):
        return {**block, "content": [_without_picture(each) for each in block["content"]]}
    return block


def _bones(payload: Mapping[str, Any]) -> dict[str, Any]:
    """What is left of a record that is too large: all but its texts, which are messages."""
    message = payload.get("message")
    kept = {name: each for name, each in payload.items() if not isinstance(each, dict | list)}
    if isinstance(message, Mapping):
        kept["message"] = {name: each for name, each in message.items() if name != "content"}
    return {**kept, "left_out": "its content is too large"}


def _event_type(kind: str, payload: Mapping[str, Any]) -> str:
    if kind == "assistant":
        return "assistant_response"
    if kind == "user":
        return "tool_use" if any(_results(payload)) else "user_prompt"
    if kind == "system" and payload.get("subtype") == "compact_boundary":
        return "compaction"
    return "context" if kind in ("summary", "ai-title") else "trace"


def _content(payload: Mapping[str, Any]) -> Any:
    message = payload.get("message")
    return message.get("content") if isinstance(message, Mapping) else None


def _results(payload: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    content = _content(payload)
    for block in content if isinstance(content, list) else ():
        if isinstance(block, Mapping) and block.get("type") == "tool_result":
            yield block


def _messages(payload: Mapping[str, Any]) -> Iterator[Message]:
    """What a person, a model or tools wrote."""
    if payload.get("type") not in ("user", "assistant") or payload.get("isMeta"):
        return
    content = _content(payload)
    blocks: Sequence[Any] = (
        content if isinstance(content, list) else [{"type": "text", "text": content}]
    )
    role = MODEL if payload["type"] == "assistant" else PERSON
    texts = [
        block["text"]
        for block in blocks
        if isinstance(block, Mapping)
        and block.get("type") == "text"
        and isinstance(block.get("text"), str)
    ]
    if any(texts):
        yield Message(role, "\n".join(texts))
    for block in _results(payload):
        text = text_of(block.get("content"))
        if text:
            about = {"tool_use_id": str(block.get("tool_use_id") or "")[:200]}
            yield Message(TOOL, text, None, about)


def _metadata(payload: Mapping[str, Any]) -> dict[str, Any]:
    """What columns of the log are filled from."""
    message = payload.get("message")
    told = message if isinstance(message, Mapping) else {}
    usage = told.get("usage")
    usage = usage if isinstance(usage, Mapping) else {}
    found = {
        "uuid": payload.get("uuid"),
        "parent_uuid": payload.get("parentUuid"),
        "request_id": payload.get("requestId"),
        "agent_id": payload.get("agentId"),
        "is_sidechain": payload.get("isSidechain"),
        "cwd": payload.get("cwd"),
        "version": payload.get("version"),
        "git_branch": payload.get("gitBranch"),
        "message_role": told.get("role"),
        "message_model": told.get("model"),
        "message_id": told.get("id"),
        "input_tokens": usage.get("input_tokens"),
        "output_tokens": usage.get("output_tokens"),
        "cache_creation_input_tokens": usage.get("cache_creation_input_tokens"),
        "cache_read_input_tokens": usage.get("cache_read_input_tokens"),
    }
    return {name: each for name, each in found.items() if isinstance(each, str | int)}
