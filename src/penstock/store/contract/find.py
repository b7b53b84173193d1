"""A page of jobs out of as many searches as it takes to fill it."""

from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from penstock.model.job import Job
from penstock.store.contract.reader import Found, JobFilter


async def find(search: Callable[[JobFilter], Awaitable[Found]], where: JobFilter) -> list[Job]:
    """As many jobs as were asked for, or all there are, newest first."""
    found: list[Job] = []
    before = where.before
    while len(found) < where.limit:
        page = await search(replace(where, before=before, limit=where.limit - len(found)))
        found += page.jobs
        before = page.before
        if before is None:
            break
    return found
