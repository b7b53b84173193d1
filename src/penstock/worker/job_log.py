"""What a worker logs about its jobs: ids, types and figures, and nothing a job holds or says."""

from collections.abc import Callable, Sequence
from typing import Any

import structlog

from penstock.app.job_log import detailed
from penstock.model.job import Lease
from penstock.model.outcome import Buried, Crashed, Failed, Settlement

log = structlog.get_logger("penstock.worker")


def about(job: Lease | Settlement, owner: str) -> dict[str, Any]:
    """What every line about a job begins with; `attempts` are those spent before."""
    return {
        "job_id": job.id,
        "job_type": job.type,
        "queue": job.queue,
        "worker_id": owner,
        "attempts": job.attempts,
    }


class JobLines:
    """Failures for everybody; claims and other endings for who asked, at info or as debug lines."""

    def __init__(self, owner: str, *, at_info: bool = False) -> None:
        self._owner = owner
        shown = detailed("penstock.worker")
        self._tell: Callable[..., Any] | None = None if shown is None else shown.debug
        if at_info:
            self._tell = log.info

    @property
    def every(self) -> bool:
        """Whether every job gets its lines."""
        return self._tell is not None

    def claimed(self, leases: Sequence[Lease]) -> None:
        """These jobs are this worker's now."""
        if self._tell is None:
            return
        for lease in leases:
            self._tell("job_claimed", **about(lease, self._owner), fence=lease.fence)

    def ended(self, settlement: Settlement) -> None:
        """An execution ended; an error is told by its name, as its text may quote the payload."""
        facts = about(settlement, self._owner) | {
            "attempts": settlement.attempts + 1,
            "duration_ms": settlement.duration_ms,
        }
        name = "job_" + type(settlement).__name__.lower()
        if isinstance(settlement, Failed | Buried | Crashed):
            failure = settlement.failure
            tell = log.error if isinstance(settlement, Buried) else log.warning
            tell(name, **facts, error_class=failure.error_class.value, error_code=failure.code)
        elif self._tell is not None:
            self._tell(name, **facts, wait_ms=settlement.wait_ms)
