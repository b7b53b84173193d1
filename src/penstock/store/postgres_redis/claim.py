"""Leasing what the windows name; PostgreSQL alone decides whether it is still to be had."""

from msgspec.json import encode
from msgspec.structs import replace

from penstock.model.job import Lease
from penstock.store.contract import Claim, Claimed
from penstock.store.postgres.claim import PostgresClaims, leased
from penstock.store.postgres_redis.window import Taken, Window
from penstock.store.postgres_redis.wire import Away
from penstock.store.relational.transaction import Transaction

ROUNDS = 3


class DispatchedClaims(PostgresClaims):
    """Grants leases on ids out of the windows; whatever is out of the ordinary is PostgreSQL's."""

    def __init__(self, window: Window, *, trusted: bool) -> None:
        super().__init__(trusted=trusted)
        self._window = window

    def claim(self, tx: Transaction, claim: Claim) -> Claimed:
        """Lease up to the limit, from the windows as long as they have any."""
        leases: list[Lease] = []
        for _ in range(ROUNDS):
            asked = _rest(claim, leases)
            taken = self._taken(tx, asked)
            if taken is None:
                break
            granted = self._named(tx, asked, taken)
            if granted is None:
                break
            leases += granted
            if len(leases) == claim.limit or len(granted) == len(taken.ids) < asked.limit:
                return Claimed(leases, None if taken.due is None else max(0, taken.due - tx.now))
        own = super().claim(tx, _rest(claim, leases))
        return replace(own, leases=leases + own.leases)

    def _taken(self, tx: Transaction, claim: Claim) -> Taken | None:
        if not self._window.usable:
            return None
        try:
            return self._window.take(claim, self._last_tenant, tx)
        except Away:
            return None

    def _named(self, tx: Transaction, claim: Claim, taken: Taken) -> list[Lease] | None:
        """Leases on those of the ids that are still queued; none where there are gates."""
        if not taken.ids:
            return []
        row = {
            "owner": claim.owner,
            "ids": taken.ids,
            "start": claim.start,
            "lease_ms": claim.lease_ms,
            "type_lease_ms": encode(dict(claim.type_lease_ms)).decode(),
            "now": tx.now,
            "monotonic": tx.monotonic,
        }
        rows = tx.rows("claim_named", row)
        if rows and rows[0][0] == "gates":
            self._window.doubt()
            return None
        self._last_tenant = taken.last_tenant
        return [leased(fields[2:]) for fields in rows]


def _rest(claim: Claim, leases: list[Lease]) -> Claim:
    if not leases:
        return claim
    had = len(leases)
    return replace(claim, limit=claim.limit - had, start=max(0, claim.start - had))
