"""Schedules of an installation, through its server."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from penstock.app.job_type import JobType, Partial
from penstock.app.schedules import ScheduleView, check_template, template_job, times_of
from penstock.model.errors import InvalidSchedule
from penstock.model.job import OPTIONS
from penstock.remote.calls import options_document
from penstock.remote.wire import Query, Wire, quoted, schedule_view, several

if TYPE_CHECKING:
    from penstock.model.job import NewJob

_OPTIONS = [option.name for option in OPTIONS.values() if option.in_schedules]


class RemoteSchedules:
    """`remote.schedules`: what is scheduled, and an operator's hand on it."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def get(self, name: str, tenant: str = "") -> ScheduleView:
        """One schedule, or ScheduleNotFound."""
        return await self._view("GET", name, tenant)

    async def list(self, tenant: str | None = None, limit: int = 1000) -> list[ScheduleView]:
        """Return all schedules, or those of a tenant, by name."""
        found: list[ScheduleView] = []
        after: str | None = ""
        while after is not None and len(found) < limit:
            query = [("runs", "0"), ("after", after), *_of(tenant or "")]
            page = await self._wire.ask("GET", "schedules", query=query)
            with self._wire.understanding():
                found += [schedule_view(each) for each in several(page["schedules"])]
                after = msgspec.json.decode(page["next"])
        return found[:limit]

    async def pause(self, name: str, tenant: str = "") -> ScheduleView:
        """Fire nothing until resumed, through restarts and deploys."""
        return await self._view("POST", name, tenant, "/pause")

    async def resume(self, name: str, tenant: str = "") -> ScheduleView:
        """Go on from now; ticks that passed while it was paused are not made up for."""
        return await self._view("POST", name, tenant, "/resume")

    async def remove(self, name: str, tenant: str = "") -> None:
        """Remove a schedule; jobs it enqueued stay."""
        await self._wire.ask("DELETE", _path(name), query=_of(tenant), repeatable=False)

    async def run(self, name: str, tenant: str = "") -> str:
        """Enqueue one job of it now, beside its ticks; return the job's id."""
        found = await self._wire.ask("POST", f"{_path(name)}/run", query=_of(tenant))
        with self._wire.understanding():
            return msgspec.json.decode(found["id"], type=str)

    async def _view(self, method: str, name: str, tenant: str, action: str = "") -> ScheduleView:
        path = f"{_path(name)}{action}"
        found = await self._wire.ask(method, path, query=_of(tenant), repeatable=True)
        with self._wire.understanding():
            return schedule_view(found)


async def put_schedule(
    wire: Wire,
    name: str,
    call: Partial[Any] | JobType[..., ..., Any],
    arguments: Mapping[str, Any] | None,
    fields: Mapping[str, Any],
) -> ScheduleView:
    """Check a call and its times, then put the schedule as an operator does."""
    times = times_of(fields)
    job = template_job(call, arguments)
    check_template(call if isinstance(call, JobType) else call.type, name, job, times)
    document = _times(fields) | {
        "type": job.type,
        "payload": Raw(job.payload),
        "options": _options(job),
    }
    found = await wire.ask("PUT", _path(name), document, query=_of(job.tenant_id))
    with wire.understanding():
        return schedule_view(found)


def _path(name: str) -> str:
    return f"schedules/{quoted(name)}"


def _of(tenant: str) -> Query:
    return [("tenant", tenant)] if tenant else []


def _options(job: "NewJob") -> dict[str, Any]:
    if job.key is not None or job.delay_ms:
        named = "key" if job.key is not None else "delay"
        raise InvalidSchedule("call", job.type, f"one without the option {named}, over a server")
    return options_document(job, _OPTIONS)


def _times(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _plain(value) for name, value in fields.items() if value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, timedelta):
        return value.total_seconds()
    return value.isoformat() if isinstance(value, datetime) else value
