"""Erasure: what belongs to a session, a person or a tenant goes, and no rebuild brings it back.

Of an event its place stays, and the id that it is known by when it comes again. In the same commit
an `erasure` is appended, which holds ids and a keyed hash, whoever has fetched the event looks
again, and what was derived from its session is marked to be made anew. What is left undone by an
erasure that breaks off is therefore known, and the next one does it.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from penstock.events import archive, job_archive
from penstock.events.codec import Codec
from penstock.events.columns import EXTRACTED, ORDINARY
from penstock.events.consumer import Applying, Consumer
from penstock.events.enrichment import NotEnriched
from penstock.events.event import InvalidEvent, NewEvent, Session, identified
from penstock.events.rebuild import NOT_ITS_OWN, clear, rebuild_session
from penstock.model.errors import InvalidOption
from penstock.operate.actor import PROGRAM, Actor
from penstock.operate.erase import Erased, erase_jobs, scrub
from penstock.operate.journal import Journal
from penstock.outbox.extension import deliver

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.extension import Erasing

PAGE = 500
REASON = "events of it were erased"
LATER = "events of it were erased, and it waits to be enriched"
FAILED = "events of it were erased, and the others could not be applied again"
BESIDE_IDS = 200
"""So many bytes of an erasure at most are not ids."""
ERASURE = "erasure"
PLATFORM = "penstock"


class ConsumersMissing(InvalidOption):
    """Consumers that have derived something and are not known here."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__("consumers", list(names), "declared here")
        self.names = list(names)
        listed = ", ".join(repr(name) for name in names)
        told = f"What consumer {listed} has derived cannot be erased, because it is not known here"
        forget = "do it where it is declared, or `penstock events forget` a consumer that is gone"
        self.args = (f"{told}; {forget}.",)


class Subject(Struct, frozen=True, kw_only=True):
    """Whose events go: those of a session, of a person, of a tenant, or of a person within one."""

    session: Session | None = None
    tenant: str | None = None
    person: str | None = None

    @property
    def what(self) -> str:
        """The kind of subject, in a word."""
        return "session" if self.session else "person" if self.person is not None else "tenant"

    @property
    def text(self) -> str:
        """All of it, to be hashed."""
        key = tuple(self.session.key) if self.session else (self.tenant, self.person)
        return "\n".join((self.what, *(part or "" for part in key)))

    @property
    def left_to(self) -> str | None:
        """The tenant whose the tombstones are; None leaves them to their own."""
        return "" if self.session is None and self.person is None else None

    def made(self, job: Mapping[str, Any]) -> bool:
        """Whether a job is the tenant's, the person's, or the person's within the tenant."""
        theirs = ((self.tenant, job["tenant_id"]), (self.person, job["created_by"]))
        return all(mine is None or mine == told for mine, told in theirs)

    @property
    def bindings(self) -> dict[str, str | None]:
        """What queries are asked with."""
        if self.session is None:
            return {
                "session_id": None,
                "platform": None,
                "tenant": self.tenant,
                "person": self.person,
            }
        tenant, platform, session_id = self.session.key
        return {"session_id": session_id, "platform": platform, "tenant": tenant, "person": None}


async def erase_session(app: "Penstock", session: Session, *, actor: Actor = PROGRAM) -> Erased:
    """Erase all that there is of a session."""
    subject = Subject(session=session)
    hashed = await Journal(app.store).keyed_hash(subject.text)
    async with actor.doing("events.erase", f"session:{hashed}", tenant_id=session.tenant_id):
        erased = await erase(app, subject)
        return replace(erased, remarks=await scrub(app))


async def erase_whose(app: "Penstock", whose: "Erasing") -> int:
    """Erase what the events of a tenant or a person have left: `penstock erase` asks for it."""
    erased = await erase(app, Subject(tenant=whose.tenant, person=whose.person))
    return sum(erased.parts.values())


async def erase(app: "Penstock", subject: Subject) -> Erased:
    """Erase all that there is of a subject; run again, it goes on where it broke off."""
    if subject.session is None and subject.tenant is None and subject.person is None:
        raise InvalidOption("erase", "nothing", "told whose events: a session, person or tenant")
    consumers = await _consumers(app)
    hashed = await Journal(app.store).keyed_hash(subject.text)
    eraser = Eraser(app, subject, consumers, hashed)
    parts: Counter[str] = Counter()
    while True:  # until nothing was on its way into the log any more
        parts["entries of streams"] += (waiting := await eraser.erase_waiting())
        parts["events"] += (buried := await eraser.bury())
        if not waiting + buried:
            break
    parts["archived events"] = await archive.erase(app, eraser)
    if subject.session is None:
        parts["archived jobs"] = await job_archive.erase(app, subject.made)
    parts["dead letters"] = await eraser.drop_letters()
    parts["sessions"], failed = await derive_anew(app, consumers, REASON)
    parts += await _erase_jobs(app)
    if app.events.stream is not None:
        await app.events.stream.rewrite()
    if failed is not None:
        raise failed
    return Erased({name: count for name, count in parts.items() if count})


