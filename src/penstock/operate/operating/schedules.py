"""What an operator does to schedules, within their tenant and on record."""

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from penstock.app.schedules import Schedules, ScheduleView, check_template
from penstock.model.audit import Entry
from penstock.model.ids import new_id

if TYPE_CHECKING:
    from penstock.app.schedules import Times
    from penstock.model.job import NewJob
    from penstock.operate.operating.actor import Acting


class ScheduleOperator:
    """`operator.schedules`: of one tenant if the operator is bound to one."""

    def __init__(self, acting: "Acting") -> None:
        self._acting = acting
        self._schedules = Schedules(acting.app.store)

    async def list(self, tenant: str | None = None, limit: int = 1000) -> list[ScheduleView]:
        """All schedules, or those of a tenant, by name."""
        wanted = self._acting.tenant(tenant)
        found = await self._acting.app.store.schedules.known(limit, tenant_id=wanted)
        return [ScheduleView(each) for each in found]

    async def get(self, name: str, tenant: str = "") -> ScheduleView:
        """One schedule, of the operator's own tenant if none is named."""
        return await self._schedules.get(name, self._tenant(tenant))

    async def pause(self, name: str, tenant: str = "") -> ScheduleView:
        """Fire nothing until resumed."""
        found = await self.get(name, tenant)
        async with self._doing("schedule.pause", found):
            return await self._schedules.pause(name, found.schedule.tenant_id)

    async def resume(self, name: str, tenant: str = "") -> ScheduleView:
        """Go on from now."""
        found = await self.get(name, tenant)
        async with self._doing("schedule.resume", found):
            return await self._schedules.resume(name, found.schedule.tenant_id)

    async def remove(self, name: str, tenant: str = "") -> None:
        """Remove a schedule; jobs it enqueued stay."""
        found = await self.get(name, tenant)
        async with self._doing("schedule.remove", found):
            await self._schedules.remove(name, found.schedule.tenant_id)

    async def run(self, name: str, tenant: str = "") -> str:
        """Enqueue one job of it now, beside its ticks; the job's id."""
        found = await self.get(name, tenant)
        async with self._doing("schedule.run", found):
            return await self._schedules.run(name, found.schedule.tenant_id)

    def new_job(self, type_name: str, payload: str, tenant: str = "", **options: Any) -> "NewJob":
        """What a schedule is to enqueue, by its type's defaults; of the operator's tenant."""
        app = self._acting.app
        type_ = app.find_type(type_name)
        options["tenant"] = self._tenant(tenant)
        chosen = app.checked(type_.defaults.with_(**options, created_by=self._acting.actor))
        return chosen.new_job(new_id(), type_.name, payload)

    async def put(self, name: str, job: "NewJob", times: "Times") -> ScheduleView:
        """Create or change a schedule of a job, which is checked against its type."""
        type_ = self._acting.app.find_type(job.type)
        self._tenant(job.tenant_id)
        check_template(type_, name, job, times)
        return await self.put_checked(name, job, times)

    async def put_checked(self, name: str, job: "NewJob", times: "Times") -> ScheduleView:
        """The same with a job that was checked already, or whose type is known elsewhere."""
        self._tenant(job.tenant_id)
        async with self._acting.doing(
            "schedule.put", f"schedule:{name}", tenant_id=job.tenant_id, type=job.type
        ):
            return await self._schedules.put(name, job, times, by="operator")

    def _tenant(self, named: str) -> str:
        return self._acting.tenant(named or None) or ""

    def _doing(self, action: str, view: ScheduleView) -> AbstractAsyncContextManager[Entry]:
        schedule = view.schedule
        subject = f"schedule:{schedule.name}"
        return self._acting.doing(action, subject, tenant_id=schedule.tenant_id, type=schedule.type)
