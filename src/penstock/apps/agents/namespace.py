"""`app.agents`: memories, sessions, webhooks and the rest, for programs."""

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack

from msgspec import Struct

from penstock.app.options import CallFields
from penstock.apps.agents.worker import prepared

if TYPE_CHECKING:
    from penstock.app.handle import JobHandle
    from penstock.app.job_type import Prepared
    from penstock.app.penstock import Penstock
    from penstock.app.schedules import ScheduleView
    from penstock.apps.agents.learning.learning import Learning
    from penstock.apps.agents.maintenance.deletion import Deletions
    from penstock.apps.agents.maintenance.exports import Exports
    from penstock.apps.agents.maintenance.quotas import Quotas
    from penstock.apps.agents.memory.memories import Memories
    from penstock.apps.agents.sessions.sessions import Sessions
    from penstock.apps.agents.vectors.store import VectorStore
    from penstock.apps.agents.webhooks.webhooks import Webhooks


class Agents:
    """Each subject of the agent workers under its own name, loaded when it is first used."""

    def __init__(self, app: "Penstock") -> None:
        self._app = app

    def new(
        self, name: str, data: Struct | Mapping[str, Any], **options: Unpack[CallFields]
    ) -> "Prepared[Any]":
        """Check a job without enqueueing it, for `tx.enqueue` and `ctx.enqueue`."""
        return prepared(self._app.find_type(name), data, options)

    async def enqueue(
        self, name: str, data: Struct | Mapping[str, Any], **options: Unpack[CallFields]
    ) -> "JobHandle[Any]":
        """Enqueue a job: `app.agents.enqueue("session-cleanup", {"maxAge": 1}, tenant="north")`."""
        return await self._app.enqueue(self.new(name, data, **options))

    async def reschedule(self, name: str, cron: str, *, zone: str = "UTC") -> "ScheduleView":
        """Give a default schedule other times, which stand through restarts and deploys."""
        from penstock.apps.agents.schedules import reschedule

        return await reschedule(self._app, name, cron, zone=zone)

    @cached_property
    def memories(self) -> "Memories":
        """What agents remember."""
        from penstock.apps.agents.memory.memories import Memories

        return Memories(self._app)

    @cached_property
    def vectors(self) -> "VectorStore":
        """Vectors of every namespace; a search sees what was committed before it."""
        from penstock.apps.agents.vectors.provider import make_store

        return make_store(self._app)

    @cached_property
    def sessions(self) -> "Sessions":
        """Sessions of agents: opened, continued, closed, archived and restored."""
        from penstock.apps.agents.sessions.sessions import Sessions

        return Sessions(self._app)

    @cached_property
    def learning(self) -> "Learning":
        """What was learned from sessions: trajectories, patterns and predictions."""
        from penstock.apps.agents.learning.learning import Learning

        return Learning(self._app)

    @cached_property
    def webhooks(self) -> "Webhooks":
        """Endpoints, what they are told of, and what became of it."""
        from penstock.apps.agents.webhooks.webhooks import Webhooks

        return Webhooks(self._app)

    @cached_property
    def quotas(self) -> "Quotas":
        """What tenants may use, and have used."""
        from penstock.apps.agents.maintenance.quotas import Quotas

        return Quotas(self._app)

    @cached_property
    def exports(self) -> "Exports":
        """Files with tenants' data, and with the audit log."""
        from penstock.apps.agents.maintenance.exports import Exports

        return Exports(self._app)

    @cached_property
    def deletions(self) -> "Deletions":
        """Tenants and people that were erased, or are to be, and the certificates of it."""
        from penstock.apps.agents.maintenance.deletion import Deletions

        return Deletions(self._app)

    async def close(self) -> None:
        """Close what holds something open."""
        if "vectors" in self.__dict__:
            await self.vectors.close()
