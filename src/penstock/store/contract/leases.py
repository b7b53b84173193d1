"""Keeping leases alive; synchronous, because a thread of its own calls it."""

from collections.abc import Collection, Sequence
from typing import Protocol

from msgspec import Struct


class Held(Struct, frozen=True):
    """A lease a worker still works under, and how long it wants it from now."""

    id: str
    fence: int
    lease_ms: int


class Renewal(Struct, frozen=True):
    """Which leases were lost, and which running jobs an operator asked to stop."""

    lost: list[str]
    cancelled: list[str]


class Leases(Protocol):
    """Renewal and cancellation requests, safe to call from any thread."""

    def renew(
        self,
        owner: str,
        held: Sequence[Held],
        *,
        unheard_ms: int | None = None,
        given_up: Collection[str] = (),
    ) -> Renewal:
        """Extend what the owner still holds.

        With `unheard_ms`, also every other lease the owner has, but for those it has given up: a
        claim may have granted it while its event loop was blocked and could not hear of it.
        """
        ...

    def held(self, owner: str) -> list[str]:
        """The ids of all jobs the owner has leased, whether it knows of them or not."""
        ...

    def cancel_requests(self, owner: str) -> list[str]:
        """The owner's running jobs that somebody asked to stop."""
        ...
