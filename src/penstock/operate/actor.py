"""Who acts, within which tenant, and what they have at hand."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from penstock.model.errors import ForeignTenant
from penstock.operate.journal import Journal

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.model.job import Job
    from penstock.operate.controls import Controls
    from penstock.operate.dead import DeadLetters
    from penstock.operate.followers import Followers
    from penstock.operate.jobs import Jobs
    from penstock.operate.schedules import Schedules

MOST_IDS = 1_000
"""An entry of the audit log lists no more; that of more jobs says how many there were."""


class Actor(Struct, frozen=True):
    """A person or a program; `tenant` binds what it sees and changes to one tenant.

    What an actor with a journal does is on record before it is done.
    """

    name: str
    tenant: str | None = None
    journal: Journal | None = None

    @property
    def words(self) -> str:
        """The name in words: beside the word token, a colon would look like a secret."""
        return self.name.replace(":", " ", 1)

    @property
    def signature(self) -> str | None:
        """Whom others see as the one who did something; a program signs nothing by itself."""
        return None if self.journal is None else self.words

    @property
    def is_free(self) -> bool:
        """Whether it is neither bound to a tenant nor on record, so that nothing is looked up."""
        return self.tenant is None and self.journal is None

    def owns(self, tenant_id: str) -> bool:
        """Whether something of a tenant is its business."""
        return self.tenant is None or self.tenant == tenant_id

    def tenant_of(self, named: str | None) -> str | None:
        """The tenant that the actor means; None is all of them. Another's is refused."""
        return own_tenant(self.tenant, named)

    async def hashed(self, content: str | None) -> str | None:
        """What an entry may say of a content, without telling it."""
        if content is None or self.journal is None:
            return None
        return await self.journal.keyed_hash(content)

    def doing(
        self, action: str, subject: str, *, tenant_id: str | None = None, **details: Any
    ) -> AbstractAsyncContextManager[object]:
        """Record an action, then do it; details are ids, counts and names, never contents."""
        if self.journal is None:
            return nullcontext()
        tenant = self.tenant if tenant_id is None else tenant_id
        return self.journal.doing(
            self.name, action, subject, tenant_id=tenant or "", details=details
        )

    def on_jobs(
        self, action: str, jobs: "Sequence[Job]", **details: Any
    ) -> AbstractAsyncContextManager[object]:
        """Record an action on one job by its id and tenant, or on several as `jobs`."""
        tenant = shared(job.tenant_id for job in jobs)
        if len(jobs) == 1:
            [job] = jobs
            told = {"type": job.type, "status": job.status, **details}
            return self.doing(f"job.{action}", f"job:{job.id}", tenant_id=tenant, **told)
        told = listed([job.id for job in jobs]) | details
        return self.doing(f"jobs.{action}", "jobs", tenant_id=tenant, **told)


PROGRAM = Actor("the caller")
"""Code that uses an application: it sees all tenants, and nothing it does is journalled."""


class Operator:
    """An application in the hands of somebody whose actions are on record.

    `Operator(app, "user:ann").controls.pause(queue="mail")`; a `tenant` binds them to it.
    """

    def __init__(
        self,
        app: "Penstock",
        name: str,
        tenant: str | None = None,
        journal: Journal | None = None,
    ) -> None:
        self.app = app
        self.actor = Actor(name, tenant, journal or Journal(app.store))

    @cached_property
    def jobs(self) -> "Jobs":
        """Jobs, one or many at a time."""
        from penstock.operate.jobs import Jobs

        return Jobs(self.app, self.actor)

    @cached_property
    def dead(self) -> "DeadLetters":
        """Dead letters."""
        from penstock.operate.dead import DeadLetters

        return DeadLetters(self.app, self.actor)

    @cached_property
    def schedules(self) -> "Schedules":
        """Schedules."""
        from penstock.operate.schedules import Schedules

        return Schedules(self.app, self.actor)

    @cached_property
    def controls(self) -> "Controls":
        """Pauses, limits and breakers."""
        from penstock.operate.controls import Controls

        return Controls(self.app, self.actor)

    @cached_property
    def followers(self) -> "Followers":
        """Followers of jobs."""
        from penstock.operate.followers import Followers

        return Followers(self.app, self.actor)


def own_tenant(bound: str | None, named: str | None) -> str | None:
    """The tenant that is meant by a caller bound to one, or to none; another's is refused."""
    if bound is not None and named not in (None, bound):
        raise ForeignTenant(bound, named or "")
    return named if bound is None else bound


def listed(ids: Sequence[str]) -> dict[str, Any]:
    """How an entry tells of many: by their ids and their number."""
    return {"count": len(ids), "ids": list(ids[:MOST_IDS])}


def shared(tenants: Iterable[str]) -> str | None:
    """The one tenant that all an action touches belongs to, who may then read of it."""
    found = set(tenants)
    return found.pop() if len(found) == 1 else None
