"""Dead letters: what is kept of a job that could not be done, for a person to resolve."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from penstock.model.failure import group_id


class Resolution(StrEnum):
    """How far a person has got with a dead letter."""

    PENDING = "pending"
    INVESTIGATING = "investigating"
    RESOLVED = "resolved"
    IGNORED = "ignored"


OPEN = (Resolution.PENDING, Resolution.INVESTIGATING)
"""A dead letter is open until it is resolved or ignored; then it is closed."""


class DeadLetter(Struct, frozen=True, kw_only=True):
    """A snapshot of the job at its death, with its executions, as JSON text.

    `canary_of` is the group the job was last replayed for, ahead of the others.
    """

    job_id: str
    type: str
    queue: str
    tenant_id: str
    reason: str
    error: str | None
    error_code: str | None
    fingerprint: str
    attempts: int
    rescues: int
    snapshot: str
    executions: str
    resolution: Resolution
    notes: str | None
    resolved_by: str | None
    resolved_at: int | None
    created_at: int
    canary_of: str | None = None

    @property
    def group(self) -> str:
        """The short id of its group."""
        return group_id(self.type, self.fingerprint)


class DeadGroup(Struct, frozen=True, kw_only=True):
    """Dead letters of one type that died of the same error in the same place."""

    fingerprint: str
    type: str
    error: str | None
    error_code: str | None
    count: int
    open: int
    first_at: int
    last_at: int
    newest_id: str

    @property
    def id(self) -> str:
        """A short id that people can type; the same wherever the same error is grouped."""
        return group_id(self.type, self.fingerprint)


class DeadLetters(Protocol):
    """List, resolve and purge; requeueing is `JobStore.requeue`."""

    async def find(
        self,
        *,
        type: str | None = None,  # noqa: A002 - the column's name
        tenant_id: str | None = None,
        resolution: Resolution | None = None,
        only_open: bool = False,
        fingerprint: str | None = None,
        canary_of: str | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> list[DeadLetter]:
        """A page, newest first; `before` is the job's id to continue after.

        The newest open one, of a type or of all, is found without a look at those that are closed.
        """
        ...

    async def groups(
        self,
        *,
        type: str | None = None,  # noqa: A002 - the column's name
        tenant_id: str | None = None,
        only_open: bool = False,
        before: str | None = None,
        limit: int = 50,
    ) -> list[DeadGroup]:
        """Alike ones together, a page: the group with the newest letter first.

        `before` is the `newest_id` of the group to continue after; `only_open` leaves out groups
        without an open letter.
        """
        ...

    async def group(
        self,
        type: str,  # noqa: A002 - the column's name
        fingerprint: str,
        *,
        tenant_id: str | None = None,
    ) -> DeadGroup | None:
        """One group, or none; of a tenant its letters alone."""
        ...

    async def group_names(
        self,
        *,
        type: str | None = None,  # noqa: A002 - the column's name
        tenant_id: str | None = None,
    ) -> list[tuple[str, str]]:
        """Type and fingerprint of every group."""
        ...

    async def get(self, job_id: str) -> DeadLetter | None:
        """One dead letter, or none."""
        ...

    async def resolve(
        self, ids: Sequence[str], resolution: Resolution, *, notes: str | None, by: str | None
    ) -> list[str]:
        """Record where a person stands with them; returns the ids that exist.

        Without notes earlier ones stay; notes and names pass the redaction gate. A requeue
        resolves what is open by itself.
        """
        ...

    async def mark_canaries(self, ids: Sequence[str], group: str | None) -> None:
        """Remember which jobs are replayed ahead of their group, or that they no longer are."""
        ...

    async def purge(self, ids: Sequence[str]) -> int:
        """Delete dead letters and their jobs for good; a job that was requeued lives on."""
        ...
