"""The audit log of an installation: appended to, never changed."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from penstock.model.audit import Entry


class AuditFilter(Struct, frozen=True, kw_only=True):
    """Which entries to list, newest first; `before` is the seq to continue below.

    `action` also finds what is named below it: `job` finds `job.cancel`. Times are UTC
    milliseconds, `until` not included.
    """

    actor: str | None = None
    action: str | None = None
    subject: str | None = None
    tenant_id: str | None = None
    since: int | None = None
    until: int | None = None
    before: int | None = None
    limit: int = 50


class AuditLog(Protocol):
    """Entries in one chain; `penstock.model.audit` seals and checks them."""

    async def last(self) -> Entry | None:
        """The end of the chain; none while it is empty."""
        ...

    async def append(self, entries: Sequence[Entry]) -> bool:
        """Add sealed entries, all of them or none.

        False, and nothing is written, when the first does not continue the chain as it now ends:
        somebody else was quicker, and the entries must be sealed again.
        """
        ...

    async def page(self, after: int, limit: int = 1000) -> list[Entry]:
        """Entries in the order of the chain, from the one behind that seq on."""
        ...

    async def find(self, where: AuditFilter) -> list[Entry]:
        """A page of entries, newest first."""
        ...