async def _consumers(app: "Penstock") -> Mapping[str, Consumer]:
    """Those that have come past events; one that is not known here is refused."""
    known: Mapping[str, Consumer] = app.consumer.known()
    rows = await _rows(app, "consumer_names")
    names = [str(name) for (name,) in rows]
    missing = [name for name in names if name not in known]
    if missing:
        raise ConsumersMissing(missing)
    return {name: known[name] for name in names}


Found = tuple[int, str, int, int, str, str, str]
"""Sequence, id, time and slot of an event, and its session."""


class Eraser:
    """What one erasure does to events, wherever they are."""

    def __init__(
        self, app: "Penstock", subject: Subject, consumers: Mapping[str, Consumer], hashed: str
    ) -> None:
        self.subject = subject
        self.page = PAGE
        self._app = app
        self._hashed = hashed
        self._buried: set[str] = set()
        self._unseen: list[Mapping[str, Any]] = []
        """Events that waited, and of which the log knows nothing yet."""
        self._resets = [each.name for each in consumers.values() if each.reset is not None]

    async def erase_waiting(self) -> int:
        """Erase what waits in the spool and in streams, in the order in which it gets there."""
        count = 0
        self._unseen = []
        if self._app.events.intake is not None:
            spool = self._app.events.intake.spool
            count += await asyncio.to_thread(spool.erase, lambda event: self._found(asdict(event)))
        if self._app.events.stream is not None:
            count += await self._app.events.stream.erase(self._means_entry)
            await self._app.transact(self._bury_unseen)
        elif count:
            await self._app.transact(self._bury_unseen)
        return count

    def _found(self, waiting: Mapping[str, Any]) -> bool:
        """Whether an event that waits is one of the subject's."""
        means = self.means(waiting)
        if means:
            self._unseen.append(waiting)
        return means

    def _means_entry(self, fields: Mapping[str, str]) -> bool:
        """Whether an entry of a stream is about the subject; some do not say about whom."""
        return self._found(fields) or fields.get("event_id") in self._buried

    def _bury_unseen(self, tx: Any) -> None:
        """Have ingest look again at what it has read, and leave tombstones of what only waited.

        Of a tenant's events there are none: without its name they would be known by nobody.
        """
        tx.events.hold()
        tx.events.queries.run("count_erasure")
        unseen = {} if self.subject.left_to is not None else _identified(self._unseen)
        buried: list[str] = []
        for (event_id, at), told in unseen.items():
            tenant, platform = told.get("tenant_id") or "", told.get("platform") or ""
            session = Session(tenant, platform, told.get("session_id") or event_id)
            about = (told.get("event_type") or "", event_id, platform, tenant)
            row = (event_id, at, tx.now, *about, session.slot, ORDINARY, b"")
            if tx.events.queries.run("bury_unseen", row):
                buried.append(event_id)
        if buried:
            self._tell(tx, buried)

    async def bury(self) -> int:
        """Leave tombstones in the log; how many. What is appended meanwhile goes, too."""
        total, after = 0, 0
        query = f"{self.subject.what}_to_erase"
        while True:
            asked = {**self.subject.bindings, "after": after, "limit": PAGE}
            rows = await _rows(self._app, query, asked)
            if rows:
                total += await self._app.transact(partial(self._bury, rows=rows))
                self._buried |= {str(row[1]) for row in rows}
                after = int(rows[-1][0])
            elif after:
                after = 0
            else:
                return total

    def _bury(self, tx: Any, rows: Sequence[Found]) -> int:
        tx.events.hold()
        nothing = {"nothing": b"", "left_to": self.subject.left_to}
        stones = [{"sequence": row[0], "timestamp": row[2], **nothing} for row in rows]
        buried = int(tx.events.queries.many("tombstone", stones))
        if buried:
            self.record(tx, rows)
        return buried

    def means(self, row: Mapping[str, Any]) -> bool:
        """Whether an event outside the log is one of the subject's."""
        wanted = self.subject.bindings
        wanted["tenant_id"] = wanted.pop("tenant")
        known = {**row, "session_id": row.get("session_id") or row.get("event_id")}
        return all(
            value is None or (known.get(name) or "") == value for name, value in wanted.items()
        )

    def found(self, row: Mapping[str, Any]) -> Found:
        """An archived event as `record` takes it."""
        names = ("sequence", "event_id", "timestamp", "slot", "tenant_id", "platform", "session_id")
        sequence, event_id, timestamp, slot, tenant, platform, session = map(row.get, names)
        return sequence, event_id, timestamp, slot, tenant, platform, session  # type: ignore[return-value]

    def replace(self, row: dict[str, Any]) -> None:
        """Leave of an archived event what a tombstone of the log has."""
        row.update(dict.fromkeys(EXTRACTED), session_id=row["event_id"], person=None, body="")
        row["codec"] = Codec.ERASED.value
        if self.subject.left_to is not None:
            row["tenant_id"] = self.subject.left_to

    def record(self, tx: Any, rows: Sequence[Found]) -> None:
        """Append the erasure of some events, and have all that knows them look again."""
        queries = tx.events.queries
        sessions = {Session(*row[4:]): row for row in rows}
        queries.many("forget_reasons", [session.key for session in sessions])
        for slot in sorted({int(row[3]) for row in rows}):
            queries.run("look_again", (slot,))
        queries.many("doom_jobs", [(row[0],) for row in rows])
        for session, row in sessions.items():
            for name in self._resets:
                marked = (session.slot, REASON, row[0], tx.now)
                queries.run("mark_erased", (name, *session.key, *marked))
        self._tell(tx, [str(row[1]) for row in rows])

    def _tell(self, tx: Any, event_ids: Sequence[str]) -> None:
        """Append what was erased, by ids and a keyed hash."""
        about = {"what": self.subject.what, "subject": self._hashed}
        for ids in self._split(event_ids):
            told = {**about, "events": ids}
            tx.events.append_own(NewEvent(event_type=ERASURE, platform=PLATFORM, payload=told))

    def _split(self, ids: Sequence[str]) -> list[list[str]]:
        """Ids in lists that are each within the limit of an event, or have one id."""
        most = self._app.extensions.settings("events").event_limit - BESIDE_IDS
        found: list[list[str]] = [[]]
        size = 0
        for each in ids:
            takes = len(msgspec.json.encode(each)) + 1
            if found[-1] and size + takes > most:
                found.append([])
                size = 0
            found[-1].append(each)
            size += takes
        return found

    async def drop_letters(self) -> int:
        """Delete dead letters and figures of the subject."""
        asked = self.subject.bindings

        def work(tx: Any) -> int:
            queries = tx.events.queries
            for name in ("erase_series", "erase_samples"):
                queries.run(name, asked)
            return int(queries.run("erase_dead", asked))

        return await self._app.transact(work)


