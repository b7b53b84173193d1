"""The model's order lines: jobs of one order key, one behind the other."""

from collections.abc import Iterator

from penstock.model.job import NewJob


class Lines:
    """Who stands in which line; a job that has ended stands in none."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, str], list[str]] = {}

    def join(self, job: NewJob) -> None:
        """Stand behind all others."""
        if job.order_key is not None:
            self._lines.setdefault((job.tenant_id, job.order_key), []).append(job.id)

    def leave(self, job_id: str) -> None:
        """Step out; those behind close up."""
        for line in self._lines.values():
            if job_id in line:
                line.remove(job_id)

    def waits(self, job_id: str) -> bool:
        """Whether somebody stands before this job."""
        return any(child == job_id for child, _ in self.pairs())

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Every job that stands behind another, and that other."""
        for line in self._lines.values():
            yield from zip(line[1:], line, strict=False)
