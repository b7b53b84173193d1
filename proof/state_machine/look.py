"""One look at all that is stored, and its comparison with the model."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from penstock.model.job import Job, JobChange
from penstock.model.states import Status
from penstock.store.contract import Execution, JobFilter, LogLine, Store
from proof.state_machine.model import ModelJob

EVERYTHING = 10_000


class Seen(NamedTuple):
    """All that is stored about one job."""

    job: Job
    executions: list[Execution]
    logs: list[LogLine]

    def check(self, expected: ModelJob) -> None:
        """The job is as the model says."""
        _check_job(self.job, expected)

    def check_executions(self, expected: ModelJob) -> None:
        """One row per execution, each with a fence of its own, the running one included."""
        assert [execution.fence for execution in self.executions] == expected.fences, self.job.id
        running = [execution.fence for execution in self.executions if execution.ended_at is None]
        assert running == ([expected.fence] if expected.started else []), self.job.id
        assert len(self.logs) == expected.log_lines, self.job.id


async def look(
    store: Store, job_ids: Sequence[str], follower: str
) -> tuple[dict[str, Seen], list[JobChange]]:
    """All jobs in one look, with all that is stored about those that are named.

    Beside them all that a follower was told.
    """
    jobs, changes, histories = await asyncio.gather(
        store.reader.find(JobFilter(limit=EVERYTHING)),
        store.changes.waiting(follower, EVERYTHING),
        asyncio.gather(*(_history(store, job_id) for job_id in job_ids)),
    )
    found = dict(zip(job_ids, histories, strict=True))
    return {job.id: Seen(job, *found.get(job.id, ([], []))) for job in jobs}, changes


async def _history(store: Store, job_id: str) -> tuple[list[Execution], list[LogLine]]:
    return await asyncio.gather(store.reader.executions(job_id), store.reader.logs(job_id))


def _check_job(job: Job, expected: ModelJob) -> None:
    found = {
        "status": job.status,
        "fence": job.fence,
        "attempts": job.attempts,
        "snoozes": job.snoozes,
        "rescues": job.rescues,
        "scheduled_at": job.scheduled_at,
        "expires_at": job.expires_at,
        "owner": job.lease_owner,
        "lease_until": job.lease_until,
        "checkpoint": job.checkpoint,
    }
    model = {name: getattr(expected, name) for name in found}
    differs = {name: (found[name], model[name]) for name in found if found[name] != model[name]}
    assert not differs, f"{job.id}, store and model: {differs}"
    if job.status is Status.IN_PROGRESS:
        assert expected.started == (job.started_at is not None), job.id
        assert expected.cancel_requested == (job.cancel_requested_at is not None), job.id