def _identified(waiting: Sequence[Mapping[str, Any]]) -> dict[tuple[str, int], Mapping[str, Any]]:
    """Events that waited and can be known again, by their ids and times."""
    found: dict[tuple[str, int], Mapping[str, Any]] = {}
    for told in waiting:
        given = {name: told.get(name) for name in ("event_id", "timestamp", "event_type")}
        if str(given["timestamp"]).isdecimal():
            given["timestamp"] = int(str(given["timestamp"]))
        try:
            found[identified(msgspec.convert(given, NewEvent), 0)] = told
        except (InvalidEvent, msgspec.ValidationError):
            continue  # it would not have come into the log
    return found


async def derive_anew(
    app: "Penstock", consumers: Mapping[str, Consumer], reason: str
) -> tuple[int, Exception | None]:
    """Make anew what was derived from sessions that are marked for a reason; how many.

    A session that a consumer fails to make anew is cleared. One that it fails to clear is left for
    the next erasure, and the error is returned.
    """
    sessions: set[Session] = set()
    failed: Exception | None = None
    after = ("",) * 4
    while rows := await _rows(app, "reset_marks", (reason, *after, PAGE)):
        after = rows[-1]
        for name, *key in rows:
            try:
                await _make_anew(app, consumers[name], Session(*key))
            except NOT_ITS_OWN:
                raise
            except Exception as error:
                failed = failed or error
            else:
                sessions.add(Session(*key))
    return len(sessions), failed


async def _make_anew(app: "Penstock", consumer: Consumer, session: Session) -> None:
    why = LATER
    try:
        await rebuild_session(app, consumer, session, keeps=True)
        return
    except NotEnriched:
        pass
    except NOT_ITS_OWN:
        raise
    except Exception:
        why = FAILED
    await app.transact(partial(_clear, consumer=consumer, session=session, why=why))


def _clear(tx: Any, consumer: Consumer, session: Session, why: str) -> None:
    """Throw away what was derived; it is made anew when it is calm."""
    clear(Applying(tx, consumer.name, enqueues=False), consumer, session)
    told = (session.slot, why, 0, tx.now)
    tx.events.queries.run("mark_erased", (consumer.name, *session.key, *told))


async def _erase_jobs(app: "Penstock") -> Counter[str]:
    """Erase the jobs that consumers made of events which are erased, archived ones, too."""
    erased: Counter[str] = Counter()
    while rows := await _rows(app, "doomed_jobs", (PAGE,)):
        ids = [job_id for row in rows for job_id in str(row[3]).split()]
        await deliver(app, ids)  # one that waits in the outbox would come later
        made = await job_archive.made_by(app, ids)
        erased["jobs"] += await erase_jobs(app, list(made))
        # Only now: an archiver may have read them before they were gone from their store.
        erased["archived jobs"] += await job_archive.erase_jobs(app, made)
        done = [tuple(row[:3]) for row in rows]
        await app.transact(partial(_forget_jobs, done=done))
    return erased


def _forget_jobs(tx: Any, done: Sequence[tuple[Any, ...]]) -> None:
    tx.events.queries.many("forget_jobs", done)


async def _rows(app: "Penstock", name: str, bindings: Any = ()) -> list[Any]:
    def question(tx: Any) -> list[Any]:
        return list(tx.events.queries.rows(name, bindings))

    return await app.read(question)
