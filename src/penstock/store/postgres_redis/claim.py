"""Leasing what the windows name; PostgreSQL alone decides whether it is still to be had."""

from msgspec.json import encode
from msgspec.structs import replace

from penstock.model.job import Lease
from penstock.store.contract import Claim, Claimed
from penstock.store.postgres.claim import PostgresClaims, leased
from penstock.store.postgres_redis.window import Answer, Taken, Window, taken
from penstock.store.postgres_redis.wire import Away
from penstock.store.relational.transaction import Transaction

ROUNDS = 3
Seen = list[Answer]
"""What was looked up before the transaction: at most one answer, and used at most once."""


class DispatchedClaims(PostgresClaims):
    """Grants leases on ids out of the windows; whatever is out of the ordinary is PostgreSQL's."""

    def __init__(self, window: Window, *, trusted: bool) -> None:
        super().__init__(trusted=trusted)
        self._window = window
        self._hungry = False

    @property
    def looks_first(self) -> bool:
        """Whether the next claim should look into the windows before it takes a transaction."""
        return self._hungry and self._window.usable

    def look(self, claim: Claim, now: int) -> Claimed | Seen:
        """The answer to a claim for which there is nothing, or else what was seen for it."""
        try:
            seen = self._window.look(claim, self._turns.last_tenant, now)
        except Away:
            return []
        found = taken(seen)
        if found is None or found.ids:
            return [seen]
        return Claimed([], None if found.due is None else max(0, found.due - now))

    def claim(self, tx: Transaction, claim: Claim, seen: Seen | None = None) -> Claimed:
        """Lease up to the limit, from the windows as long as they have any."""
        claimed = self._claim(tx, claim, seen or [])
        self._hungry = not claimed.leases
        return claimed

    def _claim(self, tx: Transaction, claim: Claim, seen: Seen) -> Claimed:
        leases: list[Lease] = []
        for _ in range(ROUNDS if seen or self._window.for_busy else 0):
            asked = _rest(claim, leases)
            found = self._taken(tx, asked, seen)
            if found is None:
                break
            granted = self._named(tx, asked, found)
            if granted is None:
                break
            leases += granted
            if found.ids and not granted:
                self._window.distrust()
                break
            if len(leases) == claim.limit or len(granted) == len(found.ids) < asked.limit:
                return Claimed(leases, None if found.due is None else max(0, found.due - tx.now))
        own = super().claim(tx, _rest(claim, leases))
        return replace(own, leases=leases + own.leases)

    def _taken(self, tx: Transaction, claim: Claim, seen: Seen) -> Taken | None:
        if not self._window.usable:
            return None
        try:
            looked = (
                seen.pop() if seen else self._window.look(claim, self._turns.last_tenant, tx.now)
            )
            return self._window.take(claim, self._turns.last_tenant, tx, looked)
        except Away:
            return None

    def _named(self, tx: Transaction, claim: Claim, found: Taken) -> list[Lease] | None:
        """Leases on those of the ids that are still queued; none where there are gates."""
        if not found.ids:
            return []
        row = {
            "owner": claim.owner,
            "ids": found.ids,
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
        self._turns.last_tenant = found.last_tenant
        return [leased(fields[2:]) for fields in rows]


def _rest(claim: Claim, leases: list[Lease]) -> Claim:
    if not leases:
        return claim
    had = len(leases)
    return replace(claim, limit=claim.limit - had, start=max(0, claim.start - had))
