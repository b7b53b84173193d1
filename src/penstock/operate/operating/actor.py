"""Who acts, within which tenant, and the audit log that hears of it before it happens."""

import hashlib
import hmac
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.json import decode, encode

from penstock.model.audit import Break, Entry, first_break, sealed
from penstock.model.errors import JobNotFound, PenstockError
from penstock.model.ids import is_id
from penstock.model.refused import ForeignTenant

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.model.job import Job
    from penstock.store.contract import Store


async def kept(store: "Store", kind: str, name: str, make: Callable[[], str]) -> str:
    """The text under a name, the same for every process of an installation."""
    while True:
        record = await store.records.get(kind, name)
        if record is not None:
            return decode(record.document, type=str)
        await store.records.put(kind, name, encode(make()).decode(), revision=0)


KIND = "secret"
HASHES = "audit-hashes"
PAGE = 1_000
GONE = "the entry of the known hash is not there, so the end was cut off or all written anew"


class Verified(Struct, frozen=True):
    """How many entries were checked, and where the chain breaks, if it does."""

    entries: int
    problem: Break | None


class Journal:
    """The audit log of an application's store."""

    def __init__(self, store: "Store") -> None:
        self._store = store

    async def write(
        self,
        actor: str,
        action: str,
        subject: str,
        *,
        tenant_id: str = "",
        details: Mapping[str, Any] | None = None,
    ) -> Entry:
        """Append an entry; `details` are ids, counts and names of fields, never contents."""
        said = encode(dict(details or {})).decode()
        while True:
            last = await self._store.audit.last()
            entry = sealed(
                last,
                at=self._store.clock.now(),
                actor=actor,
                action=action,
                subject=subject,
                tenant_id=tenant_id,
                details=said,
            )
            if await self._store.audit.append([entry]):
                return entry

    @asynccontextmanager
    async def doing(
        self,
        actor: str,
        action: str,
        subject: str,
        *,
        tenant_id: str = "",
        details: Mapping[str, Any] | None = None,
    ) -> AsyncGenerator[Entry]:
        """Record an action, do it, and record that it was refused if it was."""
        entry = await self.write(actor, action, subject, tenant_id=tenant_id, details=details)
        try:
            yield entry
        except PenstockError as error:
            refused = {"entry": entry.seq, "error": type(error).__name__}
            await self.write(
                actor, f"{action}.refused", subject, tenant_id=tenant_id, details=refused
            )
            raise

    async def keyed_hash(self, content: str) -> str:
        """What an entry may say of a content: the same for the same one, and telling nothing."""
        key = await self._key()
        return hmac.new(key, content.encode(), hashlib.sha256).hexdigest()

    async def verify(self, known: str | None = None) -> Verified:
        """Check the whole chain, and that an entry of a hash noted earlier is still part of it."""
        last: Entry | None = None
        missing = known is not None
        while page := await self._store.audit.page(last.seq if last else 0, PAGE):
            problem = first_break(page, last)
            if problem is not None:
                return Verified(problem.seq - 1, problem)
            missing = missing and known not in {entry.hash for entry in page}
            last = page[-1]
        entries = last.seq if last else 0
        return Verified(entries, Break(entries + 1, GONE) if missing else None)

    async def _key(self) -> bytes:
        from secrets import token_hex

        return bytes.fromhex(await kept(self._store, KIND, HASHES, lambda: token_hex(32)))


MOST_IDS = 1_000
"""An entry lists no more; that of more jobs says how many there were."""


class Acting:
    """One person or program; `tenant_id` binds what it sees and changes to one tenant."""

    def __init__(self, app: "Penstock", actor: str, tenant_id: str | None = None) -> None:
        self.app = app
        self.actor = actor
        self.tenant_id = tenant_id
        self.journal = Journal(app.store)

    @property
    def name(self) -> str:
        """The actor in words: beside the word token, a colon would look like a secret."""
        return self.actor.replace(":", " ", 1)

    def owns(self, tenant_id: str) -> bool:
        """Whether something of a tenant is its business."""
        return self.tenant_id is None or self.tenant_id == tenant_id

    def tenant(self, named: str | None) -> str | None:
        """The tenant that the actor means; None is all of them. Another's is refused."""
        return own_tenant(self.tenant_id, named)

    def doing(
        self, action: str, subject: str, *, tenant_id: str | None = None, **details: Any
    ) -> AbstractAsyncContextManager[Entry]:
        """Record an action, then do it; details are ids, counts and names, never contents."""
        tenant = self.tenant_id if tenant_id is None else tenant_id
        return self.journal.doing(
            self.actor, action, subject, tenant_id=tenant or "", details=details
        )

    def on_jobs(
        self, action: str, jobs: "Sequence[Job]", **details: Any
    ) -> AbstractAsyncContextManager[Entry]:
        """Record an action on one job by its id and tenant, or on several as `jobs`."""
        tenant = shared(job.tenant_id for job in jobs)
        if len(jobs) == 1:
            [job] = jobs
            told = {"type": job.type, "status": job.status, **details}
            return self.doing(f"job.{action}", f"job:{job.id}", tenant_id=tenant, **told)
        told = listed([job.id for job in jobs]) | details
        return self.doing(f"jobs.{action}", "jobs", tenant_id=tenant, **told)

    async def get(self, job_id: str) -> "Job":
        """A job, or JobNotFound; one of another tenant is not found."""
        known = await self.known([job_id]) if is_id(job_id) else []
        if not known:
            raise JobNotFound(job_id)
        return known[0]

    async def known(self, ids: Sequence[str]) -> "list[Job]":
        """Those of some jobs that are the actor's business, each once, in the order of ids."""
        wanted = list(dict.fromkeys(ids))
        found: dict[str, Job] = {}
        for start in range(0, len(wanted), PAGE):
            for job in await self.app.store.reader.get(wanted[start : start + PAGE]):
                if self.owns(job.tenant_id):
                    found[job.id] = job
        return [found[job_id] for job_id in wanted if job_id in found]


def own_tenant(bound: str | None, named: str | None) -> str | None:
    """The tenant that is meant by a caller bound to one, or to none; another's is refused."""
    if bound is not None and named not in (None, bound):
        raise ForeignTenant(bound, named or "")
    return named if bound is None else bound


def listed(ids: Sequence[str]) -> dict[str, Any]:
    """How an entry tells of many: by their ids and their number."""
    return {"count": len(ids), "ids": list(ids[:MOST_IDS])}


def shared(tenants: Iterable[str]) -> str | None:
    """The one tenant that all an action touches belongs to, who may then read of it."""
    found = set(tenants)
    return found.pop() if len(found) == 1 else None
