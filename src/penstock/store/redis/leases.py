"""Keeping leases alive, and hearing who asked running jobs to stop."""

from collections.abc import Collection, Sequence

from penstock.store.contract import Held, Renewal
from penstock.store.redis.courier import Courier


class RedisLeases:
    """`Leases` on Redis."""

    def __init__(self, courier: Courier) -> None:
        self._courier = courier

    def renew(
        self,
        owner: str,
        held: Sequence[Held],
        *,
        unheard_ms: int | None = None,
        given_up: Collection[str] = (),
    ) -> Renewal:
        """Extend what the owner still holds, and what it was granted without knowing it yet."""
        leases = [part for lease in held for part in (lease.id, lease.fence, lease.lease_ms)]
        unheard = "" if unheard_ms is None else unheard_ms
        lost, cancelled = self._courier.call_now(
            "renew", owner, unheard, len(given_up), *given_up, *leases
        )
        return Renewal(_texts(lost), _texts(cancelled))

    def held(self, owner: str) -> list[str]:
        """The ids of all jobs the owner has leased."""
        key = f"{self._courier.prefix}leases:{owner}"
        return _texts(self._courier.ask_now("ZRANGE", key, 0, -1))

    def cancel_requests(self, owner: str) -> list[str]:
        """The owner's running jobs that somebody asked to stop."""
        key = f"{self._courier.prefix}stops:{owner}"
        return _texts(self._courier.ask_now("SMEMBERS", key))


def _texts(ids: Collection[bytes]) -> list[str]:
    return [job_id.decode() for job_id in ids]
