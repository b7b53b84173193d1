"""Erasing a tenant or a person everywhere, with a certificate of what there was.

It is written down, and a job that is nobody's does it: a job of the tenant would have to erase
itself. If a job of the tenant asks for it, that only writes it down, and is erased, too. What there
is is counted before anything goes, so that the certificate says the same however often the job was
killed; and again at the end, when there must be nothing left. Who it was about is then known by a
keyed hash alone.
"""

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import Struct

from penstock.app.handle import JobHandle
from penstock.app.job_type import Prepared
from penstock.app.options import with_options
from penstock.apps.agents.maintenance.subject import Subject, jobs_of, tables_of
from penstock.model.errors import InvalidOption, PenstockError
from penstock.model.ids import derived_id, id_time_ms, new_id
from penstock.model.not_found import NotFound
from penstock.operate.erase import erase, erase_jobs, scrub
from penstock.operate.journal import Journal
from penstock.store.contract import AuditFilter

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.model.audit import Entry

TYPE = "data-deletion"
ACTOR = f"job:{TYPE}"
ACTION = "data.delete"


class StillThere(PenstockError):
    """Something of a subject that is there after it was erased."""

    def __init__(self, left: dict[str, int]) -> None:
        self.left = left
        told = ", ".join(f"{count:,} in {name}" for name, count in sorted(left.items()))
        super().__init__(f"After the deletion there is still something left: {told}; try it again.")


class DeletionNotFound(NotFound):
    """An id that no deletion has."""

    def __init__(self, deletion_id: str) -> None:
        self.deletion_id = deletion_id
        super().__init__(f"No deletion has the id {deletion_id!r}; list them to find it.")


class Requested(NamedTuple):
    """A deletion that was written down, and a handle on the job that does it."""

    id: str
    job: JobHandle[Any]


class Certificate(Struct, frozen=True, kw_only=True, rename="camel"):
    """What was removed of whom: of the subject a keyed hash, of what it was the numbers.

    `audit` is the entry of the audit log about it. `signature` is a keyed hash of all the rest.
    """

    id: str
    subject: str
    kind: str
    requested_at: int
    completed_at: int
    found: dict[str, int]
    left: dict[str, int]
    remarks: list[str]
    audit: int
    signature: str = ""


class Deletion(Struct, frozen=True, kw_only=True):
    """A deletion: requested, erasing, or done; until it is done it says whom it is about."""

    id: str
    subject: Subject | None
    subject_hash: str
    status: str
    found: dict[str, int]
    certificate: Certificate | None
    created_at: int
    ended_at: int | None


async def request(app: "Penstock", subject: Subject, asked_by: str | None = None) -> Requested:
    """Write a deletion down, with the job that does it, in one commit.

    A job that asks for it is erased with the rest, once it has ended; asked again, it asks for the
    same one.
    """
    seed = new_id() if asked_by is None else asked_by
    deletion_id = derived_id(id_time_ms(seed), "deletion", seed)
    hashed = await Journal(app.store).keyed_hash(subject.text)
    jobs = [] if asked_by is None else [asked_by]
    told = (deletion_id, _encoded(subject), hashed, _encoded(jobs))
    type_ = app.find_type(TYPE)
    call = type_.from_payload(
        _encoded({"deletionId": deletion_id}), with_options(type_.defaults, after=jobs)
    )
    job_id = derived_id(id_time_ms(seed), TYPE, seed)
    job = Prepared(call.type, msgspec.structs.replace(call.job, id=job_id))

    def work(tx: Any) -> JobHandle[Any]:
        tx.agents.run("request_deletion", (*told, tx.now))
        handle: JobHandle[Any] = tx.enqueue(job)
        return handle

    return Requested(deletion_id, await app.transact(work))


async def count(app: "Penstock", subject: Subject) -> dict[str, int]:
    """How much there is of a subject, by what it is."""
    found: Counter[str] = Counter()
    store = app.table_store("agents")
    async for table, where in tables_of(app, subject):
        found[table.name] += await store.count(table, where)
    async for page in jobs_of(app, subject):
        found["jobs"] += len(page)
    if subject.person is None:
        found["schedules"] += len(await app.store.schedules.known(tenant_id=subject.tenant))
    return {name: number for name, number in sorted(found.items()) if number}


