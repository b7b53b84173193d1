"""Leasing jobs in one round trip, while nothing is paused, limited or guarded."""

import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import structlog
from msgspec.json import Decoder, encode

from penstock.model.job import Lease
from penstock.store.contract import Claim, Claimed
from penstock.store.postgres.survey import Survey
from penstock.store.postgres.transaction import PostgresTransaction
from penstock.store.postgres.trip import Alone, Question, Row, Trip
from penstock.store.relational.claim import STAGE_FIRST, Candidate, Claims, Seq, Turns, stage
from penstock.store.relational.expire import expire
from penstock.store.relational.gates import Lane
from penstock.store.relational.transaction import Transaction

log = structlog.get_logger("penstock.store")

STAGE = 1_000
WARN_US = 100_000
WARN_SECONDS = 60.0
BEFORE_ALL = -(2**63)

_candidates: Decoder[list[tuple[int, int, str]]] = Decoder(list[tuple[int, int, str]])


class _About(NamedTuple):
    """What a claim says of itself; if it walked, over which lanes and for how long."""

    needs: str | None
    due: int | None
    staged: int | None
    walked_to: str | None
    lanes: str | None
    walk_us: int | None


class PostgresClaims(Claims):
    """Grants leases; claims that meet a gate are weighed one at a time, as in every dialect."""

    def __init__(self, turns: Turns | None = None, *, trusted: bool) -> None:
        super().__init__(turns)
        self._quietly_to: str | None = None
        self._survey = Survey(trusted=trusted)
        self._warned_at = -WARN_SECONDS
        self._gated = False

    def claim(self, tx: Transaction, claim: Claim) -> Claimed:
        """Stage and expire what fell due, then lease up to the limit."""
        about, leases = self._read(claim, tx.rows(*self._quietly(tx, claim, tidy=True)))
        if about.needs == "tidying":
            expire(tx, STAGE_FIRST)
            stage(tx, max(STAGE_FIRST, claim.limit))
            about, leases = self._read(claim, tx.rows(*self._quietly(tx, claim, tidy=False)))
        self._gated = about.needs == "gates"
        if self._gated:
            self._survey.forget()
            tx.lock("gates")
            return super().claim(tx, claim)
        return self._claimed(leases)

    def ask(self, alone: Alone, claim: Claim) -> Question | None:
        """Lease up to the limit in one statement, unless a gate is in the way."""
        return None if self._gated else self._quietly(alone, claim, tidy=True)

    def answer(self, claim: Claim, rows: list[Row]) -> Claimed | None:
        """Read what that leased; None if something must be tidied or weighed first."""
        about, leases = self._read(claim, rows)
        return self._claimed(leases) if about.needs is None else None

    def candidates(
        self, tx: Transaction, lane: Lane, claim: Claim, chunk: int
    ) -> Iterator[Candidate]:
        """A lane's jobs by rank, each once, fetched in chunks as they are asked for."""
        rank = seq = BEFORE_ALL
        while True:
            row = (*lane, claim.max_priority, rank, seq, chunk)
            found = _candidates.decode(tx.value("lane", row))
            for rank, seq, job_id in found:
                yield rank, seq, job_id
            if len(found) < chunk:
                return

    def lease(
        self, tx: Transaction, claim: Claim, seqs: list[Seq], lease_ms: int, start: bool
    ) -> Mapping[Seq, Lease]:
        """Lease those of the jobs that are still queued, and release the keys that end with it."""
        row = {
            "ids": seqs,
            "owner": claim.owner,
            "start": len(seqs) if start else 0,
            "lease_ms": lease_ms,
            "now": tx.now,
            "monotonic": tx.monotonic,
        }
        leases = [Lease(*fields[1:]) for fields in tx.rows("claim_chosen", row)]
        return {lease.id: lease for lease in leases}

    def _claimed(self, leases: list[Lease]) -> Claimed:
        if leases:
            self._turns.last_tenant = leases[-1].tenant_id
        again = self._survey.ask_again_in_ms
        return Claimed(leases, again, whole=not self._survey.partial)

    def _quietly(self, tx: Transaction | Alone, claim: Claim, *, tidy: bool) -> Question:
        row = {
            "owner": claim.owner,
            "types": list(claim.types),
            "queues": None if claim.queues is None else list(claim.queues),
            "max_priority": claim.max_priority,
            "limit": claim.limit,
            "start": claim.start,
            "lease_ms": claim.lease_ms,
            "type_lease_ms": encode(dict(claim.type_lease_ms)).decode(),
            "last_tenant": self._turns.last_tenant,
            "walked_to": self._quietly_to,
            "known": self._survey.known(claim),
            "tidy": tidy,
            "stage": max(STAGE, 2 * claim.limit),
            "now": tx.now,
            "monotonic": tx.monotonic,
        }
        return "claim_quietly", row

    def _read(self, claim: Claim, rows: list[Row]) -> tuple[_About, list[Lease]]:
        about = _About(*rows[0][:6])
        if rows[0][7] is None:
            rows = []
        if about.needs is None:
            if not self._survey.partial:
                self._quietly_to = about.walked_to
                self._survey.walked(claim, about.lanes, about.walk_us or 0, about.due)
                self._warn(about.walk_us or 0)
            self._survey.claimed(claim, rows)
        return about, [Lease(*fields[7:]) for fields in rows]

    def _warn(self, walk_us: int) -> None:
        if walk_us > WARN_US and time.monotonic() - self._warned_at >= WARN_SECONDS:
            self._warned_at = time.monotonic()
            advice = "`penstock doctor` says what keeps dead rows from being removed"
            log.warning("claims_slowed", walk_ms=walk_us // 1000, advice=advice)


class ClaimTrip(Trip[Claimed]):
    """A claim."""

    __slots__ = ("_claim", "_claims")

    def __init__(self, claims: PostgresClaims, claim: Claim) -> None:
        self._claims = claims
        self._claim = claim

    def ask(self, alone: Alone) -> Question | None:
        """Lease jobs that nothing holds back."""
        return self._claims.ask(alone, self._claim)

    def answer(self, alone: Alone, rows: list[Row]) -> Claimed | None:
        """Read the leases."""
        return self._claims.answer(self._claim, rows)

    def __call__(self, tx: PostgresTransaction) -> Claimed:
        """Lease any jobs."""
        return self._claims.claim(tx, self._claim)
