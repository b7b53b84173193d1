"""The consumer that measures sessions: acceptance, latencies, interruptions, productivity.

| figure | how it is made |
|---|---|
| tool latency | end − begin of a tool, by tool |
| response time | first tool − prompt |
| acceptance rate | kept changes of the last 100 that were decided |
| direct accept, rejection, partial | `decisions.py` says which is which |
| iteration | the same file changed again within five minutes |
| interruption | a tool of whose end nobody heard |
| diversity | entropy of the tools, in bits |
| productivity | see `productivity` |
"""

from typing import Any

from penstock.apps.recorder.conversations import (
    BATCH,
    Grouped,
    by_session,
    encode,
    id_of,
    load_state,
)
from penstock.apps.recorder.reading import entropy
from penstock.apps.recorder.reconstruction import Reconstruction
from penstock.apps.recorder.state import State
from penstock.events.consumer import Role, consumer_of
from penstock.events.event import Event, Session
from penstock.events.series import Kind, Series

NAME = "recorder.metrics"

TOOL_MS = Series(
    name="recorder.tool_ms", kind=Kind.HISTOGRAM, labels=("tool",), help="How long tools took."
)
RESPONSE_MS = Series(
    name="recorder.response_ms", kind=Kind.HISTOGRAM, help="From a prompt to the first tool."
)
KEPT = Series(
    name="recorder.kept", kind=Kind.WINDOW, size=100, help="Whether changes were kept: 1 or 0."
)
INTERRUPTIONS = Series(
    name="recorder.interruptions", kind=Kind.COUNTER, help="Tools of whose end nobody heard."
)


def productivity(state: State) -> float:
    """How well a session went, from 0 to 100.

    50, and up to 25 for tools that worked, less up to 15 for those that failed, 10 if the latest
    turn was completed, and up to 10 for changes that were kept.
    """
    tools, figures = state.tools, state.figures
    failed = min(1.0, state.failures / tools) if tools else 0.0
    worked = max(0.0, 1 - (state.failures + state.interruptions) / tools) if tools else 0.0
    score = 50 + 25 * worked - 15 * failed
    score += 10 * (state.complete_at is not None) + min(10, figures.accepted)
    return max(0.0, min(100.0, score))


class Metrics:
    """Writes the figures of sessions, and series of what their events tell."""

    def prepare(self, events: list[Event]) -> Grouped:
        """Group the events before the transaction."""
        return by_session(events)

    def apply(self, tx: Any, grouped: Grouped) -> None:
        """Take in the events of some sessions."""
        rows, states = [], []
        for session, events in grouped:
            id_ = id_of(session)
            conversation = Reconstruction(load_state(tx, id_, NAME))
            for event in events:
                conversation.apply(event)
                for name, value, labels in conversation.told:
                    tx.series.record(name, value, event=event, **labels)
            if conversation.state.started_at:
                rows.append(_row(id_, session, conversation.state))
                text = encode(conversation.state).decode()
                states.append((id_, NAME, session.tenant_id, text))
        tx.recorder.many("put_metrics", rows)
        tx.recorder.many("keep_state", states)

    def reset(self, tx: Any, session: Session) -> None:
        """Throw away what was measured of a session; its series go by themselves."""
        tx.recorder.run("drop_metrics", (id_of(session),))
        tx.recorder.run("drop_state", (id_of(session), NAME))

    def digest(self, tx: Any, session: Session) -> list[Any]:
        """All that was measured of a session, to be compared."""
        of = id_of(session)
        queries = tx.recorder
        return [queries.row("metrics", (of,)), queries.value("state", (of, NAME))]


def _row(id_: str, session: Session, state: State) -> tuple[Any, ...]:
    figures = state.figures
    window = figures.window
    return (
        id_,
        session.tenant_id,
        state.last_at,
        figures.decisions,
        figures.accepted,
        figures.direct,
        figures.rejected,
        figures.partial,
        figures.iterations,
        state.changes,
        state.interruptions,
        sum(window) / len(window) if window else None,
        entropy(list(figures.tools.values())),
        productivity(state),
        encode(figures.gaps).decode(),
        encode(figures.tools).decode(),
    )


consumer = consumer_of(
    Metrics,
    name=NAME,
    role=Role.VITAL,
    workers=2,
    minimum=2,
    maximum=8,
    batch=BATCH,
)
