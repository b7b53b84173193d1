"""When a conversation is complete: it has ended or gone quiet, and all of it is validated.

Then it is looked through for learnings. Whoever validates its last message asks, and a pass of the
leader asks for those that went quiet.
"""

from typing import TYPE_CHECKING, Any

import structlog
from msgspec import to_builtins

from penstock.apps.recorder.captured import QUEUE
from penstock.apps.recorder.extract import EXTRACTOR
from penstock.apps.recorder.learnings import EXTRACTION, Extraction, record
from penstock.events.event import NewEvent, Session
from penstock.model.errors import QueueFull
from penstock.model.job import KeyScope

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.apps.recorder.extension import LearnSettings

log = structlog.get_logger("penstock.recorder")

EXTRACT = "extract_learning"
AT_ONCE = 100
MOST_WAITING = 1_000
"""If more conversations than these wait to be looked through, only some of them are."""
LEFT_OUT = "left out, too many wait"
AGAIN_MS = 60_000


async def look(app: "Penstock") -> int:
    """Enqueue the extraction of conversations that are complete; how many. A pass of the leader."""
    if not _settings(app).enabled:
        return 0

    def work(tx: Any) -> tuple[int, int, int]:
        waiting = int(tx.recorder.value("count_due", (tx.now,)))
        one_of = -(-waiting // MOST_WAITING) or 1
        taken = left_out = 0
        for conversation, *_ in tx.recorder.rows("due", (tx.now, AT_ONCE)):
            if int(conversation[:8], 16) % one_of:
                leave_out(app, tx, conversation, f"{LEFT_OUT}: 1 of {one_of} is looked through")
                left_out += 1
            else:
                taken += enqueue_if_complete(app, tx, conversation)
        return taken, left_out, one_of

    taken, left_out, one_of = await app.transact(work)
    if left_out:
        log.warning("conversations_left_out", count=left_out, looked_through=f"1 of {one_of}")
    return taken


def leave_out(app: "Penstock", tx: Any, conversation_id: str, why: str) -> None:
    """Say of a conversation that it is not looked through, and why."""
    _, tenant_id, person, platform, session_id, _ = tx.recorder.row("due_of", (conversation_id,))
    _, last, _ = map(int, tx.recorder.row("stand_of", (conversation_id,)))
    said = Extraction(version=version_of(last), outcome=why, value=0.0, source="", learnings=[])
    record(
        app,
        tx,
        NewEvent(
            event_type=EXTRACTION,
            session_id=session_id,
            platform=platform,
            tenant_id=tenant_id,
            person=person,
            payload=to_builtins(said),
        ),
    )
    tx.recorder.run("forget_due", (conversation_id,))


def enqueue_if_complete(app: "Penstock", tx: Any, conversation_id: str) -> bool:
    """Enqueue the extraction of a conversation, in this commit, if it is complete."""
    row = tx.recorder.row("due_of", (conversation_id,))
    type_ = app.types.get(EXTRACT)
    if row is None or type_ is None or not _settings(app).enabled:
        return False
    _, tenant_id, _, platform, session_id, ended_at = row
    count, last, waiting = map(int, tx.recorder.row("stand_of", (conversation_id,)))
    if waiting:
        return False  # who validates the last one asks again
    version = version_of(last)
    if count == 0 or tx.recorder.row("extraction", (conversation_id, version)) is not None:
        tx.recorder.run("forget_due", (conversation_id,))
        return False
    if ended_at is None:
        quiet_at = _heard(tx, Session(tenant_id, platform, session_id)) + round(
            _settings(app).quiet * 1000
        )
        if quiet_at > tx.now:
            tx.recorder.run("look_later", (quiet_at, conversation_id))
            return False
    call = type_.options(
        key=f"extract-learning-{conversation_id}-{version}",
        key_scope=KeyScope.UNTIL_DONE,
        tenant=tenant_id,
        queue=QUEUE,
    ).new(
        conversation_id=conversation_id,
        min_confidence=_settings(app).min_confidence,
        categories=list(_settings(app).categories),
    )
    tx.recorder.run("look_later", (tx.now + AGAIN_MS, conversation_id))
    try:
        tx.enqueue(call)
    except QueueFull:
        return False
    return True


def version_of(last: int) -> str:
    """The version of a conversation: by what it is looked through, and up to which message."""
    return f"{EXTRACTOR}.{last}"


def _heard(tx: Any, session: Session) -> int:
    tenant_id, platform, session_id = session.key
    return int(tx.recorder.value("last_heard", (session_id, platform, tenant_id)) or 0)


def _settings(app: "Penstock") -> "LearnSettings":
    settings: LearnSettings = app.extensions.settings("recorder").learn
    return settings
