"""What a worker logs about its jobs: ids, types, figures, and the errors of those that fail."""

from collections.abc import Callable, Sequence
from typing import Any

import structlog

from penstock.app.job_log import detailed
from penstock.logs import shows_tracebacks
from penstock.model.failure import Failure, folded
from penstock.model.job import Lease
from penstock.model.outcome import Buried, Crashed, Failed, Settlement
from penstock.model.wording import brief

log = structlog.get_logger("penstock.worker")


def about(job: Lease | Settlement, owner: str) -> dict[str, Any]:
    """What every line about a job begins with; the first attempt is 1."""
    return {
        "job_type": job.type,
        "job_id": job.id,
        "queue": job.queue,
        "attempt": job.attempts + 1,
        "worker_id": owner,
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
        """An execution ended; of one that failed, the error is told."""
        facts = about(settlement, self._owner) | {"duration_ms": settlement.duration_ms}
        name = "job_" + type(settlement).__name__.lower()
        if isinstance(settlement, Failed | Buried | Crashed):
            if isinstance(settlement, Failed):
                facts["retry_in_ms"] = settlement.retry_in_ms
            tell = log.error if isinstance(settlement, Buried) else log.warning
            tell(name, **facts, **_error(settlement.failure, settlement.id))
        elif self._tell is not None:
            self._tell(name, **facts, wait_ms=settlement.wait_ms)


def _error(failure: Failure, job_id: str) -> dict[str, Any]:
    """A traceback for a person, whose last line has the error; else the command that shows it."""
    told = {"error_class": failure.error_class.value}
    if failure.stack and shows_tracebacks():
        return told | {"exception": folded(failure.stack).rstrip()}
    return told | {
        "error_code": failure.code,
        "error": brief(failure.message),
        "see": f"penstock jobs show {job_id}",
    }
