"""Followers: who is told what becomes of jobs, and the changes that wait to be told.

A change is recorded in the commit that changes the job, for every follower that asked for its new
status, and stays until that follower confirms it. There is no cursor: a change whose transaction
commits late, under a low number, is read late and not passed over. Whoever changes a job has its
row to himself, so the changes of one job always stand in their order.
"""

from collections.abc import Collection, Sequence
from typing import Protocol

from msgspec import Struct

from penstock.model.job import JobChange
from penstock.model.states import Status

CHANGES_AT_ONCE = 500
MANY_CHANGES = 100_000
"""If more wait for a follower, nobody seems to read for it; they are not counted any further."""
"""Beyond this it makes no difference how far behind a follower is."""


class FollowerState(Struct, frozen=True, kw_only=True):
    """A follower: what it is told of, and how many changes wait for it since when.

    Where counting is dear, it ends at one more than `MANY_CHANGES`.
    """

    name: str
    statuses: tuple[Status, ...]
    waiting: int = 0
    oldest_at: int | None = None


class Changes(Protocol):
    """Changes of jobs, recorded for followers in the commits that made them."""

    async def follow(self, name: str, statuses: Collection[Status]) -> None:
        """Record from now on when a job comes to one of these statuses; again replaces them."""
        ...

    async def unfollow(self, name: str) -> bool:
        """Forget a follower and what waits for it; whether there was one of this name."""
        ...

    async def followers(self) -> list[FollowerState]:
        """All followers, by name."""
        ...

    async def waiting(self, name: str, limit: int = CHANGES_AT_ONCE) -> list[JobChange]:
        """What a follower has not confirmed, the oldest first."""
        ...

    async def confirm(self, name: str, positions: Sequence[str]) -> None:
        """Forget these changes: the follower has been told."""
        ...

    async def erase(self, tenant_id: str) -> int:
        """Forget all changes of a tenant's jobs, whoever waits for them; how many."""
        ...
