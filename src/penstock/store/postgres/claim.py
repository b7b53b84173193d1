"""Leasing jobs in one round trip, while nothing is paused, limited or guarded."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import structlog
from msgspec.json import Decoder, decode, encode

from penstock.model.job import Lease
from penstock.store.contract import Claim, Claimed
from penstock.store.postgres.round_trip import Alone, Question, RoundTrip, Row
from penstock.store.postgres.transaction import PostgresTransaction
from penstock.store.relational.claim import STAGE_FIRST, Candidate, Claims, Seq, Turns, stage
from penstock.store.relational.expire import expire
from penstock.store.relational.gates import Lane
from penstock.store.relational.transaction import Transaction

SLOW_US = 2_000
HUNGRY_SHARE = 20
BUSY_SHARE = 200
MAX_SECONDS = 5.0

_Lane = tuple[str, str, str, str, int]


class Survey:
    """The lanes of the last slow walk, and where in each to go on.

    A claim that looks only there is `partial`.
    With a clock that a test moves, nothing seen before is `trusted`: its time does not pass.
    """

    def __init__(self, *, trusted: bool) -> None:
        self._trusted = trusted
        self._lanes: dict[_Lane, int] | None = None
        self._asked: tuple[Any, ...] | None = None
        self._walk_seconds = 0.0
        self._walked_at = 0.0
        self._due_at: float | None = None
        self._due_in_ms: int | None = None
        self._hungry = False
        self.partial = False

    @property
    def ask_again_in_ms(self) -> int | None:
        """When the next waiting job falls due, or a walk may find what was not seen."""
        if not self._trusted:  # the last walk was this very claim's, and no time has passed since
            return self._due_in_ms
        times = [] if self._due_at is None else [self._due_at]
        if self._lanes is not None and self._hungry:
            times.append(self._walk_at)
        return max(0, round((min(times) - time.monotonic()) * 1000)) if times else None

    def forget(self) -> None:
        """Walk again next time."""
        self._lanes = None

    def known(self, claim: Claim) -> str | None:
        """The lanes to go on in; none when it is time to walk."""
        self.partial = False
        if self._lanes is None or self._asked != _question(claim):
            return None
        if time.monotonic() >= self._walk_at:
            return None
        self.partial = True
        names = ("queue", "tenant_id", "type", "limit_key", "priority", "from_rank")
        rows = [dict(zip(names, (*lane, rank), strict=True)) for lane, rank in self._lanes.items()]
        return encode(rows).decode()

    @property
    def _walk_at(self) -> float:
        share = HUNGRY_SHARE if self._hungry else BUSY_SHARE
        return self._walked_at + min(share * self._walk_seconds, MAX_SECONDS)

    def walked(self, claim: Claim, lanes: str | None, took_us: int, due_in_ms: int | None) -> None:
        """Take what a walk found, and how long it was."""
        now = time.monotonic()
        self._walked_at, self._walk_seconds = now, took_us / 1e6
        self._due_in_ms = due_in_ms
        self._due_at = None if due_in_ms is None else now + due_in_ms / 1000
        self._asked = _question(claim)
        if took_us < SLOW_US or lanes is None or not self._trusted:
            self._lanes = None
        else:
            found = decode(lanes)
            self._lanes = {
                (f["queue"], f["tenant_id"], f["type"], f["limit_key"], f["priority"]): 0
                for f in found
            }

    def claimed(self, claim: Claim, rows: Sequence[tuple[Any, ...]]) -> None:
        """Go on behind what was leased."""
        self._hungry = len(rows) < claim.limit
        if self._lanes is None:
            return
        for row in rows:
            rank, type_, queue, priority = row[6], row[9], row[10], row[11]
            lane = (queue, row[22], type_, row[31] or "", priority)
            if rank > self._lanes.get(lane, 0):
                self._lanes[lane] = rank


def _question(claim: Claim) -> tuple[Any, ...]:
    return claim.types, claim.queues, claim.max_priority


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
            "at_most": encode(dict(claim.at_most)).decode() if claim.at_most else None,
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


class ClaimRoundTrip(RoundTrip[Claimed]):
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
