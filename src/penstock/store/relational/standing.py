"""One look at all that decides whether a job runs."""

from msgspec.structs import replace

from penstock.model.breaker import BreakerState
from penstock.model.job import Job, KeyScope
from penstock.model.limits import limits_on
from penstock.model.pause import Pause, pausable
from penstock.model.states import Status, sources
from penstock.store.contract import Standing
from penstock.store.contract.reader import PARENTS_SHOWN
from penstock.store.relational import lookup, workers
from penstock.store.relational.breakers import is_probing, known_breakers
from penstock.store.relational.edges import open_parents
from penstock.store.relational.limits import known_limits, limit_states
from penstock.store.relational.pauses import pause_of
from penstock.store.relational.transaction import Transaction


def standing(tx: Transaction, job_id: str) -> Standing | None:
    """All that decides whether a job runs now."""
    found = lookup.get(tx, [job_id])
    if not found:
        return None
    job = found[0]
    lane = (job.queue, job.tenant_id, job.type, job.limit_key)
    queued = job.status is Status.QUEUED
    return Standing(
        now=tx.now,
        job=job,
        waits_for=open_parents(tx, job.id, PARENTS_SHOWN) if job.waiting_on else [],
        pauses=_pauses_on(tx, job),
        limits=limit_states(tx, limits_on(known_limits(tx), *lane)),
        breakers=_breakers_on(tx, job),
        workers=workers.known(tx),
        ahead=_ahead(tx, job) if queued else 0,
        tenants=int(tx.value("other_tenants", (job.queue, job.tenant_id))) if queued else 0,
        key_holder=_key_holder(tx, job),
    )


def _pauses_on(tx: Transaction, job: Job) -> list[Pause]:
    about = pausable(job).items()
    return [found for named in about if (found := pause_of(tx, *named)) is not None]


def _breakers_on(tx: Transaction, job: Job) -> list[BreakerState]:
    """Those that guard the job's type; a probe counts only while it runs."""
    return [
        state if is_probing(tx, state) else replace(state, probe_id=None)
        for state in known_breakers(tx)
        if job.type in state.breaker.types
    ]


def _ahead(tx: Transaction, job: Job) -> int:
    lane = {
        "queue": job.queue,
        "tenant_id": job.tenant_id,
        "type": job.type,
        "limit_key": job.limit_key or "",
    }
    return int(tx.value("ahead", lane | {"rank": tx.value("rank_of", (job.id,))}))


def _key_holder(tx: Transaction, job: Job) -> str | None:
    if job.key is None or job.status not in sources("requeue"):
        return None
    if job.key_scope is KeyScope.WHILE_PENDING:
        return None
    holder = tx.value("key_holder", (job.tenant_id, job.type, job.key, tx.now))
    return None if holder == job.id else holder
