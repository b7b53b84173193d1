"""Log lines about every single job: for who asks for debug lines, and at no cost for the rest."""

import logging
import sys
from collections.abc import Sequence
from typing import Any

from penstock.model.job import Enqueued, NewJob


def detailed(name: str) -> Any | None:
    """A logger for lines about every job; none unless the program configured one that shows them.

    A program that has not even loaded structlog does not load it for this.
    """
    structlog = sys.modules.get("structlog")
    if structlog is None or not structlog.is_configured():
        return None
    log = structlog.get_logger(name).bind()
    shows = getattr(log, "is_enabled_for", None)
    return log if shows is not None and shows(logging.DEBUG) else None


def tell_enqueued(log: Any, jobs: Sequence[NewJob], answers: Sequence[Enqueued]) -> None:
    """Say which jobs were enqueued; of what they hold, nothing."""
    for job, answer in zip(jobs, answers, strict=True):
        log.debug(
            "job_enqueued",
            job_id=answer.id,
            job_type=job.type,
            queue=job.queue,
            created=answer.created,
        )
