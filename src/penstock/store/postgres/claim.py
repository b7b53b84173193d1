"""Leasing jobs in one round trip, while nothing is paused, limited or guarded."""

from msgspec import Struct
from msgspec.json import Decoder, encode

from penstock.model.job import Lease
from penstock.store.contract import Claim, Claimed
from penstock.store.relational.claim import STAGE_FIRST, Claims, stage
from penstock.store.relational.expire import expire
from penstock.store.relational.transaction import Transaction


class _Answer(Struct):
    leases: list[Lease] = []
    due: int | None = None
    walked_to: tuple[str, str, str, str, int] | None = None
    needs: str | None = None


_answer = Decoder(_Answer)


class PostgresClaims(Claims):
    """Grants leases; claims that meet a gate are weighed one at a time, as in every dialect."""

    def __init__(self) -> None:
        super().__init__()
        self._quietly_to: tuple[str, str, str, str, int] | None = None

    def claim(self, tx: Transaction, claim: Claim) -> Claimed:
        """Stage and expire what fell due, then lease up to the limit."""
        answer = self._quietly(tx, claim, tidy=True)
        if answer.needs == "tidying":
            expire(tx, STAGE_FIRST)
            stage(tx, STAGE_FIRST)
            answer = self._quietly(tx, claim, tidy=False)
        if answer.needs == "gates":
            tx.lock("gates")
            return super().claim(tx, claim)
        self._quietly_to = answer.walked_to
        if answer.leases:
            self._last_tenant = answer.leases[-1].tenant_id
        due = None if answer.due is None else max(0, answer.due)
        return Claimed(answer.leases, due)

    def _quietly(self, tx: Transaction, claim: Claim, *, tidy: bool) -> _Answer:
        row = {
            "owner": claim.owner,
            "types": list(claim.types),
            "queues": None if claim.queues is None else list(claim.queues),
            "max_priority": claim.max_priority,
            "limit": claim.limit,
            "start": claim.start,
            "lease_ms": claim.lease_ms,
            "type_lease_ms": encode(dict(claim.type_lease_ms)).decode(),
            "last_tenant": self._last_tenant,
            "walked_to": self._quietly_to and encode(self._quietly_to).decode(),
            "tidy": tidy,
            "now": tx.now,
            "monotonic": tx.monotonic,
        }
        return _answer.decode(tx.value("claim_quietly", row))
