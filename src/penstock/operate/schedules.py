"""Schedules in somebody's hands: look, put, pause, resume, remove, run now."""

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from penstock.app.lookups import check_rows
from penstock.app.options import with_options
from penstock.app.schedules import ScheduleView, check_template, put
from penstock.model.ids import new_id
from penstock.model.not_found import ScheduleNotFound
from penstock.model.options import check_text
from penstock.model.schedule import Schedule, first_tick, tick_job
from penstock.operate.actor import PROGRAM, Actor

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.app.schedules import Times
    from penstock.model.job import NewJob
    from penstock.store.contract import Store

NAMED = 20
"""A schedule that is not found is answered with the names of so many that are there."""


class Schedules:
    """`app.schedules`: what is scheduled; of one tenant if the actor is bound to one."""

    def __init__(self, app: "Penstock", actor: Actor = PROGRAM) -> None:
        self._app = app
        self._actor = actor

    async def get(self, name: str, tenant: str = "") -> ScheduleView:
        """One schedule, or ScheduleNotFound; of the actor's own tenant if none is named."""
        return ScheduleView(await self._known(name, self._tenant(tenant)))

    async def list(self, tenant: str | None = None, limit: int = 1000) -> list[ScheduleView]:
        """Return all schedules, or those of a tenant, by name."""
        rows = check_rows(limit)
        wanted = self._actor.tenant_of(None if tenant is None else check_text("tenant", tenant))
        found = await self._store.schedules.known(rows, tenant_id=wanted)
        return [ScheduleView(each) for each in found]

    async def pause(self, name: str, tenant: str = "") -> ScheduleView:
        """Fire nothing until resumed, through restarts and deploys."""
        found = await self._known(name, self._tenant(tenant))
        async with self._doing("schedule.pause", found):
            await self._store.schedules.pause(name, found.tenant_id)
            return ScheduleView(await self._known(name, found.tenant_id))

    async def resume(self, name: str, tenant: str = "") -> ScheduleView:
        """Go on from now; ticks that passed while it was paused are not made up for."""
        found = await self._known(name, self._tenant(tenant))
        async with self._doing("schedule.resume", found):
            while not found.enabled:
                over = found.max_runs is not None and found.run_count >= found.max_runs
                upcoming = None if over else first_tick(found, self._store.clock.now())
                await self._store.schedules.resume(found, upcoming)
                found = await self._known(name, found.tenant_id)
        return ScheduleView(found)

    async def remove(self, name: str, tenant: str = "") -> None:
        """Remove a schedule; jobs it enqueued stay."""
        found = await self._known(name, self._tenant(tenant))
        async with self._doing("schedule.remove", found):
            if not await self._store.schedules.remove(name, found.tenant_id):
                await self._known(name, found.tenant_id)

    async def run(self, name: str, tenant: str = "") -> str:
        """Enqueue one job of it now, beside its ticks; return the job's id."""
        found = await self._known(name, self._tenant(tenant))
        async with self._doing("schedule.run", found):
            now, run = self._store.clock.now(), found.run_count + 1
            job = tick_job(found, new_id(), now, run=run, previous=found.last_run_at)
            return (await self._store.jobs.enqueue([job]))[0].id

    def new_job(self, type_name: str, payload: str, tenant: str = "", **options: Any) -> "NewJob":
        """What a schedule is to enqueue, by its type's defaults; of the actor's tenant."""
        type_ = self._app.find_type(type_name)
        options |= {"tenant": self._tenant(tenant), "created_by": self._actor.name}
        chosen = self._app.checked(with_options(type_.defaults, **options))
        return replace(chosen, id=new_id(), payload=payload)

    async def put(
        self, name: str, job: "NewJob", times: "Times", *, checked: bool = False
    ) -> ScheduleView:
        """Create or change a schedule by hand, which stands until its declaration changes.

        A job that was `checked` before may be of a type that only others know.
        """
        self._tenant(job.tenant_id)
        if not checked:
            check_template(self._app.find_type(job.type), name, job, times)
        async with self._actor.doing(
            "schedule.put", f"schedule:{name}", tenant_id=job.tenant_id, type=job.type
        ):
            return await put(self._store, name, job, times, by="operator")

    async def _known(self, name: str, tenant: str) -> Schedule:
        found = await self._store.schedules.get(check_text("name", name), tenant)
        if found is None:
            known = await self._store.schedules.known(NAMED, tenant_id=tenant)
            raise ScheduleNotFound(name, [each.name for each in known])
        return found

    def _tenant(self, named: str) -> str:
        return self._actor.tenant_of(check_text("tenant", named) or None) or ""

    def _doing(self, action: str, schedule: Schedule) -> AbstractAsyncContextManager[object]:
        subject, tenant = f"schedule:{schedule.name}", schedule.tenant_id
        return self._actor.doing(action, subject, tenant_id=tenant, type=schedule.type)

    @property
    def _store(self) -> "Store":
        return self._app.store
