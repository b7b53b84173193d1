"""Learnings: listed, approved, edited, rejected and withdrawn, each change being an event.

A row of `recorder_learnings` is what its session's events make of it. Whoever changes one appends
the event and applies it in the same commit; the consumer `learnings` applies it once more when it
comes by, which changes nothing, and again when a session is made anew.
"""

from collections.abc import Sequence
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.json import decode, encode

from penstock.app.transact import table_store
from penstock.apps.recorder.captured import conversation_id
from penstock.apps.recorder.dedupe import dedupe_hash
from penstock.apps.recorder.records import Learning, LearningFilter, Upload
from penstock.apps.recorder.search import Words
from penstock.events.columns import ORDINARY
from penstock.events.consumer import Consumer
from penstock.events.event import Event, NewEvent, Session
from penstock.model.clock import LATEST
from penstock.model.errors import InvalidOption
from penstock.model.not_found import NotFound
from penstock.operate.actor import PROGRAM, Actor

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

CATEGORIES = (
    *("pattern", "best_practice", "anti_pattern", "bug_fix"),
    *("optimization", "tool_usage", "workflow", "decision"),
)
EXTRACTION = "extraction"
APPROVAL = "approval"
EDIT = "learning_edit"
SUPERSESSION = "supersession"
REVOCATION = "revocation"
ENDED = "session_end"
TYPES = (EXTRACTION, APPROVAL, EDIT, SUPERSESSION, ENDED)

LONGEST_TITLE = 200
LONGEST_CONTENT = 10_000
LONGEST_REASON = 500
MOST = 500


class LearningNotFound(NotFound):
    """An id that no learning has, or none of the caller's tenant."""

    def __init__(self, learning_id: str) -> None:
        self.learning_id = learning_id
        super().__init__(
            f"No learning has the id {learning_id!r}; `penstock recorder learnings` lists them."
        )


class CannotChange(InvalidOption):
    """A learning that is past being changed like this."""

    def __init__(self, learning_id: str, action: str, reason: str) -> None:
        super().__init__("learning", learning_id, f"one that you can still {action}")
        self.learning_id = learning_id
        self.action = action
        self.reason = reason
        self.args = (f"You cannot {action} learning {learning_id}: {reason}.",)


