"""Firing schedules: at every tick one job, however many processes watch for it."""

import asyncio
from functools import partial
from typing import NamedTuple

import structlog

from penstock.app.gates import known
from penstock.app.penstock import Penstock
from penstock.extension import Way
from penstock.model.errors import NotAdmitted, PenstockError
from penstock.model.job import NewJob
from penstock.model.schedule import MOST_AT_ONCE, Schedule, due_ticks, tick_jobs
from penstock.model.store_errors import StoreError
from penstock.service import Service
from penstock.store.contract import Store
from penstock.upkeep.leader import Leader

log = structlog.get_logger("penstock.upkeep")

LONGEST_SLEEP = 1.0
STANDBY_MS = 2_000
BATCH = 1_000
TOGETHER = 50


class Fired(NamedTuple):
    """How many jobs a pass enqueued, and milliseconds until the next tick."""

    jobs: int
    next_in_ms: int | None


class FireSchedules(Service):
    """Runs in every process: the leader acts at once, the others on what it leaves lying."""

    name = "schedules"

    def __init__(self, app: Penstock, leader: Leader) -> None:
        super().__init__(LONGEST_SLEEP)
        self._app = app
        self._store = app.store
        self._leader = leader

    async def run_once(self) -> None:
        """Fire what is due, then sleep until the next tick, or a second."""
        leads = self._leader.leads
        fired = await fire(self._app, 0 if leads else STANDBY_MS)
        if leads and (expired := await self._store.schedules.expire()):
            log.info("schedules_expired", schedules=expired)
        ahead = LONGEST_SLEEP if fired.next_in_ms is None else fired.next_in_ms / 1000
        self.interval = min(ahead, LONGEST_SLEEP)


async def fire_due(app: Penstock) -> int:
    """Fire every schedule that is due, once; return how many jobs that enqueued."""
    fired = await fire(app, 0)
    await app.store.schedules.expire()
    return fired.jobs


async def fire(app: Penstock, overdue_ms: int) -> Fired:
    """Fire, once each, the schedules that have been due for so long."""
    store = app.store
    jobs = 0
    behind = False
    seen: set[str] = set()
    while True:
        due, next_in_ms = await store.schedules.due(BATCH)
        oldest = store.clock.now() - overdue_ms
        ripe = [one for one in due if (one.next_run_at or 0) <= oldest and one.id not in seen]
        if not ripe:
            return Fired(jobs, 0 if behind else next_in_ms)
        seen.update(one.id for one in ripe)
        for start in range(0, len(ripe), TOGETHER):
            # Together, so that they share a commit; few, so that the loop is not held up.
            part = ripe[start : start + TOGETHER]
            fired = await asyncio.gather(*(_fire_one(app, one) for one in part))
            jobs += sum(fired)
            behind = behind or max(fired) >= MOST_AT_ONCE


async def _fire_one(app: Penstock, schedule: Schedule) -> int:
    """Enqueue its jobs and advance it, unless somebody else just did; how many jobs."""
    store = app.store
    try:
        ticks, upcoming = due_ticks(schedule, store.clock.now())
        jobs = await _let_in(app, schedule, tick_jobs(schedule, ticks))
        last = ticks[-1] if ticks else None
        done = await _fire(app, schedule, jobs, upcoming, last)
    except (PenstockError, ValueError, TypeError, OverflowError) as error:
        if isinstance(error, StoreError) and type(error) is not StoreError:
            raise
        await _set_aside(store, schedule, error)
        return 0
    return len(jobs) if done else 0


async def _let_in(app: Penstock, schedule: Schedule, jobs: list[NewJob]) -> list[NewJob]:
    """The jobs that nothing keeps out; a tick of one that is kept out passes."""
    if not (app.extensions.gates or app.extensions.counters):
        return jobs
    admitted = []
    for job in jobs:
        try:
            await known(partial(app.admission.gates.let_in, [job], Way.SCHEDULE))
        except NotAdmitted as refusal:
            log.warning("tick_not_admitted", schedule=schedule.name, error=str(refusal))
        else:
            admitted.append(job)
    return admitted


async def _fire(
    app: Penstock, schedule: Schedule, jobs: list[NewJob], upcoming: int | None, last: int | None
) -> bool:
    """Enqueue the jobs and advance the schedule; False, and none counted, if somebody else did."""
    try:
        done = await app.store.schedules.fire(schedule, jobs, upcoming, last_run_at=last)
    except Exception:
        app.admission.gates.give_back(jobs)
        raise
    if not done:
        app.admission.gates.give_back(jobs)
    return done


async def _set_aside(store: Store, schedule: Schedule, error: Exception) -> None:
    """Pause what cannot be fired, so that it neither blocks the others nor floods the log."""
    if await store.schedules.pause(schedule.name, schedule.tenant_id, revision=schedule.revision):
        log.warning(
            "schedule_paused", schedule=schedule.name, tenant=schedule.tenant_id, error=str(error)
        )