async def delete(app: "Penstock", deletion_id: str) -> Certificate:
    """Do what was written down; done again, it changes nothing."""
    deletion, jobs = await _get(app, deletion_id)
    if deletion.certificate is not None:
        await scrub(app)
        return deletion.certificate
    subject = deletion.subject
    if subject is None:
        raise InvalidOption("deletion", deletion_id, "one that says whom it is about")
    found = deletion.found
    if deletion.status == "requested":
        found = await count(app, subject)
        bindings = (_encoded(found), deletion_id)
        await app.transact(lambda tx: tx.agents.run("deletion_found", bindings))
    erased = await erase(app, tenant=subject.tenant, person=subject.person)
    await erase_jobs(app, jobs)
    left = await count(app, subject)
    if left:
        raise StillThere(left)
    entry = await _journalled(app, deletion, found)
    certificate = await _signed(
        app,
        Certificate(
            id=deletion_id,
            subject=deletion.subject_hash,
            kind=subject.kind,
            requested_at=deletion.created_at,
            completed_at=app.store.clock.now(),
            found=found,
            left=left,
            remarks=erased.remarks,
            audit=entry.seq,
        ),
    )
    await app.transact(partial(_done, certificate=certificate))
    # Once more, for the bytes of what said until now whom it was about.
    await scrub(app)
    return certificate


def _done(tx: Any, certificate: Certificate) -> None:
    tx.agents.run("deletion_done", (_encoded(certificate), tx.now, certificate.id))


async def _journalled(app: "Penstock", deletion: Deletion, found: dict[str, int]) -> "Entry":
    """The entry of the audit log about a deletion, which is written once."""
    subject = f"deletion:{deletion.id}"
    [*there] = await app.store.audit.find(AuditFilter(action=ACTION, subject=subject, limit=1))
    if there:
        return there[0]
    details = {"subject": deletion.subject_hash, "found": found}
    return await Journal(app.store).write(ACTOR, ACTION, subject, details=details)


async def _signed(app: "Penstock", certificate: Certificate) -> Certificate:
    unsigned = msgspec.structs.replace(certificate, signature="")
    signature = await Journal(app.store).keyed_hash(_encoded(unsigned))
    return msgspec.structs.replace(certificate, signature=signature)


async def _get(app: "Penstock", deletion_id: str) -> tuple[Deletion, list[str]]:
    row = await app.read(lambda tx: tx.agents.row("deletion", (deletion_id,)))
    if row is None:
        raise DeletionNotFound(deletion_id)
    return _deletion(row), msgspec.json.decode(row[3])


def _deletion(row: tuple[Any, ...]) -> Deletion:
    id_, subject, hashed, _, found, status, certificate, created_at, ended_at = row
    return Deletion(
        id=id_,
        subject=None if subject is None else msgspec.json.decode(subject, type=Subject),
        subject_hash=hashed,
        status=status,
        found={} if found is None else msgspec.json.decode(found),
        certificate=None if certificate is None else _read_certificate(certificate),
        created_at=created_at,
        ended_at=ended_at,
    )


def _read_certificate(text: str) -> Certificate:
    return msgspec.json.decode(text, type=Certificate)


def document(certificate: Certificate) -> dict[str, Any]:
    """A certificate as JSON has it."""
    told: dict[str, Any] = msgspec.to_builtins(certificate)
    return told


def _encoded(value: Any) -> str:
    return msgspec.json.encode(value, order="deterministic").decode()


class Deletions:
    """`app.agents.deletions`: ask for one, see how far it is, and verify its certificate."""

    def __init__(self, app: "Penstock") -> None:
        self._app = app

    async def request(self, *, tenant: str | None = None, person: str | None = None) -> "Requested":
        """Have all that there is of a tenant, or of a person, erased by a job."""
        if tenant is None and person is None:
            raise InvalidOption("deletion", "nothing", "told whose data to erase")
        return await request(self._app, Subject(tenant=tenant, person=person))

    async def get(self, deletion_id: str) -> Deletion:
        """A deletion; DeletionNotFound if there is none of this id."""
        return (await _get(self._app, deletion_id))[0]

    async def verify(self, certificate: Certificate) -> bool:
        """Whether a certificate is as this installation has signed it."""
        return (await _signed(self._app, certificate)).signature == certificate.signature

    async def is_about(
        self, certificate: Certificate, *, tenant: str | None = None, person: str | None = None
    ) -> bool:
        """Whether a certificate is about somebody whose name is known."""
        text = Subject(tenant=tenant, person=person).text
        return await Journal(self._app.store).keyed_hash(text) == certificate.subject

    async def list(self, limit: int = 100) -> list[Deletion]:
        """All of them, the newest first."""
        rows = await self._app.read(lambda tx: tx.agents.rows("deletions", (limit,)))
        return [_deletion(row) for row in rows]
