"""What belongs to people: export it, delete it with proof, and keep it no longer than they want.

A deletion takes the messages of a session first and its events next, and with these all that was
derived from them. It may break off anywhere: as long as something is left, the session is still
found, and deleting it again goes on. At the end every table is asked what it still holds.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from penstock.apps.recorder.captured import VALIDATION
from penstock.apps.recorder.learnings import Learnings
from penstock.apps.recorder.reading import Sessions
from penstock.apps.recorder.records import LearningFilter
from penstock.events import archive
from penstock.events.event import Event, Session
from penstock.events.log import EventFilter
from penstock.model.clock import LATEST, iso
from penstock.model.errors import InvalidOption
from penstock.model.not_found import NotFound
from penstock.model.wording import counted, few
from penstock.operate.actor import PROGRAM, Actor
from penstock.operate.erase import erase_jobs, scrub
from penstock.operate.journal import Journal
from penstock.store.contract import JobFilter

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

PAGE = 200
DAY_MS = 86_400_000
ROWS = (
    *("delete_revocations", "delete_uploads", "delete_learnings", "delete_extractions"),
    *("delete_due", "delete_costs", "delete_redactions", "delete_messages", "delete_rule"),
)
"""What consumers do not derive, and what belongs to it, in the order in which it goes."""
MESSAGE = ("id", "role", "content", "sequence", "created_at", "token_count")
REDACTION = (
    *("id", "message_id", "event_id", "category", "rule_id", "original_snippet_hash"),
    *("replacement", "detector", "confidence", "created_at"),
)
"""The columns of an export."""
JOBS = (VALIDATION, "extract_learning")
SCOPES = ("session", "project", "all")
"""Of two rules of retention the one whose scope comes first here counts."""


class Published(InvalidOption):
    """A session whose learnings others may hold."""

    def __init__(self, session_id: str, learnings: Sequence[str]) -> None:
        super().__init__("session", session_id, "one of which nothing is published")
        self.session_id = session_id
        self.learnings = list(learnings)
        told = f"{counted(len(learnings), 'published learning')} ({few(learnings)})"
        ways = "revoke what others should not keep, or delete the session with --leave-published"
        self.args = (f"Session {session_id} has {told}; {ways}.",)


class Chosen(Struct, frozen=True):
    """A session that is exported or deleted."""

    id: str
    tenant_id: str
    platform: str
    session_id: str
    project: str | None
    last_at: int
    title: str

    @property
    def session(self) -> Session:
        """As the log knows it."""
        return Session(self.tenant_id, self.platform, self.session_id)

    @property
    def bindings(self) -> dict[str, str]:
        """What queries are asked with."""
        return {
            "id": self.id,
            "tenant_id": self.tenant_id,
            "platform": self.platform,
            "session_id": self.session_id,
        }


class Choice(Struct, frozen=True, kw_only=True):
    """Which sessions: one by its id, those of a project, those last seen within a time, or both."""

    session: str | None = None
    project: str | None = None
    since: int | None = None
    until: int | None = None

    def __post_init__(self) -> None:
        if self.session is not None and (self.project, self.since, self.until) != (None,) * 3:
            raise InvalidOption("session", self.session, "alone, without a project or a time")
        if (self.session, self.project, self.since, self.until) == (None,) * 4:
            expected = "a session, a project or a time; --until now is all that there is"
            raise InvalidOption("sessions", "none", expected)


class Proof(Struct, frozen=True, kw_only=True):
    """What was deleted of a session, and what every table holds of it afterwards.

    The session is named by a keyed hash, as the audit log and the erasure in the log name it.
    """

    session: str
    deleted_at: int
    erased: dict[str, int]
    left: dict[str, int]
    remarks: list[str]

    @property
    def complete(self) -> bool:
        """Whether nothing is left."""
        return not any(self.left.values())


class Rule(Struct, frozen=True):
    """For how many days sessions are kept, since they were last seen; None is for ever."""

    tenant_id: str
    scope: str
    name: str
    days: int | None
    set_by: str
    set_at: int


class Privacy:
    """`await Privacy(app).delete(Choice(project="shop"))`; an actor's tenant binds it."""

    def __init__(self, app: "Penstock", actor: Actor = PROGRAM) -> None:
        self._app = app
        self._actor = actor

    async def sessions(self, choice: Choice) -> AsyncIterator[Chosen]:
        """The sessions that are chosen, those that were seen longest ago first."""
        if choice.session is not None:
            named = {"name": choice.session, "tenant": self._actor.tenant}
            rows = await self._rows("sessions_chosen", named)
            for row in rows:
                yield Chosen(*row)
            if not rows:
                yield await self._beginning(choice.session)
            return
        after = (choice.since or 0, "")
        while True:
            asked = {
                "after_at": after[0],
                "after_id": after[1],
                "until": LATEST if choice.until is None else choice.until,
                "project": choice.project,
                "tenant": self._actor.tenant,
                "limit": PAGE,
            }
            rows = await self._rows("sessions_within", asked)
            for row in rows:
                yield Chosen(*row)
            if len(rows) < PAGE:
                return
            after = int(rows[-1][5]), str(rows[-1][0])

    async def left(self, chosen: Chosen) -> dict[str, int]:
        """How many rows each table holds of a session, and the archive how many events."""
        rows = await self._rows("left_of_session", chosen.bindings)
        left = {str(name): int(count) for name, count in rows}
        left["archived events"] = len(await self._archived(chosen.session))
        return left

    async def published(self, chosen: Chosen) -> list[str]:
        """The learnings of a session that others may hold."""
        rows = await self._rows("published_of", chosen.bindings)
        return [str(learning_id) for learning_id, *_ in rows]

    async def export(self, choice: Choice) -> AsyncIterator[dict[str, Any]]:
        """All that there is of sessions, one document after the other.

        The last one counts them, and has the SHA-256 of all lines before it.
        """
        counts: dict[str, int] = {}
        hashed = sha256()

        def told(kind: str, document: Any) -> dict[str, Any]:
            line = {"kind": kind, **msgspec.to_builtins(document)}
            counts[kind] = counts.get(kind, 0) + 1
            hashed.update(line_of(line))
            return line

        async for chosen in self.sessions(choice):
            try:
                view = await Sessions(self._app).get(chosen.id, tenant=self._actor.tenant)
            except NotFound:
                yield told("session", {"id": chosen.id, "session_id": chosen.session_id})
            else:
                yield told("session", view)
            async for kind, document in self._parts(chosen):
                yield told(kind, document)
        yield {
            "kind": "manifest",
            "exported_at": iso(self._app.store.clock.now()),
            "counts": counts,
            "sha256": hashed.hexdigest(),
        }

    async def delete(self, chosen: Chosen, *, leave_published: bool = False) -> Proof:
        """Delete a session, whatever was derived from it included, and prove it."""
        if not leave_published:
            found = await self.published(chosen)
            if found:
                raise Published(chosen.id, found)
        before = await self.left(chosen)
        app = self._app
        hashed = await Journal(app.store).keyed_hash("\n".join(("session", *chosen.session.key)))
        async with self._actor.doing(
            "recorder.delete", f"session:{hashed}", tenant_id=chosen.tenant_id
        ):
            jobs = await self._delete_jobs(chosen)
            await app.transact(partial(_delete_rows, asked=chosen.bindings))
            await app.events.erase(chosen.session, actor=self._actor)
            # What a hook wrote meanwhile has no event any more.
            await app.transact(partial(_delete_rows, asked=chosen.bindings))
            remarks = await scrub(app)
        after = await self.left(chosen)
        gone = {name: count - after[name] for name, count in before.items() if count > after[name]}
        if jobs:
            gone["jobs"] = jobs
        return Proof(
            session=hashed,
            deleted_at=app.store.clock.now(),
            erased=gone,
            left=after,
            remarks=[*remarks, "backups still hold it"],
        )

    async def rules(self) -> list[Rule]:
        """For how long sessions are kept."""
        asked = {"tenant": self._actor.tenant}
        return [Rule(*row) for row in await self._rows("retention", asked)]

    async def keep(
        self, days: int | None, *, project: str | None = None, session: str | None = None
    ) -> Rule:
        """Keep sessions for so many days after they were last seen, or for ever."""
        if days is not None and not 1 <= days <= 36_500:
            raise InvalidOption("days", days, "1 to 36,500")
        scope, name = await self._scope(project, session)
        now = self._app.store.clock.now()
        rule = Rule(self._actor.tenant or "", scope, name, days, self._actor.name, now)
        async with self._actor.doing("recorder.retention", f"{scope}:{name}", days=days):
            await self._app.transact(lambda tx: tx.recorder.run("put_retention", asdict(rule)))
        return rule

    async def forget_rule(self, *, project: str | None = None, session: str | None = None) -> bool:
        """Drop a rule; whether there was one."""
        scope, name = await self._scope(project, session)
        asked = {"tenant_id": self._actor.tenant or "", "scope": scope, "name": name}
        async with self._actor.doing("recorder.retention", f"{scope}:{name}", days="none"):
            return bool(
                await self._app.transact(lambda tx: tx.recorder.run("drop_retention", asked))
            )

    async def overdue(self) -> AsyncIterator[Chosen]:
        """The sessions that have been kept for long enough."""
        rules = await self.rules()
        shortest = min((rule.days for rule in rules if rule.days is not None), default=None)
        if shortest is None:
            return
        now = self._app.store.clock.now()
        async for chosen in self.sessions(Choice(until=now - shortest * DAY_MS)):
            days = _days(rules, chosen)
            if days is not None and chosen.last_at < now - days * DAY_MS:
                yield chosen

    async def _beginning(self, name: str) -> Chosen:
        """The one session whose id begins like this."""
        row = (await Sessions(self._app).get(name, tenant=self._actor.tenant)).row
        whose = (row.id, row.tenant_id, row.platform, row.session_id)
        return Chosen(*whose, row.project, row.last_at, row.title)

    async def _scope(self, project: str | None, session: str | None) -> tuple[str, str]:
        if project is not None and session is not None:
            raise InvalidOption("project", project, "left out where a session is named")
        if session is not None:
            async for chosen in self.sessions(Choice(session=session)):
                return "session", chosen.id
        return ("all", "") if project is None else ("project", project)

    async def _parts(self, chosen: Chosen) -> AsyncIterator[tuple[str, Any]]:
        """What there is of a session beside what a page shows of it."""
        after = 0
        while rows := await self._rows(
            "messages_of", {"conversation_id": chosen.id, "after": after, "limit": PAGE}
        ):
            for row in rows:
                yield "message", dict(zip(MESSAGE, row, strict=False))
            after = int(rows[-1][3])
        for event in await self._archived(chosen.session):
            yield "event", event
        async for event in self._events(chosen.session):
            yield "event", event
        for row in await self._rows("redactions_of", {"id": chosen.id}):
            yield "redaction", dict(zip(REDACTION, row, strict=True))
        where = LearningFilter(conversation_id=chosen.id, tenant=self._actor.tenant, limit=PAGE)
        for learning in await Learnings(self._app, self._actor).list(where):
            yield "learning", learning

    async def _events(self, session: Session) -> AsyncIterator[Event]:
        after = 0
        while True:
            where = EventFilter(
                session_id=session.session_id,
                platform=session.platform,
                tenant=session.tenant_id,
                after=after,
                limit=PAGE,
            )
            events = await self._app.events.find(where)
            for event in events:
                yield event
            if len(events) < PAGE:
                return
            after = events[-1].sequence

    async def _archived(self, session: Session) -> list[Event]:
        return await archive.events_of(self._app, session, None, 0, LATEST)

    async def _delete_jobs(self, chosen: Chosen) -> int:
        """Delete the jobs that look at a session; they hold its id."""
        deleted, wanted = 0, msgspec.json.encode(chosen.id).decode()
        for type_ in JOBS:
            where = JobFilter(type=type_, payload=(("conversation_id", wanted),), limit=PAGE)
            while jobs := await self._app.store.reader.find(where):
                deleted += await erase_jobs(self._app, [job.id for job in jobs])
        return deleted

    async def _rows(self, name: str, asked: Mapping[str, Any]) -> list[Any]:
        return list(await self._app.read(lambda tx: tx.recorder.rows(name, dict(asked))))


async def retain(app: "Penstock") -> int:
    """Delete what was kept for long enough: a pass of the leader. How many sessions."""
    deleted = 0
    privacy = Privacy(app)
    async for chosen in privacy.overdue():
        await privacy.delete(chosen, leave_published=True)
        deleted += 1
    return deleted


def line_of(document: Mapping[str, Any]) -> bytes:
    """A document as one line of an export."""
    return msgspec.json.encode(document) + b"\n"


def _delete_rows(tx: Any, asked: dict[str, str]) -> None:
    for name in ROWS:
        tx.recorder.run(name, asked)


def _days(rules: Sequence[Rule], chosen: Chosen) -> int | None:
    """For how many days a session is kept, by the narrowest of its rules."""
    names = {"session": chosen.id, "project": chosen.project or "", "all": ""}
    for scope in SCOPES:
        for tenant in (chosen.tenant_id, ""):
            for rule in rules:
                if (rule.scope, rule.name, rule.tenant_id) == (scope, names[scope], tenant):
                    return rule.days
    return None
