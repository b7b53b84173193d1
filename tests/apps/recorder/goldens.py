"""Golden conversations: what assistants tell, and what is to be made of it, field by field.

An event of such a file is a hook (`hook`, `payload`), a commit (`type`), a record of a transcript
(`record`), a log record of telemetry (`log`, `attributes`) or a row of Cursor's store (`row`,
`value`). Times are milliseconds after noon of the first of January 2026.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from penstock.apps.recorder import cursor_store, telemetry, transcripts
from penstock.apps.recorder.capture import capture
from penstock.apps.recorder.captured import Captured, digest
from penstock.apps.recorder.otlp import Record
from penstock.apps.recorder.records import SessionView
from penstock.model.clock import iso

FOLDER = Path(__file__).parent / "golden"
FILES = sorted(FOLDER.glob("*.json"))
NOON = 1_767_268_800_000
TIMES = ("started_at", "ended_at", "last_at", "at")


def clean(found: Any) -> tuple[Any, tuple[()]]:
    """Leave everything as it is: what is taken out is the sanitiser's business."""
    return found, ()


def load(path: Path) -> dict[str, Any]:
    """A golden file."""
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


def captured(golden: dict[str, Any]) -> Iterator[Captured]:
    """What would be captured of it, in its order."""
    session = golden.get("session", "")
    for event in golden["events"]:
        if "hook" in event:
            yield _hook(golden, event)
        elif "type" in event:
            yield _commit(golden, event)
        elif "record" in event:
            line = json.dumps(event["record"]).encode() + b"\n"
            yield from transcripts.captured(transcripts.Chunk(line, 0, NOON), session, clean)
        elif "log" in event:
            told = event["attributes"]
            record = Record(event["log"], NOON + event["at"], told)
            one = telemetry.captured(record, "", NOON, clean)
            assert one is not None
            yield one
        else:
            row = cursor_store.Row(1, event["row"], json.dumps(event["value"]).encode())
            yield from cursor_store.captured([row], "/x/globalStorage/state.vscdb", NOON, clean)


def _hook(golden: dict[str, Any], event: dict[str, Any]) -> Captured:
    at = NOON + event["at"]
    payload = {**golden["common"], "hook_event_name": event["hook"], **event["payload"]}
    if golden.get("timestamps"):
        payload["timestamp"] = iso(at) if golden["timestamps"] == "iso" else at
    one = capture(golden["platform"], event["hook"], payload, at, clean)
    # Where the test runs is nobody's business.
    told = {"cwd", "workspace_hash", "project_name", "git_branch", "git_head"}
    return one._replace(metadata={k: v for k, v in one.metadata.items() if k not in told})


def _commit(golden: dict[str, Any], event: dict[str, Any]) -> Captured:
    return Captured(
        platform=golden["platform"],
        session_id=golden["common"]["session_id"],
        hook_type="git_commit",
        event_type="git_commit",
        event_id=digest(event["payload"]["hash"]),
        timestamp=NOON + event["at"],
        payload=event["payload"],
        source="git",
    )


def lean(view: SessionView) -> dict[str, Any]:
    """A session as golden files have it: times after noon, and nothing that is not there."""
    found = msgspec.to_builtins(view)
    del found["row"]["id"]
    lean: dict[str, Any] = _lean(found)
    return lean


def _lean(found: Any) -> Any:
    if isinstance(found, dict):
        kept = {
            name: value - NOON if name in TIMES and value is not None else _lean(value)
            for name, value in found.items()
        }
        return {name: value for name, value in kept.items() if value not in (None, [], {}, "")}
    if isinstance(found, list):
        return [_lean(each) for each in found]
    return round(found, 9) if isinstance(found, float) else found