class Found(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A learning as the event of its extraction holds it."""

    category: str
    title: str
    content: str
    confidence: float
    tags: list[str] = []
    source_message_ids: list[str] = []
    id: str = ""
    """What it is known by, even if something is taken out of its text later."""

    @property
    def hash(self) -> str:
        """What learnings that say the same have in common."""
        return dedupe_hash(self.category, self.title, self.content)


class Extraction(Struct, frozen=True, kw_only=True):
    """What came of looking through one version of a conversation."""

    version: str
    outcome: str
    value: float
    source: str
    learnings: list[Found]


def learning_id(tenant_id: str, hashed: str) -> str:
    """The id of a learning, the same whenever its session is made anew."""
    return blake2b(f"{tenant_id}\n{hashed}".encode(), digest_size=16).hexdigest()


def apply(tx: Any, events: Sequence[Event]) -> None:
    """Make of learnings what events say; what was applied before changes nothing."""
    for event in events:
        _APPLIED[event.event_type](tx.recorder, event)


def reset(tx: Any, session: Session) -> None:
    """Throw away what the events of a session have made."""
    conversation = (conversation_id(*session.key),)
    for name in ("forget_learnings", "forget_extractions"):
        tx.recorder.run(name, conversation)


def digest(tx: Any, session: Session) -> list[tuple[Any, ...]]:
    """What was derived from a session."""
    conversation = (conversation_id(*session.key),)
    rows: list[tuple[Any, ...]] = tx.recorder.rows("learnings_digest", conversation)
    return rows


def _add(queries: Any, event: Event) -> None:
    extraction = decode(encode(event.payload), type=Extraction)
    conversation = conversation_id(*event.session.key)
    whose = {"tenant_id": event.tenant_id, "person": event.person}
    queries.run(
        "add_extraction",
        {
            **whose,
            "conversation_id": conversation,
            "version": extraction.version,
            "outcome": extraction.outcome,
            "value": extraction.value,
            "learnings": len(extraction.learnings),
            "source": extraction.source,
            "extracted_at": event.timestamp,
        },
    )
    for found in extraction.learnings:
        queries.run(
            "add_learning",
            {
                **whose,
                "id": found.id or learning_id(event.tenant_id, found.hash),
                "conversation_id": conversation,
                "platform": event.platform,
                "session_id": event.session_id,
                "source_message_ids": _text(found.source_message_ids),
                "category": found.category,
                "title": found.title,
                "content": found.content,
                "confidence": found.confidence,
                "tags": _text(found.tags),
                "dedupe_hash": found.hash,
                "source": extraction.source,
                "created_at": event.timestamp,
                "revision": event.sequence,
                "metadata": _text({"version": extraction.version}),
            },
        )


def _decide(queries: Any, event: Event) -> None:
    told = event.payload
    queries.run(
        "decide_learning",
        {
            "id": told["learning_id"],
            "status": told["decision"],
            "by": told.get("by"),
            "at": event.timestamp,
            "revision": event.sequence,
        },
    )


def _edit(queries: Any, event: Event) -> None:
    told = event.payload
    said = {name: told[name] for name in ("category", "title", "content")}
    queries.run(
        "edit_learning",
        {
            **said,
            "id": told["learning_id"],
            "tags": _text(told["tags"]),
            "dedupe_hash": dedupe_hash(**said),
            "at": event.timestamp,
            "revision": event.sequence,
        },
    )


def _supersede(queries: Any, event: Event) -> None:
    queries.run(
        "supersede_learning",
        {
            "id": event.payload["learning_id"],
            "superseded_by": event.payload["superseded_by"],
            "revision": event.sequence,
        },
    )


def _end(queries: Any, event: Event) -> None:
    """A conversation that ended is looked through as soon as its messages are validated."""
    queries.run(
        "session_ended",
        {
            "conversation_id": conversation_id(*event.session.key),
            "tenant_id": event.tenant_id,
            "person": event.person,
            "platform": event.platform,
            "session_id": event.session_id,
            "ended_at": event.timestamp,
        },
    )


_APPLIED = {
    EXTRACTION: _add,
    APPROVAL: _decide,
    EDIT: _edit,
    SUPERSESSION: _supersede,
    ENDED: _end,
}

consumer = Consumer(
    name="learnings", apply=apply, reset=reset, digest=digest, types=frozenset(TYPES)
)


def record(app: "Penstock", tx: Any, event: NewEvent) -> Event:
    """Append an event about learnings and apply what the gate left of it, in this commit."""
    clean = app.events.preparer.clean(event, tx.now)
    appended = tx.events.append(clean)
    session = Session(clean.tenant_id, clean.platform, clean.session_id)
    written = Event(
        sequence=appended.sequence,
        event_id=clean.event_id,
        timestamp=int(clean.timestamp or tx.now),
        ingested_at=tx.now,
        event_type=clean.event_type,
        session_id=clean.session_id,
        platform=clean.platform,
        tenant_id=clean.tenant_id,
        person=clean.person,
        slot=session.slot,
        priority=ORDINARY,
        hook_type=clean.hook_type,
        payload=clean.payload,
        metadata=clean.metadata,
    )
    if written.event_type in _APPLIED:
        apply(tx, [written])
    return written


class _Row(Struct, frozen=True):
    """A learning, and the session whose events make it."""

    learning: Learning
    session: Session
    person: str | None

    def event(self, event_type: str, **payload: Any) -> NewEvent:
        """An event about it."""
        tenant_id, platform, session_id = self.session.key
        return NewEvent(
            event_type=event_type,
            session_id=session_id,
            platform=platform,
            tenant_id=tenant_id,
            person=self.person,
            payload={"learning_id": self.learning.id, **payload},
        )


class Learnings:
    """What was learned: `await Learnings(app).list(LearningFilter(status="proposed"))`."""

    def __init__(self, app: "Penstock", actor: Actor = PROGRAM) -> None:
        self._app = app
        self._actor = actor

    async def list(self, where: LearningFilter = LearningFilter()) -> list[Learning]:  # noqa: B008
        """Learnings, the latest first; `where.text` searches all that they say."""
        if not 1 <= where.limit <= MOST:
            raise InvalidOption("limit", where.limit, f"1 to {MOST}")
        tenant, words = self._actor.tenant_of(where.tenant), Words(where.text or "")

        def question(tx: Any) -> list[tuple[Any, ...]]:
            asked = {**_asked(tx, where), "tenant": tenant}
            if not words:
                return list(tx.recorder.rows("list_learnings", asked))
            searched = words.as_query(self._dialect)
            return list(tx.recorder.rows("find_learnings", {**asked, "words": searched}))

        return [_learning(row) for row in await self._app.read(question)]

    async def get(self, learning_id: str) -> Learning:
        """One of them, by its id, or as much of its beginning as no other has."""
        row = await self._app.read(partial(_get, learning_id=learning_id, actor=self._actor))
        return row.learning

    async def counts(self, tenant: str | None = None) -> dict[str, int]:
        """How many there are in each status."""
        asked = {"tenant": self._actor.tenant_of(tenant)}
        rows = await self._app.read(lambda tx: tx.recorder.rows("count_learnings", asked))
        return {str(status): int(count) for status, count in rows}

    async def approve(self, learning_id: str) -> Learning:
        """Approve a learning; if publishing is switched on, it is published from here on."""
        publishes: bool = self._app.extensions.settings("recorder").publish.enabled

        def work(tx: Any) -> Learning:
            row = _get(tx, learning_id, self._actor)
            if row.learning.status == "superseded":
                reason = f"{row.learning.superseded_by} has taken its place"
                raise CannotChange(learning_id, "approve", reason)
            if row.learning.status != "approved":
                record(self._app, tx, row.event(APPROVAL, decision="approved", by=self._actor.name))
            if publishes:
                from penstock.apps.recorder.publish.upload import begin

                begin(tx, row.learning.id, row.session.tenant_id, row.person)
            return _get(tx, row.learning.id, self._actor).learning

        return await self._change("approve", learning_id, work)

    async def reject(self, learning_id: str) -> Learning:
        """Reject a learning, so that it is neither shown as knowledge nor published."""

        def work(tx: Any) -> Learning:
            row = _get(tx, learning_id, self._actor)
            if _has_left(row.learning):
                raise CannotChange(learning_id, "reject", "it is published; revoke it instead")
            if row.learning.status != "rejected":
                record(self._app, tx, row.event(APPROVAL, decision="rejected", by=self._actor.name))
                tx.recorder.run("withdraw_upload", (tx.now, row.learning.id))
            return _get(tx, row.learning.id, self._actor).learning

        return await self._change("reject", learning_id, work)

    async def edit(
        self,
        learning_id: str,
        *,
        title: str | None = None,
        content: str | None = None,
        category: str | None = None,
        tags: Sequence[str] | None = None,
    ) -> Learning:
        """Change what a learning says, as long as nothing of it was published."""
        _check(title, content, category)

        def work(tx: Any) -> Learning:
            row = _get(tx, learning_id, self._actor)
            old = row.learning
            if _has_left(old):
                raise CannotChange(learning_id, "edit", "it is published as it is")
            said = {
                "category": old.category if category is None else category,
                "title": old.title if title is None else title.strip(),
                "content": old.content if content is None else content.strip(),
            }
            same = (old.tenant_id, dedupe_hash(**said))
            other = tx.recorder.value("same_learning", (*same, old.id))
            if other is not None:
                raise CannotChange(learning_id, "edit", f"learning {other} says the same already")
            tagged = old.tags if tags is None else list(tags)
            record(self._app, tx, row.event(EDIT, by=self._actor.name, tags=tagged, **said))
            return _get(tx, row.learning.id, self._actor).learning

        return await self._change("edit", learning_id, work)

    async def revoke(self, learning_id: str, reason: str = "") -> Learning:
        """Withdraw a learning: it is published no further, and unpinned where it was."""
        if len(reason) > LONGEST_REASON:
            raise InvalidOption("reason", reason, f"at most {LONGEST_REASON} characters")

        def work(tx: Any) -> Learning:
            from penstock.apps.recorder.publish.upload import revoke

            row = _get(tx, learning_id, self._actor)
            if row.learning.upload is None:
                raise CannotChange(learning_id, "revoke", "it was not published; reject it instead")
            if row.learning.upload.revoked_at is None:
                record(self._app, tx, row.event(REVOCATION, reason=reason, by=self._actor.name))
                revoke(tx, row.learning, reason, self._actor.name)
            return _get(tx, row.learning.id, self._actor).learning

        return await self._change("revoke", learning_id, work)

    @property
    def _dialect(self) -> str:
        return table_store(self._app, "A search").dialect

    async def _change(self, action: str, learning_id: str, work: Any) -> Learning:
        async with self._actor.doing(f"learning.{action}", f"learning:{learning_id}"):
            changed: Learning = await self._app.transact(work)
            return changed


def _has_left(learning: Learning) -> bool:
    """Whether something of it is, or may be, outside already."""
    return learning.upload is not None and learning.upload.status in (
        *("ipfs_uploaded", "tx_submitted", "confirmed"),
    )


def _check(title: str | None, content: str | None, category: str | None) -> None:
    if title is not None and not 0 < len(title.strip()) <= LONGEST_TITLE:
        raise InvalidOption("title", title, f"1 to {LONGEST_TITLE} characters")
    if content is not None and not 0 < len(content.strip()) <= LONGEST_CONTENT:
        raise InvalidOption("content", content, f"1 to {LONGEST_CONTENT:,} characters")
    if category is not None and category not in CATEGORIES:
        raise InvalidOption("category", category, f"one of: {', '.join(CATEGORIES)}")


def _asked(tx: Any, where: LearningFilter) -> dict[str, Any]:
    """What a list is asked with; it goes on after the learning `where.before`."""
    after = LATEST if where.before is None else tx.recorder.value("learning_at", (where.before,))
    if after is None:
        raise LearningNotFound(str(where.before))
    return {
        "status": where.status,
        "category": where.category,
        "conversation_id": where.conversation_id,
        "before_at": after,
        "before_id": where.before or "",
        "limit": where.limit,
    }


def _get(tx: Any, learning_id: str, actor: Actor) -> _Row:
    asked = {"id": learning_id, "beyond": f"{learning_id}g", "tenant": actor.tenant}
    rows = tx.recorder.rows("get_learning", asked)
    if len(rows) != 1:
        raise LearningNotFound(learning_id)
    [row] = rows
    tenant_id, (platform, session_id, person) = row[1], row[16:19]
    return _Row(_learning(row), Session(tenant_id, platform, session_id), person)


def _learning(row: tuple[Any, ...]) -> Learning:
    columns, upload = row[:16], row[19:]
    told = dict(zip(_COLUMNS, columns, strict=True))
    told["source_message_ids"] = decode(told["source_message_ids"])
    told["tags"] = decode(told["tags"])
    shown = None if upload[0] is None else Upload(**dict(zip(_OF_UPLOAD, upload, strict=True)))
    return Learning(**told, upload=shown)


_COLUMNS = Learning.__struct_fields__[:16]
_OF_UPLOAD = Upload.__struct_fields__


def _text(value: Any) -> str:
    return encode(value).decode()
