"""What the sentences of all reasons share."""

from collections.abc import Sequence

from penstock.model.states import Status
from penstock.store.contract import Standing

HIDDEN = "a job of another tenant"
"""What is told, in place of its id, of a job that is not the business of who asks."""

NAMED = 3
QUOTED = 200


def waits(look: Standing) -> bool:
    """Whether the job neither runs nor has ended."""
    return not look.job.status.terminal and look.job.status is not Status.IN_PROGRESS


def may_be_claimed(look: Standing) -> bool:
    """Whether the job is queued, or will be at the next claim."""
    job = look.job
    if job.status is Status.QUEUED:
        return True
    waiting = job.status in (Status.PENDING, Status.FAILED)
    return waiting and job.waiting_on == 0 and job.scheduled_at <= look.now


def brief(text: str) -> str:
    """Somebody's words on one line, cut where they go on for long, to stand inside a sentence."""
    words = " ".join(text.split())
    return (words if len(words) <= QUOTED else f"{words[: QUOTED - 1]}…").rstrip(".")


def few(names: Sequence[str], count: int | None = None) -> str:
    """The first few names and how many more: `a, b, c and 4 more`."""
    shown = list(names[:NAMED])
    more = (len(names) if count is None else count) - len(shown)
    if more > 0 and shown:
        return f"{', '.join(shown)} and {more:,} more"
    return " and ".join(filter(None, (", ".join(shown[:-1]), *shown[-1:])))
