"""The consumer that makes conversations of events: turns, tools, changes, commits and tokens."""

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import astuple

from penstock.apps.recorder.captured import conversation_id, digest
from penstock.apps.recorder.platforms import HOOKS, text_of
from penstock.apps.recorder.reconstruction import Reconstruction
from penstock.apps.recorder.state import State, TurnRow
from penstock.events.consumer import Role, consumer_of
from penstock.events.event import Event, Session

NAME = "recorder.conversations"
BATCH = 500
TABLES = ("conversation", "turns", "tools", "changes", "entries", "commits", "spent")

Grouped = list[tuple[Session, list[Event]]]

encode = msgspec.json.Encoder().encode


def by_session(events: Sequence[Event]) -> Grouped:
    """The events of assistants, those of each session together and in their order."""
    found: dict[Session, list[Event]] = {}
    for event in events:
        if event.platform in HOOKS:
            found.setdefault(event.session, []).append(event)
    return list(found.items())


def id_of(session: Session) -> str:
    """The id of a session's conversation."""
    return conversation_id(session.tenant_id, session.platform, session.session_id)


def load_state(tx: Any, id_: str, consumer: str) -> State:
    """Where a consumer stands with a conversation."""
    text = tx.recorder.value("state", (id_, consumer))
    return State() if text is None else _decode(text)


_decode = msgspec.json.Decoder(State).decode


class _Written:
    """Rows of one conversation that were written before."""

    def __init__(self, queries: Any, id_: str) -> None:
        self._queries = queries
        self._id = id_

    def turn(self, n: int) -> TurnRow | None:
        """Return a turn by its number."""
        row = self._queries.row("turn", (self._id, n))
        return None if row is None else TurnRow(*row)


class Conversations:
    """Writes conversations; all that it keeps is in its tables."""

    def prepare(self, events: Sequence[Event]) -> Grouped:
        """Group the events before the transaction."""
        return by_session(events)

    def apply(self, tx: Any, grouped: Grouped) -> None:
        """Take in the events of some sessions."""
        writing = _Writing(tx.recorder)
        for session, events in grouped:
            id_ = id_of(session)
            conversation = Reconstruction(load_state(tx, id_, NAME), _Written(tx.recorder, id_))
            person = None
            for event in events:
                conversation.apply(event)
                person = event.person or person
            if (
                conversation.state.started_at
            ):  # if it was all about a session and not of it, there is none
                writing.add(id_, session, person, conversation)
        writing.write()

    def reset(self, tx: Any, session: Session) -> None:
        """Throw away what was made of a session."""
        for table in TABLES:
            tx.recorder.run(f"drop_{table}", (id_of(session),))
        tx.recorder.run("drop_state", (id_of(session), NAME))

    def digest(self, tx: Any, session: Session) -> list[Any]:
        """All that was made of a session, to be compared."""
        queries, of = tx.recorder, (id_of(session),)
        tables = ("turns_of", "tools_of", "changes_of", "entries_of", "commits_of", "spent_of")
        return [
            queries.row("conversation", of),
            *(queries.rows(table, of) for table in tables),
            queries.value("state", (*of, NAME)),
        ]


class _Writing:
    """Rows of several conversations, written together."""

    def __init__(self, queries: Any) -> None:
        self._queries = queries
        self._rows: dict[str, list[tuple[Any, ...]]] = {}

    def add(
        self, id_: str, session: Session, person: str | None, conversation: Reconstruction
    ) -> None:
        """Take in what has changed of a conversation."""
        if conversation.spending.anew:
            self._queries.run("drop_spent", (id_,))
            self._queries.run("forget_tokens", (id_,))
        of = (id_, session.tenant_id)
        put = partial(self._put, of)
        put("put_turn", conversation.turns.values())
        put("put_tool", conversation.tools.values())
        put("put_change", conversation.decisions.changed.values())
        put("put_entry", conversation.entries.values())
        for commit in conversation.commits:
            self._later("put_commit", (*of, *_commit(commit)))
        for (model, agent), counts in sorted(conversation.spending.added.items()):
            self._later("add_spent", (*of, model, agent, *counts))
        self._later("put_conversation", _conversation(id_, session, person, conversation.state))
        self._later(
            "keep_state", (id_, NAME, session.tenant_id, encode(conversation.state).decode())
        )

    def _put(self, of: tuple[str, str], query: str, rows: Any) -> None:
        for row in rows:
            self._later(query, (*of, *astuple(row)))

    def _later(self, query: str, row: tuple[Any, ...]) -> None:
        self._rows.setdefault(query, []).append(row)

    def write(self) -> None:
        """Write them, in an order that all processes keep to."""
        for query, rows in self._rows.items():
            self._queries.many(query, rows)


def _conversation(id_: str, session: Session, person: str | None, state: State) -> tuple[Any, ...]:
    cwd = state.cwd.rstrip("/\\")
    metadata = {
        "cwd": state.cwd,
        "version": state.version,
        "branches": state.branches,
        "compactions": state.compactions,
        "subagents": state.subagents,
        "model_switches": state.switches,
    }
    given, output, write, _, read = state.tokens
    return (
        id_,
        session.tenant_id,
        person,
        session.platform,
        session.session_id,
        state.title,
        state.workspace or (digest(cwd) if cwd else None),
        state.project or re.split(r"[/\\]", cwd)[-1] or None,
        state.branch,
        state.model,
        state.started_at,
        state.last_at,
        state.ended_at,
        state.turns,
        state.tools,
        state.failures,
        state.interruptions,
        state.changes,
        given,
        output,
        write,
        read,
        encode({name: known for name, known in metadata.items() if known}).decode(),
    )


def _commit(told: Any) -> tuple[Any, ...]:
    files = told.get("files")
    return (
        text_of(told.get("hash"))[:64],
        text_of(told.get("branch")),
        told["at"],
        encode(list(map(str, files)) if isinstance(files, list) else []).decode(),
        text_of(told.get("subject"))[:200],
    )


consumer = consumer_of(
    Conversations,
    name=NAME,
    role=Role.NORMAL,
    workers=2,
    minimum=2,
    maximum=4,
    batch=BATCH,
)
