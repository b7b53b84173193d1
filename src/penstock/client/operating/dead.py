"""What an operator decides about dead letters, within their tenant and on record."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.client.dead import Canaries, DeadView, Replay, Triage, open_ids
from penstock.client.requeue import PAGE, Progress, Requeued, requeue_all
from penstock.model.errors import IllegalTransition, JobNotFound
from penstock.model.ids import is_id
from penstock.store.contract import DeadGroup, DeadLetter, Resolution

if TYPE_CHECKING:
    from penstock.client.operating.acting import Acting
    from penstock.model.job import Job


class DeadOperator:
    """`operator.dead`: the same as `app.dead`, of one tenant if the operator is bound to one."""

    def __init__(self, acting: "Acting") -> None:
        self._acting = acting
        self._store = acting.app.store
        self._triage = Triage(acting.app, acting.tenant_id)

    async def groups(
        self, type_name: str | None = None, *, settled: bool = False, limit: int = 50
    ) -> list[DeadGroup]:
        """What died of the same error in the same place; the largest open group first."""
        return await self._triage.groups(type_name, settled=settled, limit=limit)

    async def group(self, group: str) -> DeadGroup:
        """The group of a short id, or of an unmistakable beginning of one."""
        return await self._triage.group(group)

    async def find(
        self,
        *,
        group: str | None = None,
        type_name: str | None = None,
        tenant: str | None = None,
        resolution: Resolution | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> list[DeadLetter]:
        """A page of dead letters, newest first, of a group or a type or all."""
        found = None if group is None else await self._triage.group(group)
        bound = self._acting.tenant_id
        return await self._store.dead.find(
            type=type_name if found is None else found.type,
            fingerprint=None if found is None else found.fingerprint,
            tenant_id=tenant if bound is None else bound,
            resolution=resolution,
            before=before,
            limit=limit,
        )

    async def show(self, job_id: str) -> DeadView:
        """One dead letter, its group, and the traceback of its last execution."""
        if not is_id(job_id):
            raise JobNotFound(job_id)
        return await self._triage.show(job_id)

    async def replay(self, group: str, canary: int = 5) -> Replay:
        """Run the newest few of a group again, to see whether the cause is gone."""
        found = await self._triage.group(group)
        async with self._acting.doing("dead.replay", f"group:{found.id}", canary=canary):
            return await self._triage.replay(found.id, canary)

    async def canaries(self, group: str) -> Canaries:
        """How the canaries of a group have fared."""
        return await self._triage.canaries(group)

    async def requeue(self, ids: Sequence[str]) -> Requeued:
        """Run dead jobs again; one that is refused stops no other."""
        own = [job_id for job_id in ids if await self._letter(job_id) is not None]
        async with self._acting.doing("dead.requeue", _jobs(own), ids=own):
            return await requeue_all(self._store, own)

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
        subject = f"group:{found.id}"
        async with self._acting.doing("dead.release", subject, rate=rate, force=force):
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
        subject, tenant = await self._subject(which)
        noted = None if notes is None else await self._acting.journal.keyed_hash(notes)
        details = {"resolution": str(resolution), "notes_hash": noted}
        async with self._acting.doing("dead.resolve", subject, tenant_id=tenant, **details):
            who = by or self._acting.name
            return await self._triage.resolve(which, resolution, notes=notes, by=who)

    async def purge(self, which: str) -> int:
        """Delete a dead letter, or all open ones of a group, and their jobs for good."""
        letter = await self._letter(which)
        if letter is None:
            group = await self._triage.group(which)
            ids = await open_ids(self._store, group, tenant_id=self._acting.tenant_id)
        else:
            await self._refuse_alive(letter.job_id)
            ids = [letter.job_id]
        subject, tenant = await self._subject(which)
        async with self._acting.doing("dead.purge", subject, tenant_id=tenant, count=len(ids)):
            pages = [ids[start : start + PAGE] for start in range(0, len(ids), PAGE)]
            return sum([await self._store.dead.purge(page) for page in pages])

    async def purge_all(self, ids: Sequence[str]) -> int:
        """Delete dead letters and their jobs for good, the settled ones too."""
        own = [job_id for job_id in ids if await self._letter(job_id) is not None]
        async with self._acting.doing("dead.purge", _jobs(own), ids=own):
            return await self._store.dead.purge(own)

    async def amend(
        self,
        job_id: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        payload: str | None = None,
        requeue: bool = False,
    ) -> "Job":
        """Correct arguments of a dead job; those that are not named stay."""
        letter = (await self.show(job_id)).letter
        details = {"arguments": sorted(arguments or {}), "requeue": requeue}
        subject = f"job:{job_id}"
        async with self._acting.doing("dead.amend", subject, tenant_id=letter.tenant_id, **details):
            return await self._triage.edit(job_id, arguments, payload=payload, requeue=requeue)

    async def _letter(self, job_id: str) -> DeadLetter | None:
        letter = await self._store.dead.get(job_id)
        return letter if letter is not None and self._acting.owns(letter.tenant_id) else None

    async def _subject(self, which: str | Sequence[str]) -> tuple[str, str | None]:
        """What an entry calls it, and the tenant that may read the entry."""
        ids = [which] if isinstance(which, str) else list(which)
        letter = await self._letter(ids[0]) if len(ids) == 1 else None
        if letter is not None:
            return f"job:{letter.job_id}", letter.tenant_id
        if isinstance(which, str):
            return f"group:{(await self._triage.group(which)).id}", None
        return f"jobs:{len(ids)}", None

    async def _refuse_alive(self, job_id: str) -> None:
        """One that was requeued lives on: its dead letter is its history."""
        for job in await self._store.reader.get([job_id]):
            if not job.status.terminal:
                raise IllegalTransition(job.status, "purge", job_id)


def _jobs(ids: Sequence[str]) -> str:
    """What an entry calls them: by id if there is one, else by their number."""
    return f"job:{ids[0]}" if len(ids) == 1 else f"jobs:{len(ids)}"
