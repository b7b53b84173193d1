"""What an operator does: checked against their tenant, and written into the audit log."""

from collections.abc import Sequence

from penstock.model.controls import Pause
from penstock.model.dependency import Edge
from penstock.model.errors import JobNotFound
from penstock.model.explain import Explanation
from penstock.model.job import Job
from penstock.model.refused import ParentNotFound
from penstock.model.states import Status
from penstock.operate.explain import explain, named_in, without
from penstock.operate.operating.actor import Acting
from penstock.operate.operating.alerts import AlertOperator
from penstock.operate.operating.controls import ControlOperator
from penstock.operate.operating.dead import DeadOperator
from penstock.operate.operating.jobs import BulkOperator
from penstock.operate.operating.schedules import ScheduleOperator
from penstock.store.contract import Dependencies, Dependency


class Operator(Acting):
    """One person or program; `tenant_id` binds what it sees and changes to one tenant."""

    @property
    def dead(self) -> DeadOperator:
        """Dead letters."""
        return DeadOperator(self)

    @property
    def schedules(self) -> ScheduleOperator:
        """Schedules."""
        return ScheduleOperator(self)

    @property
    def controls(self) -> ControlOperator:
        """Pauses, limits and breakers."""
        return ControlOperator(self)

    @property
    def alerts(self) -> AlertOperator:
        """Alerts."""
        return AlertOperator(self)

    @property
    def bulk(self) -> BulkOperator:
        """Many jobs at once."""
        return BulkOperator(self)

    async def dependencies(self, job_id: str, limit: int = 100) -> Dependencies:
        """What a job waits for and what waits for it; edges to another tenant's are left out."""
        found = await self.app.store.reader.dependencies(job_id, limit)
        ends = {edge.edge.parent_id for edge in found.parents}
        ends |= {edge.child_id for edge in found.children}
        own = await self.own_ids(ends)

        def kept(edges: list[Dependency]) -> list[Dependency]:
            return [e for e in edges if {e.edge.parent_id, e.child_id} <= own | {job_id}]

        return Dependencies(kept(found.parents), kept(found.children))

    async def explain(self, job_id: str) -> Explanation:
        """Every reason why a job does, or does not, run now; other tenants' jobs go unnamed."""
        await self.get(job_id)
        found = await self.app.store.reader.standing(job_id)
        if found is None:
            raise JobNotFound(job_id)
        named = named_in(found)
        return explain(without(found, named - await self.own_ids(named)))

    async def own_ids(self, ids: set[str]) -> set[str]:
        """Those of some ids that are the operator's business; of a job that is gone, nobody's."""
        if self.tenant_id is None or not ids:
            return ids
        known = await self.app.store.reader.get(sorted(ids))
        return {job.id for job in known if self.owns(job.tenant_id)}

    async def cancel(self, job_id: str, reason: str | None = None) -> Status:
        """Cancel a waiting job, or ask a running one to stop."""
        job = await self.get(job_id)
        async with self.on_jobs("cancel", [job]):
            return await self.app.cancel(job_id, reason or f"cancelled by {self.name}")

    async def cancel_all(self, ids: Sequence[str], reason: str) -> dict[str, str]:
        """Cancel jobs that all exist, and what each has become; none if one does not."""
        own = await self._all(ids)
        async with self.on_jobs("cancel", own):
            return await self.app.store.jobs.cancel([job.id for job in own], reason)

    async def requeue_all(self, ids: Sequence[str]) -> list[str]:
        """Run cancelled or dead jobs again: all of them, or none."""
        own = await self._all(ids)
        async with self.on_jobs("requeue", own):
            return await self.app.store.jobs.requeue([job.id for job in own])

    async def pause(
        self, job_id: str, reason: str | None = None, *, by: str | None = None
    ) -> Pause:
        """Hold a waiting job back; `by` is whom others see, if somebody else."""
        job = await self.get(job_id)
        async with self.on_jobs("pause", [job]):
            return await self.app.pause(job=job_id, reason=reason, by=by or self.name)

    async def resume(self, job_id: str) -> bool:
        """Let a paused job go on; whether it was paused."""
        job = await self.get(job_id)
        async with self.on_jobs("resume", [job]):
            return await self.app.resume(job=job_id)

    async def requeue(self, job_id: str) -> Job:
        """Run a cancelled or dead job again."""
        job = await self.get(job_id)
        async with self.on_jobs("requeue", [job]):
            return await self.app.requeue(job_id)

    async def add_dependency(self, job_id: str, edges: Sequence[Edge]) -> Job:
        """Have a job that has not been queued yet wait for more; the job afterwards."""
        job = await self.get(job_id)
        parents = {edge.parent_id for edge in edges}
        for parent in sorted(parents - await self.own_ids(parents)):
            raise ParentNotFound(parent)
        async with self.on_jobs("depend", [job], parents=sorted(parents)):
            await self.app.add_dependency(job_id, *edges)
        return await self.app.get(job_id)

    async def _all(self, ids: Sequence[str]) -> list[Job]:
        """The jobs, each once, if all of them are the operator's business."""
        known = await self.known(ids)
        found = {job.id for job in known}
        for job_id in ids:
            if job_id not in found:
                raise JobNotFound(job_id)
        return known
