"""Whether a claim took the right jobs, and told the worker what it needs to know of them."""

from collections.abc import Sequence

from penstock.model.job import Lease
from penstock.store.contract import Claim
from proof.state_machine.model import ModelJob, StoreModel

COMES_BACK_OFTEN = 6


def check_choice(model: StoreModel, claim: Claim, leases: Sequence[Lease]) -> None:
    """As many as there are, the most urgent of each tenant, tenants in turns."""
    waiting = model.claimable(claim)
    total = sum(map(len, waiting.values()))
    assert len(leases) == min(claim.limit, total), f"{len(leases)} leases of {total} jobs"
    taken = {tenant: [i.rank for i in jobs] for tenant, jobs in waiting.items()}
    shares = {
        tenant: [model.jobs[i.id].rank for i in leases if i.tenant_id == tenant]
        for tenant in waiting
    }
    for tenant, share in shares.items():
        assert sorted(share) == taken[tenant][: len(share)], "a less urgent job went first"
        left = len(waiting[tenant]) > len(share)
        assert not left or len(share) >= max(map(len, shares.values())) - 1, "a turn was missed"


def check_lease(lease: Lease, job: ModelJob, starts: bool | None) -> None:
    """The lease says of the job what is so, and is marked if it is to be started."""
    assert lease.fence == job.fence + 1
    found = (lease.attempts, lease.snoozes, lease.rescues, lease.checkpoint, lease.expires_at)
    assert found == (job.attempts, job.snoozes, job.rescues, job.checkpoint, job.expires_at)
    told = (lease.type, lease.tenant_id, lease.queue, lease.key, lease.limit_key)
    new = job.new
    assert told == (new.type, new.tenant_id, new.queue, new.key, new.limit_key)
    if starts is not None:
        marked = lease.started_at is not None
        assert marked or not starts, "a lease to be started has no mark"
        assert starts or not marked or job.fence >= COMES_BACK_OFTEN, "a prefetch has a mark"
