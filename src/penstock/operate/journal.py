"""The audit log: what is about to be done is written down first, in a chain of hashes."""

import hashlib
import hmac
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.json import decode, encode

from penstock.model.audit import Break, Entry, first_break, sealed
from penstock.model.errors import PenstockError

if TYPE_CHECKING:
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
