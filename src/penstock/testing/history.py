"""A record of what happened in a store, and when."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, cast

from penstock.model.clock import iso, milliseconds, utc
from penstock.model.job import Enqueued, NewJob
from penstock.model.outcome import (
    Buried,
    Cancelled,
    Completed,
    Crashed,
    Failed,
    HandedBack,
    Settlement,
    Snoozed,
)
from penstock.model.schedule import Schedule
from penstock.store.contract import Rescued, Store

ENDED_AS: Mapping[type[Settlement], str] = {
    Completed: "completed",
    Failed: "failed",
    Snoozed: "snoozed",
    Cancelled: "cancelled",
    Buried: "dead",
    Crashed: "crashed",
    HandedBack: "handed back",
}


class Happening(NamedTuple):
    """What happened to one job, and when by the store's clock."""

    at: datetime
    what: str
    type: str
    job_id: str

    def __str__(self) -> str:
        return f"{iso(milliseconds(self.at))} {self.what} {self.type} {self.job_id}"


class History(list[Happening]):
    """Everything that happened, oldest first."""

    def times(self, what: str, type_: str) -> list[datetime]:
        """When something happened to jobs of a type."""
        return [one.at for one in self if (one.what, one.type) == (what, type_)]


def recorded(store: Store, history: History) -> Store:
    """The same store; whatever happens through it is written into the history."""
    return cast(Store, _Recorded(store, history))


class _Recorder:
    """Something that passes everything on."""

    def __init__(self, inner: Any, note: "_Note") -> None:
        self._inner = inner
        self._note = note

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class _Note:
    """Writes lines of a history at the time of the store's clock."""

    def __init__(self, store: Store, history: History) -> None:
        self._clock = store.clock
        self._history = history
        self.types: dict[str, str] = {}

    def __call__(self, what: str, job_id: str, type_: str | None = None) -> None:
        if type_ is not None:
            self.types[job_id] = type_
        at = utc(self._clock.now())
        self._history.append(Happening(at, what, self.types.get(job_id, "?"), job_id))


class _Recorded(_Recorder):
    def __init__(self, store: Store, history: History) -> None:
        note = _Note(store, history)
        super().__init__(store, note)
        self.jobs = _Jobs(store.jobs, note)
        self.schedules = _Schedules(store.schedules, note)
        self.upkeep = _Upkeep(store.upkeep, note)


class _Jobs(_Recorder):
    async def enqueue(
        self, jobs: Sequence[NewJob], *, connection: object | None = None
    ) -> list[Enqueued]:
        answers: list[Enqueued] = await self._inner.enqueue(jobs, connection=connection)
        for job, answer in zip(jobs, answers, strict=True):
            if answer.created:
                self._note("enqueued", job.id, job.type)
        return answers

    async def settle(self, owner: str, settlements: Sequence[Settlement]) -> list[str]:
        stale: list[str] = await self._inner.settle(owner, settlements)
        for one in settlements:
            if one.id not in stale:
                self._note(ENDED_AS[type(one)], one.id, one.type)
        return stale

    async def cancel(self, ids: Sequence[str], reason: str) -> dict[str, str]:
        found: dict[str, str] = await self._inner.cancel(ids, reason)
        for job_id, status in found.items():
            self._note("cancelled" if status == "cancelled" else "asked to stop", job_id)
        return found

    async def requeue(
        self, ids: Sequence[str], *, spread_ms: float = 0, delay_ms: float = 0
    ) -> list[str]:
        requeued: list[str] = await self._inner.requeue(ids, spread_ms=spread_ms, delay_ms=delay_ms)
        for job_id in requeued:
            self._note("requeued", job_id)
        return requeued


class _Schedules(_Recorder):
    async def fire(
        self,
        schedule: Schedule,
        jobs: Sequence[NewJob],
        next_run_at: int | None,
        *,
        last_run_at: int | None = None,
    ) -> bool:
        fired: bool = await self._inner.fire(schedule, jobs, next_run_at, last_run_at=last_run_at)
        for job in jobs if fired else ():
            self._note("fired", job.id, job.type)
        return fired


class _Upkeep(_Recorder):
    async def rescue(
        self, *, owner: str | None = None, max_rescues: int = 3, limit: int = 1000
    ) -> list[Rescued]:
        taken: list[Rescued] = await self._inner.rescue(
            owner=owner, max_rescues=max_rescues, limit=limit
        )
        for one in taken:
            self._note("rescued" if one.fate == "untouched" else one.fate, one.id, one.type)
        return taken

    async def expire(self, limit: int = 1000) -> list[str]:
        expired: list[str] = await self._inner.expire(limit)
        for job_id in expired:
            self._note("expired", job_id)
        return expired
