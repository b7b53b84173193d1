"""What an operator changes in an installation, through its server."""

from typing import Unpack

from penstock.app.declare import LimitFields, Subject, limits_of, subject_of
from penstock.model.controls import BreakerState, LimitKind, LimitState, Pause, PauseScope
from penstock.model.errors import InvalidOption
from penstock.model.job import Job
from penstock.model.states import Status
from penstock.operate.controls import PauseFields, QueueState, limit_kinds, pause_subject
from penstock.remote.wire import (
    Wire,
    breaker_state,
    limit_state,
    queue_state,
    quoted,
    record,
    several,
)
from penstock.store.contract import FollowerState


class RemoteControls:
    """`remote.controls`: changed while everything runs; the next claim of every worker obeys."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def pause(
        self, *, reason: str | None = None, by: str | None = None, **what: Unpack[PauseFields]
    ) -> Pause:
        """Hold jobs back: `pause(queue="mail", reason="deploy")`; what runs already runs on."""
        refuse_by(by)
        scope, name = pause_subject(what)
        if scope is PauseScope.JOB:
            return await self._pause_job(name, reason)
        told = {"scope": scope, "name": name, "reason": reason}
        found = await self._wire.ask("POST", "pauses", told, repeatable=True)
        with self._wire.understanding():
            return record(Pause, found)

    async def resume(self, **what: Unpack[PauseFields]) -> bool:
        """Let them go on, with their own times and order; return whether they were paused."""
        scope, name = pause_subject(what)
        if scope is PauseScope.JOB:
            return await self._resume_job(name)
        found = await self._wire.ask("DELETE", "pauses", query=[("scope", scope), ("name", name)])
        with self._wire.understanding():
            return bytes(found["resumed"]) == b"true"

    async def queues(self, tenant: str | None = None) -> list[QueueState]:
        """Every known queue, also while it is empty; of one tenant, those with its jobs."""
        query = [] if tenant is None else [("tenant", tenant)]
        found = await self._wire.ask("GET", "queues", query=query)
        with self._wire.understanding():
            return [queue_state(each) for each in several(found["queues"])]

    async def pauses(self) -> list[Pause]:
        """Return everything that is paused, the oldest first."""
        found = await self._wire.ask("GET", "pauses")
        with self._wire.understanding():
            return [record(Pause, each) for each in several(found["pauses"])]

    async def set_limit(self, **limit: Unpack[LimitFields]) -> None:
        """Set a limit that outlives a deploy: `set_limit(key="openai", concurrency=5)`."""
        [first, *_] = limits_of(limit, by_operator=True)
        bounds = {name: bound for name, bound in limit.items() if name in set(LimitKind)}
        told = {"scope": first.scope, "name": first.name, **bounds}
        await self._wire.ask("PUT", "limits", told)

    async def remove_limit(self, *, kind: str | None = None, **about: Unpack[Subject]) -> None:
        """Take limits away, all kinds or one: `remove_limit(key="openai", kind="rate")`.

        LimitNotFound if there is none.
        """
        scope, name = subject_of(about)
        limit_kinds(kind)
        query: list[tuple[str, str]] = [("scope", scope), ("name", name)]
        query += [("kind", kind)] if kind else []
        await self._wire.ask("DELETE", "limits", query=query, repeatable=True)

    async def limits(self) -> list[LimitState]:
        """Return all limits, and how much of each is taken."""
        found = await self._wire.ask("GET", "limits")
        with self._wire.understanding():
            return [limit_state(each) for each in several(found["limits"])]

    async def breakers(self) -> list[BreakerState]:
        """Return all circuit breakers."""
        found = await self._wire.ask("GET", "breakers")
        with self._wire.understanding():
            return [breaker_state(each) for each in several(found["breakers"])]

    async def reset_breaker(self, name: str) -> None:
        """Close a breaker by hand; BreakerNotFound if there is none of this name."""
        await self._wire.ask("POST", f"breakers/{quoted(name)}/reset", repeatable=True)

    async def _pause_job(self, job_id: str, reason: str | None) -> Pause:
        path = f"jobs/{quoted(job_id)}/pause"
        found = await self._wire.ask("POST", path, {"reason": reason}, repeatable=True)
        with self._wire.understanding():
            job = record(Job, found)
        return Pause(
            scope=PauseScope.JOB,
            name=job_id,
            reason=reason,
            paused_by=None,
            created_at=job.updated_at,
        )

    async def _resume_job(self, job_id: str) -> bool:
        path = f"jobs/{quoted(job_id)}"
        before = await self._wire.ask("GET", path)
        await self._wire.ask("POST", f"{path}/resume", repeatable=True)
        with self._wire.understanding():
            return record(Job, before).status is Status.PAUSED


class RemoteFollowers:
    """`remote.followers`: who is told what becomes of jobs."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def states(self) -> list[FollowerState]:
        """All followers by name, and how many changes wait for each since when."""
        found = await self._wire.ask("GET", "followers")
        with self._wire.understanding():
            return [record(FollowerState, each) for each in several(found["followers"])]

    async def drop(self, name: str) -> None:
        """Forget a follower and all that waits for it; FollowerNotFound if there is none."""
        await self._wire.ask("DELETE", f"followers/{quoted(name)}", repeatable=True)


def refuse_by(by: str | None) -> None:
    """Who acts is for the server to say."""
    if by is not None:
        raise InvalidOption("by", by, "left out: the server writes down whose token it is")
