"""Whether what waits at a server fits the code of a caller, who asks before a deploy."""

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

import msgspec

from penstock.client.check_payloads import (
    Checked,
    PayloadCheck,
    TypeCheck,
    check_jobs,
    check_schedules,
)
from penstock.client.remote.records import record, several
from penstock.client.remote.wire import Wire, quoted
from penstock.model.dependency import Edge
from penstock.model.job import MAX_PAGE, Job
from penstock.model.states import Status

if TYPE_CHECKING:
    from penstock.client.app import Penstock
    from penstock.client.remote.schedules import RemoteSchedules

WAITING = (Status.PENDING, Status.QUEUED, Status.FAILED, Status.PAUSED)


async def check_here(
    wire: Wire,
    app: "Penstock",
    schedules: "RemoteSchedules",
    *,
    examples: int,
    progress: Checked | None,
) -> PayloadCheck:
    """Read what waits, page by page, and compare it with the types of this very process."""

    async def edges_of(job_id: str) -> list[Edge]:
        found = await wire.ask("GET", f"jobs/{quoted(job_id)}")
        with wire.understanding():
            return [record(Edge, each) for each in several(found["parents"])]

    return PayloadCheck(
        await check_jobs(app, _pages(wire), edges_of, examples=examples, progress=progress),
        check_schedules(app, (each.schedule for each in await schedules.list()), examples=examples),
    )


async def check_there(wire: Wire, *, examples: int, progress: Checked | None) -> PayloadCheck:
    """Have the server compare it with the types it knows."""
    found = await wire.ask("GET", "payload-check", query=[("examples", str(examples))])
    with wire.understanding():
        jobs, schedules = (
            msgspec.json.decode(found[name], type=list[TypeCheck]) for name in ("jobs", "schedules")
        )
    checked = PayloadCheck(jobs, schedules)
    if progress is not None:
        progress(checked.checked)
    return checked


async def _pages(wire: Wire) -> AsyncGenerator[list[Job], None]:
    words = [("status", status.value) for status in WAITING]
    before: str | None = None
    while True:
        page = [("limit", str(MAX_PAGE)), *([("before", before)] if before else [])]
        answer = await wire.ask("GET", "jobs", query=[*words, *page])
        with wire.understanding():
            yield [record(Job, each) for each in several(answer["jobs"])]
            before = msgspec.json.decode(answer["next"])
        if before is None:
            return
