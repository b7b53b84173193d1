"""Watch Cursor's own store: `state.vscdb`, a SQLite file of keys and JSON values.

The global file has `composerData:<composer>` (a conversation) and `bubbleId:<composer>:<bubble>` (a
message) in `cursorDiskKV`; that of a workspace has prompts and generations in `ItemTable`. It is
opened read-only and read on where the last look ended: rows that were written since have a greater
rowid, because Cursor replaces a row to change it. While an answer is being written its row changes
all the time, so a row is taken when it is the same at two looks. Keys that are not known are kept.
"""

import asyncio
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw
import msgspec

from penstock.apps.recorder.bulk import Kept, Position, keep, position_of, ready
from penstock.apps.recorder.capture import LONGEST_KEPT, WHOLE, shortened
from penstock.apps.recorder.captured import MODEL, PERSON, TOOL, Captured, Message, digest
from penstock.apps.recorder.gate import cleaner_of
from penstock.apps.recorder.moments import STORE, decoded
from penstock.apps.recorder.platforms import text_of
from penstock.apps.recorder.transcripts import UntrustedFile, open_below
from penstock.model.clock import from_iso
from penstock.model.errors import InvalidOption

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.apps.recorder.capture import Clean

PLATFORM = "cursor"
WORKSPACE = "cursor_workspace"
"""Under this, what belongs to no conversation is kept."""
KIND = "cursor_store"
FILE = "state.vscdb"
BATCH = 200
BUSY_MS = 200
LONGEST_UNKNOWN = 2_000
LARGEST_UNKNOWN = 100_000
BUBBLES = {1: "bubble.user", 2: "bubble.assistant"}


class Row(NamedTuple):
    """A row of a store, by its place."""

    rowid: int
    key: str
    value: bytes

    @property
    def composer(self) -> str:
        """The conversation that it belongs to; empty if it is one of a workspace."""
        return self.key.partition(":")[2].partition(":")[0]


def usual_folder() -> str:
    """Where Cursor keeps its files on this system."""
    if sys.platform == "darwin":
        return os.path.expanduser("~/Library/Application Support/Cursor")
    if sys.platform == "win32":
        return os.path.join(os.environ.get("APPDATA", ""), "Cursor")
    return os.path.expanduser("~/.config/Cursor")


def find(root: str) -> list[str]:
    """The stores below Cursor's folder: the global one first, then those of workspaces."""
    found = [os.path.join(root, "User", "globalStorage", FILE)]
    workspaces = os.path.join(root, "User", "workspaceStorage")
    if os.path.isdir(workspaces):
        found += [os.path.join(workspaces, name, FILE) for name in sorted(os.listdir(workspaces))]
    return [path for path in found if os.path.isfile(path)]


class Look(NamedTuple):
    """What one look at a store has found: some rows, and the greatest rowid of all."""

    rows: list[Row]
    greatest: int


def look(root: str, path: str, after: int, until: int | None) -> Look:
    """Read some rows after a place, up to another; the store is left as it is."""
    os.close(open_below(root, path))
    # Not `immutable`: it would read without a lock, and see half of what Cursor is writing.
    connection = apsw.Connection(f"file:{_quoted(path)}?mode=ro", flags=_READING)
    try:
        connection.set_busy_timeout(BUSY_MS)
        connection.execute("PRAGMA query_only = 1")
        connection.execute("BEGIN")
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        rows: list[Row] = []
        greatest = 0
        if "cursorDiskKV" in names:
            [(greatest,)] = connection.execute("SELECT coalesce(max(rowid), 0) FROM cursorDiskKV")
            asked = (after, greatest if until is None else until, BATCH)
            rows += [Row(*row) for row in connection.execute(_GLOBAL, asked)]
        if not rows and "ItemTable" in names:
            rows += [Row(0, *row) for row in connection.execute(_WORKSPACE)]
        return Look(rows, greatest)
    finally:
        connection.close()


_READING = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
_GLOBAL = """
SELECT rowid, key, CAST(value AS BLOB) FROM cursorDiskKV
WHERE rowid > ? AND rowid <= ? AND value IS NOT NULL ORDER BY rowid LIMIT ?
"""
_WORKSPACE = """
SELECT key, CAST(value AS BLOB) FROM ItemTable
WHERE key IN ('aiService.prompts', 'aiService.generations', 'composer.composerData') ORDER BY key
"""


