"""What an operator decides about dead letters, within their tenant and on record."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Unpack

from msgspec import Struct

from penstock.model.audit import Entry
from penstock.model.errors import IllegalTransition, JobNotFound
from penstock.model.ids import is_id
from penstock.operate.dead import (
    Canaries,
    DeadView,
    LetterFields,
    Replay,
    Triage,
    canaries_of,
    matching_ids,
    open_ids,
    standing,
)
from penstock.operate.operating.actor import listed, shared
from penstock.operate.operating.jobs import PAGE, Progress, Requeued
from penstock.store.contract import DeadGroup, DeadLetter, Resolution

if TYPE_CHECKING:
    from penstock.model.job import Job
    from penstock.operate.operating.actor import Acting


class _Chosen(Struct, frozen=True):
    """The jobs of some letters, the tenant they have in common, and their group if it was named."""

    ids: list[str]
    tenant_id: str | None
    group: str | None = None


class DeadOperator:
    """`operator.dead`: the same as `app.dead`, of one tenant if the operator is bound to one."""

    def __init__(self, acting: "Acting") -> None:
        self._acting = acting
        self._store = acting.app.store
        self._triage = Triage(acting.app, acting.tenant_id)

    async def groups(
        self,
        type_name: str | None = None,
        *,
        closed: bool = False,
        before: str | None = None,
        limit: int = 50,
    ) -> list[DeadGroup]:
        """What died of the same error in the same place, a page; the latest death first."""
        return await self._triage.groups(type_name, closed=closed, before=before, limit=limit)

    async def group(self, group: str) -> DeadGroup:
        """The group of a short id, or of an unmistakable beginning of one."""
        return await self._triage.group(group)

    async def find(
        self,
        *,
        group: str | DeadGroup | None = None,
        type_name: str | None = None,
        tenant: str | None = None,
        resolution: str | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> list[DeadLetter]:
        """A page of dead letters, newest first, of a group or a type or all.

        `resolution` is one of `RESOLUTIONS`.
        """
        found = None if group is None else await self._group(group)
        return await self._store.dead.find(
            type=type_name if found is None else found.type,
            fingerprint=None if found is None else found.fingerprint,
            tenant_id=self._acting.tenant(tenant),
            before=before,
            limit=limit,
            **standing(resolution),
        )

    async def show(self, job_id: str) -> DeadView:
        """One dead letter, its group, and the traceback of its last execution."""
        if not is_id(job_id):
            raise JobNotFound(job_id)
        return await self._triage.show(job_id)

    async def replay(self, group: str, canary: int = 5) -> Replay:
        """Run the newest few of a group again, to see whether the cause is gone."""
        found = await self._triage.group(group)
        subject, tenant = f"group:{found.id}", await self._tenant_of(found)
        async with self._acting.doing("dead.replay", subject, tenant_id=tenant, canary=canary):
            return await self._triage.replay(found.id, canary)

    async def canaries(self, group: str | DeadGroup) -> Canaries:
        """How the canaries of a group have fared."""
        return await canaries_of(self._store, (await self._group(group)).id, self._acting.tenant_id)

    async def release(
        self,
        group: str,
        rate: str | None = "10/s",
        *,
        force: bool = False,
        progress: Progress | None = None,
    ) -> Requeued:
        """Run the rest of a group again, the oldest first."""
        found = await self._triage.group(group)
        subject, tenant = f"group:{found.id}", await self._tenant_of(found)
        details = {"rate": rate, "force": force}
        async with self._acting.doing("dead.release", subject, tenant_id=tenant, **details):
            return await self._triage.release(found.id, rate, force=force, progress=progress)

    async def resolve(
        self,
        which: str | Sequence[str],
        resolution: Resolution | str = Resolution.RESOLVED,
        *,
        notes: str | None = None,
        by: str | None = None,
    ) -> list[str]:
        """Record where the operator stands with jobs, or with the open ones of a group.

        `by` is whom others see, if somebody else.
        """
        chosen = await self._chosen(which)
        noted = None if notes is None else await self._acting.journal.keyed_hash(notes)
        details = {"resolution": str(resolution), "notes_hash": noted}
        async with self._doing("dead.resolve", chosen, **details):
            who = by or self._acting.name
            return await self._triage.resolve(chosen.ids, resolution, notes=notes, by=who)

    async def matching(self, **where: Unpack[LetterFields]) -> list[str]:
        """The letters that a filter names, newest first, but for what was requeued and lives."""
        return await matching_ids(self._store, self._acting.tenant_id, **where)

    async def count(self, **where: Unpack[LetterFields]) -> int:
        """How many letters `purge` would delete by a filter."""
        return len(await self.matching(**where))

    async def purge(
        self, which: str | Sequence[str] | None = None, **where: Unpack[LetterFields]
    ) -> int:
        """Delete dead letters, or the open ones of a group, or what a filter names, for good.

        Their jobs go with them.
        """
        if which is None:
            return await self._purge_where(where)
        chosen = await self._chosen(which)
        if isinstance(which, str) and chosen.group is None:
            await self._refuse_alive(which)
        async with self._doing("dead.purge", chosen):
            pages = [chosen.ids[at : at + PAGE] for at in range(0, len(chosen.ids), PAGE)]
            return sum([await self._store.dead.purge(page) for page in pages])

    async def _purge_where(self, where: LetterFields) -> int:
        ids = await self.matching(**where)
        tenant = where.get("tenant")
        details = {name: value for name, value in where.items() if value is not None}
        told = {"filter": details, **listed(ids)}
        async with self._acting.doing("dead.purge", "jobs", tenant_id=tenant, **told):
            return await self._triage.purge(ids)

    async def amend(
        self,
        job_id: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        payload: str | None = None,
        requeue: bool = False,
    ) -> "Job":
        """Correct arguments of a dead or cancelled job; those that are not named stay."""
        job = await self._acting.get(job_id)
        details = {"arguments": sorted(arguments or {}), "requeue": requeue}
        async with self._acting.on_jobs("amend", [job], **details):
            return await self._triage.amend(job_id, arguments, payload=payload, requeue=requeue)

    async def _chosen(self, which: str | Sequence[str]) -> "_Chosen":
        """The letters that are meant: one, several, or the open ones of a group."""
        if isinstance(which, str):
            letter = await self._store.dead.get(which)
            if letter is None or not self._acting.owns(letter.tenant_id):
                group = await self._triage.group(which)
                ids = await open_ids(self._store, group, tenant_id=self._acting.tenant_id)
                return _Chosen(ids, await self._tenant_of(group), group.id)
            return _Chosen([letter.job_id], letter.tenant_id)
        known = await self._acting.known(which)
        return _Chosen([job.id for job in known], shared(job.tenant_id for job in known))

    def _doing(
        self, action: str, chosen: "_Chosen", **details: Any
    ) -> AbstractAsyncContextManager[Entry]:
        if chosen.group is not None:
            subject, told = f"group:{chosen.group}", {"count": len(chosen.ids)}
        elif len(chosen.ids) == 1:
            subject, told = f"job:{chosen.ids[0]}", {}
        else:
            subject, told = "jobs", listed(chosen.ids)
        return self._acting.doing(action, subject, tenant_id=chosen.tenant_id, **told, **details)

    async def _group(self, group: str | DeadGroup) -> DeadGroup:
        """A group, looked up unless it is at hand."""
        return await self._triage.group(group) if isinstance(group, str) else group

    async def _tenant_of(self, group: DeadGroup) -> str | None:
        """The tenant to whom all of a group belongs."""
        newest = await self._store.dead.get(group.newest_id)
        if newest is None or self._acting.tenant_id is not None:
            return None
        theirs = await self._store.dead.group(
            group.type, group.fingerprint, tenant_id=newest.tenant_id
        )
        whole = theirs is not None and theirs.count == group.count
        return newest.tenant_id if whole else None

    async def _refuse_alive(self, job_id: str) -> None:
        """One that was requeued lives on: its dead letter is its history."""
        for job in await self._store.reader.get([job_id]):
            if not job.status.terminal:
                raise IllegalTransition(job.status, "purge", job_id)
