"""The way in for all that was captured: events, messages and jobs in one commit.

A hook has no time to load this and executes the same statements itself (`hook.py`).
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from penstock.apps.recorder.captured import (
    VALIDATION,
    Captured,
    message_rows,
    redaction_rows,
    twins,
    validation_key,
)
from penstock.apps.recorder.sanitise import VERSION
from penstock.events.event import NewEvent
from penstock.model.job import KeyScope

if TYPE_CHECKING:
    from penstock.app.job_type import Prepared
    from penstock.app.penstock import Penstock

TOGETHER = 50
"""So many messages of a conversation are validated by one job, if they came in one batch."""


class Written(Struct, frozen=True):
    """How many events and messages are new."""

    events: int
    messages: int


async def write(app: "Penstock", captured: Sequence[Captured]) -> Written:
    """Write what was captured, and have new messages validated, all in one commit.

    What is there already stays as it is. `QueueFull` if the recorder's queue takes no more jobs:
    nothing was written then.
    """

    def work(tx: Any) -> Written:
        new = _append(tx, captured)
        rows = [row for one in new for row in message_rows(one)]
        rows = [row for row in rows if tx.recorder.run("add_message", row)]
        for one in new:
            for redaction in redaction_rows(one):
                tx.recorder.run("add_redaction", redaction)
        jobs = list(validation(app, rows))
        if jobs:
            tx.enqueue_many(jobs)
        return Written(len(new), len(rows))

    if not captured:
        return Written(0, 0)
    return await app.transact(work)


def _append(tx: Any, captured: Sequence[Captured]) -> list[Captured]:
    """Append events; return those that are new."""
    log = tx.events
    new: list[Captured] = []
    for by_hook, some in groupby(captured, key=lambda one: one.source == "hook"):
        for together in [[one] for one in some] if by_hook else [list(some)]:
            if by_hook and tx.recorder.value("captured_before", twins(together[0])) is not None:
                continue
            appended = log.append_many([event_of(one) for one in together])
            new += [one for one, kept in zip(together, appended, strict=True) if kept.created]
    return new


def event_of(captured: Captured) -> NewEvent:
    """What was captured, as the log takes it."""
    return NewEvent(
        event_type=captured.event_type,
        session_id=captured.session_id,
        platform=captured.platform,
        payload=dict(captured.payload),
        metadata={"source": captured.source, **captured.metadata},
        event_id=captured.event_id,
        timestamp=captured.timestamp,
        hook_type=captured.hook_type,
        tenant_id=captured.tenant_id,
        person=captured.person,
    )


def validation(app: "Penstock", rows: Sequence[dict[str, Any]]) -> "Iterator[Prepared[Any]]":
    """The jobs that look at new messages once more."""
    type_ = app.types.get(VALIDATION)
    if type_ is None:
        return
    for (tenant, conversation), together in groupby(rows, key=_whose):
        ids = [row["id"] for row in together]
        for begin in range(0, len(ids), TOGETHER):
            some = ids[begin : begin + TOGETHER]
            key = validation_key(some[0])
            chosen = type_.options(key=key, key_scope=KeyScope.WHILE_PENDING, tenant=tenant)
            yield chosen.new(
                conversation_id=conversation, message_ids=some, sanitization_version=VERSION
            )


def _whose(row: dict[str, Any]) -> tuple[str, str]:
    return row["tenant_id"], row["conversation_id"]