def _quoted(path: str) -> str:
    return path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")


async def watch(app: "Penstock") -> int:
    """Take what is new in Cursor's stores, if the settings name its folder; the leader's pass."""
    named: str = app.extensions.settings("recorder").cursor
    if not named:
        return 0
    root = usual_folder() if named == "usual" else os.path.expanduser(named)  # noqa: ASYNC240
    count = 0
    for path in await asyncio.to_thread(find, root):
        try:
            count += (await take(app, root, path)).events
        except (UntrustedFile, apsw.Error):
            continue  # it is locked, or something else by now; the next look will tell
    return count


async def import_store(app: "Penstock", path: str, *, again: bool = False) -> Kept:
    """Take all of a store at once."""
    path = os.path.abspath(os.path.expanduser(path))  # noqa: ASYNC240
    return await take(app, os.path.dirname(path), path, waits=False, again=again)


async def take(
    app: "Penstock", root: str, path: str, *, waits: bool = True, again: bool = False
) -> Kept:
    """Take what is new in one store; if it `waits`, only what was there at the last look, too."""
    id_ = digest(KIND, os.path.abspath(path))  # noqa: ASYNC240
    known = await position_of(app, id_)
    position = known if known and not again else Position(id_, KIND, 0, "0", 0)
    until = int(position.mark) if waits else None
    kept = Kept(0, 0)
    while True:
        after, now = position.position, app.store.clock.now()
        rows, greatest = await asyncio.to_thread(look, root, path, after, until)
        last = max([row.rowid for row in rows if row.rowid], default=after)
        position = position._replace(position=last, mark=str(greatest), at=now)
        told = [
            one
            for row in rows
            for one in captured([row], path, now, cleaner_of(app, row.composer or path))
        ]
        events = ready(told, app.events.preparer, now)
        some = await keep(app, events, position, Counter())
        kept = Kept(*(a + b for a, b in zip(kept, some, strict=True)))
        if last == after:
            return kept


def captured(rows: Sequence[Row], path: str, now: int, clean: "Clean") -> list[Captured]:
    """What rows of a store tell, as events, made safe."""
    found: list[Captured] = []
    workspace = os.path.basename(os.path.dirname(path))
    for row in rows:
        kind, _, rest = row.key.partition(":")
        tells = _TELLS.get(kind)
        told = tells(rest, _json(row.value)) if tells is not None else [_unknown(row, rest)]
        found += [_captured(each, workspace, now, clean) for each in told]
    return found


class Told(NamedTuple):
    """One thing that a row tells: of which conversation, if of any, what it is, and its id."""

    composer: str
    means: str
    unique: str
    payload: Mapping[str, Any]
    at: int | None


def _bubbles(rest: str, value: Any) -> Iterator[Told]:
    composer, _, bubble = rest.partition(":")
    if isinstance(value, Mapping):
        means, told = _bubble(value)
        if told:
            yield Told(composer, means, bubble, {**told, "id": bubble}, _time(value))


def _composers(rest: str, value: Any) -> Iterator[Told]:
    if isinstance(value, Mapping):
        yield Told(rest, "composer", rest, _composer(value), _time(value, UPDATED))


def _all_composers(_rest: str, value: Any) -> Iterator[Told]:
    for each in _list(value.get("allComposers")) if isinstance(value, Mapping) else ():
        composer = text_of(each.get("composerId"))
        if composer:
            yield Told(composer, "composer", composer, _composer(each), _time(each, UPDATED))


def _generations(_rest: str, value: Any) -> Iterator[Told]:
    for each in _list(value):
        unique = text_of(each.get("generationUUID")) or digest(str(each))
        told = {"text": each.get("textDescription"), "kind": each.get("type")}
        yield Told("", "generation", unique, told, _time(each))


def _prompts(_rest: str, value: Any) -> Iterator[Told]:
    for n, each in enumerate(_list(value)):
        told = {"text": each.get("text"), "kind": each.get("commandType")}
        yield Told("", "prompt", str(n), told, None)


