"""The consumer that says what is worth knowing of a session: a summary, friction, and failures.

It counts, and asks nobody. What a model said of a session comes as an event, `model_answer`, whose
`insights` take the place of ours of the same kind: a rebuild asks no model again.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct, field

from penstock.apps.recorder.conversations import BATCH, Grouped, by_session, encode, id_of
from penstock.apps.recorder.reconstruction import Reconstruction
from penstock.apps.recorder.state import State, ToolRow, remember
from penstock.events.consumer import Role, consumer_of
from penstock.events.event import Event, Session
from penstock.model.wording import counted

NAME = "recorder.insights"
SUMMARY, FRICTION, FAILURE = "summary", "friction", "repeated_failure"
KINDS = (SUMMARY, FRICTION, FAILURE)
OURS = "heuristic"
ALIKE = 3
"""A tool that fails so often in the same way is worth a word."""
OFTEN = 4
"""So many changes of one file, or prompts right after an answer, are friction."""
REMEMBERED = 50


class Failed(Struct):
    """Failures that look alike."""

    tool: str
    error: str
    count: int = 0
    at: int = 0


class Seen(Struct, omit_defaults=True):
    """What is known of a session."""

    state: State = field(default_factory=State)
    failures: dict[str, Failed] = {}
    files: dict[str, int] = {}
    denied: int = 0
    told: list[tuple[str, str, str, str, int]] = []
    """Kind, title, text, source and time of what a model said."""


class Insights:
    """Writes what is worth knowing; all that it keeps is in its tables."""

    def prepare(self, events: Sequence[Event]) -> Grouped:
        """Group the events before the transaction."""
        return by_session(events)

    def apply(self, tx: Any, grouped: Grouped) -> None:
        """Take in the events of some sessions."""
        dropped, rows, states = [], [], []
        for session, events in grouped:
            id_, tenant = id_of(session), session.tenant_id
            text = tx.recorder.value("state", (id_, NAME))
            seen = Seen() if text is None else _decode(text)
            conversation = Reconstruction(seen.state)
            for event in events:
                conversation.apply(event)
                _see(seen, conversation)
                _hear(seen, event)
            if not seen.state.started_at:
                continue
            numbers: dict[str, int] = dict.fromkeys(KINDS, 0)
            for kind, *told in _insights(seen):
                numbers[kind] += 1
                rows.append((id_, tenant, kind, numbers[kind], *told))
            dropped.append((id_,))
            states.append((id_, NAME, tenant, encode(seen).decode()))
        tx.recorder.many("drop_insights", dropped)
        tx.recorder.many("put_insight", rows)
        tx.recorder.many("keep_state", states)

    def reset(self, tx: Any, session: Session) -> None:
        """Throw away what was said of a session."""
        tx.recorder.run("drop_insights", (id_of(session),))
        tx.recorder.run("drop_state", (id_of(session), NAME))

    def digest(self, tx: Any, session: Session) -> list[Any]:
        """All that was said of a session, to be compared."""
        of = id_of(session)
        return [tx.recorder.rows("insights", (of,)), tx.recorder.value("state", (of, NAME))]


_decode = msgspec.json.Decoder(Seen).decode


def _hear(seen: Seen, event: Event) -> None:
    """Take in what a model said of the session."""
    said = event.payload.get("insights")
    if event.event_type != "model_answer" or not isinstance(said, list):
        return
    source = str(event.payload.get("model") or "model")
    told = [
        (
            each["kind"],
            str(each.get("title", ""))[:200],
            str(each.get("text", ""))[:4_000],
            source,
            event.timestamp,
        )
        for each in said
        if isinstance(each, dict) and each.get("kind") in KINDS
    ]
    if told:
        seen.told = told  # what it said of the session before is out of date


def _see(seen: Seen, conversation: Reconstruction) -> None:
    """Count what has failed and what was changed by the latest event."""
    for tool in conversation.ended:
        if tool.status == "failed":
            _fail(seen, tool)
        seen.denied += tool.status == "denied"
    for change in conversation.decisions.added:
        seen.files[change.file_path] = seen.files.get(change.file_path, 0) + 1


def _fail(seen: Seen, tool: ToolRow) -> None:
    error = (tool.error or "").strip().splitlines()
    first = error[0] if error else ""
    alike = f"{tool.name}\n{re.sub(r'[0-9]+', '0', first)[:200]}"
    failed = seen.failures.pop(alike, None) or Failed(tool.name, first[:200])
    failed.count += 1
    failed.at = tool.started_at + (tool.duration_ms or 0)
    remember(seen.failures, alike, failed, REMEMBERED)


Told = tuple[str, str, str, str, int]


def _insights(seen: Seen) -> Iterator[Told]:
    """All that is worth knowing; what a model said comes first, and instead of our own."""
    yield from seen.told
    said = {kind for kind, *_ in seen.told}
    for ours in (_summary(seen), *_friction(seen), *_failures(seen)):
        if ours[0] not in said:
            yield ours


def _summary(seen: Seen) -> Told:
    state = seen.state
    minutes = max(1, round((state.last_at - state.started_at) / 60_000))
    turns, calls = counted(state.turns, "turn"), counted(state.tools, "tool call")
    parts = [f"{turns} with {calls} in {counted(minutes, 'minute')}."]
    if seen.files:
        most = sorted(seen.files, key=lambda path: (-seen.files[path], path))[:3]
        parts.append(f"{counted(len(seen.files), 'file')} changed, most of all {', '.join(most)}.")
    if state.failures:
        parts.append(f"{counted(state.failures, 'call')} failed.")
    if state.ended_at is not None:
        ended = "with" if state.complete_at is not None else "without"
        parts.append(f"It ended {ended} a complete answer.")
    return SUMMARY, state.title or "A session", " ".join(parts), OURS, state.last_at


def _friction(seen: Seen) -> Iterator[Told]:
    state = seen.state
    if state.interruptions:
        text = f"{counted(state.interruptions, 'tool call')} did not come to an end."
        yield FRICTION, "Interrupted", text, OURS, state.last_at
    if seen.denied:
        text = f"Somebody did not allow {counted(seen.denied, 'tool call')}."
        yield FRICTION, "Denied", text, OURS, state.last_at
    soon = state.figures.gaps.get("iterating", 0)
    if soon >= OFTEN:
        text = f"{counted(soon, 'prompt')} came within ten seconds after an answer."
        yield FRICTION, "Asked again at once", text, OURS, state.last_at
    for path in sorted(path for path, count in seen.files.items() if count >= OFTEN):
        text = f"{path} was changed {seen.files[path]} times."
        yield FRICTION, "Changed again and again", text, OURS, state.last_at


def _failures(seen: Seen) -> Iterator[Told]:
    for failed in seen.failures.values():
        if failed.count >= ALIKE:
            title = f"{failed.tool} failed {failed.count} times alike"
            yield FAILURE, title, failed.error, OURS, failed.at


consumer = consumer_of(
    Insights, name=NAME, role=Role.OPTIONAL, workers=1, minimum=1, maximum=2, batch=BATCH
)
