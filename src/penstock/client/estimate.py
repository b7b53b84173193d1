"""When a job that was just enqueued will start, about."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from penstock.model.clock import utc
from penstock.model.job import NewJob

if TYPE_CHECKING:
    from datetime import datetime

    from penstock.client.admission import Admission


class Estimate(Struct, frozen=True, gc=False):
    """Where a job stood when it was enqueued; the rest is worked out when somebody asks."""

    queue: str
    ahead: int
    enqueued_at: int
    due: int

    def start(self, per_second: float | None) -> "datetime | None":
        """The time it starts, never before its own; none if nothing is known to leave its queue."""
        if per_second is None:
            return None
        reached = self.enqueued_at + self.ahead * 1000 / per_second
        return utc(round(max(reached, self.due)))


def estimates(admission: "Admission", jobs: Sequence[NewJob], now: int) -> list[Estimate | None]:
    """One for each job; none for those that wait for others, or whose queue nobody counts."""
    found: list[Estimate | None] = []
    ahead: dict[str, int | None] = {}
    for place, job in enumerate(jobs):
        if job.queue not in ahead:
            ahead[job.queue] = admission.ahead_in(job.queue)
        before = ahead[job.queue]
        if before is None or job.after:
            found.append(None)
            continue
        due = now + job.delay_ms if job.scheduled_at is None else job.scheduled_at
        found.append(Estimate(job.queue, max(0, before - len(jobs) + place), now, due))
    return found