def _unknown(row: Row, rest: str) -> Told:
    small = len(row.value) <= LARGEST_UNKNOWN
    kept = shortened(_json(row.value), LONGEST_UNKNOWN, 0) if small else None
    told = {"key": row.key.partition(":")[0], "size": len(row.value), "value": kept}
    return Told(rest.partition(":")[0] if rest else "", "unknown", digest(row.key), told, None)


_TELLS = {
    "bubbleId": _bubbles,
    "composerData": _composers,
    "composer.composerData": _all_composers,
    "aiService.generations": _generations,
    "aiService.prompts": _prompts,
}


def _bubble(value: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """A message of Cursor: what it is, and what of it is told."""
    means = BUBBLES.get(value.get("type") or 0, "bubble.unknown")
    model = value.get("modelInfo")
    counts = value.get("tokenCount")
    tool = value.get("toolFormerData")
    told: dict[str, Any] = {
        "text": value.get("text") or "",
        "turn_id": value.get("requestId"),
        "model": model.get("modelName") if isinstance(model, Mapping) else None,
    }
    if isinstance(counts, Mapping) and (counts.get("inputTokens") or counts.get("outputTokens")):
        told["tokens"] = {"input": counts.get("inputTokens"), "output": counts.get("outputTokens")}
    if isinstance(tool, Mapping) and tool.get("name"):
        told["tool"] = {
            "id": tool.get("toolCallId"),
            "name": tool.get("name"),
            "status": tool.get("status"),
            "input": decoded(tool.get("rawArgs") or tool.get("params")),
            "result": tool.get("result"),
        }
    empty = not told["text"] and "tool" not in told and "tokens" not in told
    return means, {} if empty else {name: each for name, each in told.items() if each is not None}


def _composer(value: Mapping[str, Any]) -> dict[str, Any]:
    """A conversation of Cursor without its messages, and without what somebody only typed."""
    names = ("name", "subtitle", "status", "unifiedMode", "totalLinesAdded", "totalLinesRemoved")
    told = {name: value[name] for name in names if value.get(name) is not None}
    if value.get("createdOnBranch"):
        told["gitBranch"] = value["createdOnBranch"]
    return told


def _captured(told: Told, workspace: str, now: int, clean: "Clean") -> Captured:
    whole, redactions = clean(shortened(told.payload, WHOLE, 0))
    payload = shortened(whole, LONGEST_KEPT, 0)
    is_bubble = told.means in BUBBLES.values()
    # A row that was changed tells something else, and is another event.
    unique = digest(workspace if not told.composer else "", told.means, told.unique, str(payload))
    types = {"bubble.user": "user_prompt", "bubble.assistant": "assistant_response"}
    return Captured(
        platform=PLATFORM if told.composer and told.means != "unknown" else WORKSPACE,
        session_id=clean(told.composer or workspace)[0][:500],
        hook_type=told.means,
        event_type=types.get(told.means, "trace"),
        event_id=f"cursor-{unique}",
        timestamp=now if told.at is None else told.at,
        payload=payload,
        source=STORE,
        messages=tuple(_messages(told.means, whole)) if is_bubble else (),
        redactions=redactions,
    )


def _messages(means: str, payload: Mapping[str, Any]) -> Iterator[Message]:
    if payload.get("text"):
        yield Message(PERSON if means == "bubble.user" else MODEL, payload["text"])
    tool = payload.get("tool")
    result = text_of(tool.get("result")) if isinstance(tool, Mapping) else ""
    if result:
        yield Message(TOOL, result)


def _json(value: bytes) -> Any:
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _list(found: Any) -> list[Mapping[str, Any]]:
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []


CREATED = ("createdAt", "unixMs")
UPDATED = ("lastUpdatedAt", "createdAt")


def _time(value: Mapping[str, Any], names: tuple[str, ...] = CREATED) -> int | None:
    """When something was, as far as it is told."""
    for name in names:
        told = value.get(name)
        if isinstance(told, int | float) and told > 0:
            return int(told)
        if isinstance(told, str):
            try:
                return from_iso(told)
            except InvalidOption:
                continue
    return None
