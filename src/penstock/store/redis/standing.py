"""One look at all that decides whether a job runs."""

from penstock.model.limits import limits_on, names_of
from penstock.model.pause import PauseScope, pausable
from penstock.store.contract import Standing
from penstock.store.contract.reader import PARENTS_SHOWN
from penstock.store.redis import pictures, workers
from penstock.store.redis.courier import Courier
from penstock.store.redis.gates import look_at_gates, pause


async def standing(courier: Courier, job_id: str) -> Standing | None:
    """All that decides whether a job runs now."""
    found = await courier.call("stand", job_id, PARENTS_SHOWN)
    if found is None:
        return None
    now, picture, parents, paused, ahead, tenants, key_holder = found
    job = pictures.job(picture)
    lane = (job.queue, job.tenant_id, job.type, job.limit_key)
    gates = await look_at_gates(courier, names_of(*lane))
    about = pausable(job)
    own = [] if paused is None else [pause(PauseScope.JOB, job.id, paused)]
    return Standing(
        now=int(now),
        job=job,
        waits_for=[pictures.dependency(row) for row in parents],
        pauses=[*own, *(held for held in gates.pauses if about[held.scope] == held.name)],
        limits=[gates.state(limit) for limit in limits_on(gates.limits, *lane)],
        breakers=gates.breakers_on(job.type),
        workers=workers.known(*await courier.call("list_workers")),
        ahead=int(ahead),
        tenants=int(tenants),
        key_holder=pictures.text(key_holder),
    )
