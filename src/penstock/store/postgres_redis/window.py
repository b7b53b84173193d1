"""The first ready jobs of every lane, kept in Redis: only ids, and any of them may be stale."""

import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct, field
from msgspec.json import encode

from penstock.model.job import Enqueued, NewJob
from penstock.model.rank import rank
from penstock.store.contract import Claim
from penstock.store.postgres_redis.wire import Away, Wire
from penstock.store.relational.enqueue import is_special
from penstock.store.relational.transaction import Transaction

REFILL_MS = 2_000
MAX_LANES = 256
MAX_JOBS = 20_000


class Pace(Struct, frozen=True, kw_only=True):
    """How many jobs of a lane a window holds, when it is filled, and who looks into it.

    After `fresh_ms` it is filled again in any case: a job may have become ready that nobody told.
    A busy worker finds its next jobs in PostgreSQL in the transaction that settles the last ones;
    with `busy` it looks here first.
    """

    jobs: int
    spacing_ms: int = 20
    fresh_ms: int = 1_000
    busy: bool = False


class Taken(Struct, frozen=True):
    """Ids out of the windows, in the order they should start."""

    ids: list[str]
    last_tenant: str
    due: int | None


Answer = list[bytes]
"""What `lua/take.lua` says."""


def taken(answer: Answer) -> Taken | None:
    """The ids in an answer, if it has any to give."""
    if answer[0] != b"taken":
        return None
    _, tenant, due, *members = answer
    ids = [member[1:].decode() for member in members]
    return Taken(ids, tenant.decode(), int(due) if due else None)


class Told(Struct):
    """What a process has to tell about jobs that became ready."""

    most: int
    ready: dict[str, list[str]] = field(default_factory=dict)
    doubt: bool = False
    distrust: bool = False
    due: int | None = None
    expires: int | None = None


class Window:
    """Remembers what Redis should be told, and takes from it what can be claimed."""

    def __init__(self, wire: Wire, pace: Pace) -> None:
        self._wire = wire
        self._pace = pace
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._told: Told | None = None

    @property
    def off(self) -> bool:
        """Whether Redis is only there to wake workers up."""
        return self._pace.jobs == 0

    @property
    def usable(self) -> bool:
        """Whether claims should look here."""
        return self._pace.jobs > 0 and not self._wire.away

    @property
    def for_busy(self) -> bool:
        """Whether a worker that has work should look here, too."""
        return self._pace.busy

    def enqueued(self, jobs: Sequence[NewJob], answers: Sequence[Enqueued], now: int) -> None:
        """Jobs were committed; those that are ready can be taken."""
        if not self._pace.jobs:
            return
        with self._lock:
            told = self._told = self._told or Told(self._pace.jobs)
            for job, answer in zip(jobs, answers, strict=True):
                if not answer.created:
                    continue
                if is_special(job):
                    told.doubt = True
                    continue
                _tell(told, job, now)

    def doubt(self) -> None:
        """Something may have become ready, and nobody can name it."""
        if self._pace.jobs:
            with self._lock:
                self._told = self._told or Told(self._pace.jobs)
                self._told.doubt = True

    def distrust(self) -> None:
        """Too much of it is stale: fill it from nothing."""
        with self._lock:
            self._told = self._told or Told(self._pace.jobs)
            self._told.distrust = True

    def due(self, at: int) -> None:
        """A job falls due then."""
        if self._pace.jobs:
            with self._lock:
                told = self._told = self._told or Told(self._pace.jobs)
                told.due = _sooner(told.due, at)

    def tell(self, teller: str) -> None:
        """Pass on what became ready, and wake everybody."""
        self._send("put", lambda owed: (owed, teller))

    def look(self, claim: Claim, last_tenant: str, now: int) -> Answer:
        """What there is for a claim; without asking PostgreSQL, which may have to do something."""
        return self._ask(claim, last_tenant, now, REFILL_MS)

    def take(self, claim: Claim, last_tenant: str, tx: Transaction, seen: Answer) -> Taken | None:
        """Ids to claim, filling the windows first if need be; none: PostgreSQL must choose."""
        answer = seen
        if answer[0] == b"refill":
            self._fill(tx, int(answer[1]))
            answer = self._ask(claim, last_tenant, tx.now, 0)
        if answer[0] == b"own way" and answer[1]:
            self.doubt()  # what PostgreSQL stages now is more than this claim takes
        return taken(answer)

    def _ask(self, claim: Claim, last_tenant: str, now: int, refill_ms: int) -> Answer:
        asked = {
            "types": list(claim.types),
            "queues": None if claim.queues is None else list(claim.queues),
            "max_priority": claim.max_priority,
            "limit": claim.limit,
            "last_tenant": last_tenant,
            "now": now,
            "fresh_ms": self._pace.fresh_ms,
            "refill_ms": refill_ms,
        }
        answer: Answer = self._send("take", lambda owed: (encode(asked), owed))
        return answer

    def _fill(self, tx: Transaction, doubts: int) -> None:
        lanes: dict[str, list[str]] = {}
        horizons: dict[str, int] = {}
        found = tx.rows("ready", {"lanes": MAX_LANES + 1, "jobs": self._pace.jobs})
        each = max(1, min(self._pace.jobs, MAX_JOBS // max(1, len(found))))
        for queue, tenant_id, type_, limit_key, priority, ranks, ids in found:
            lane = spelled(queue, tenant_id, type_, limit_key)
            entries = lanes.setdefault(lane, [])
            mark = chr(47 + priority)
            for rank_, id_ in zip(ranks[:each], ids[:each], strict=True):
                entries += (str(rank_), mark + id_)
            if len(ranks) >= each:
                horizons[lane] = min(horizons.get(lane, ranks[each - 1]), ranks[each - 1])
        gated, due, expires = tx.rows("ready_when")[0]
        filled = {
            "lanes": lanes,
            "horizons": {lane: str(horizon) for lane, horizon in horizons.items()},
            "doubts": doubts,
            "gated": 1 if gated else None,
            "crowded": 1 if len(found) > MAX_LANES else None,
            "due": None if due is None else str(due),
            "expires": None if expires is None else str(expires),
            "most": self._pace.jobs,
            "spacing_ms": self._pace.spacing_ms,
        }
        self._wire.call("fill", encode(filled))

    def _send(self, name: str, arguments: Callable[[bytes], tuple[str | bytes, ...]]) -> Any:
        """Call a script with what there is to tell; a claim never overtakes it."""
        with self._sending:
            with self._lock:
                told, self._told = self._told, None
            try:
                return self._wire.call(name, *arguments(b"" if told is None else encode(told)))
            except Away:
                if told is not None:
                    self.doubt()  # not repeated one by one, but looked for
                raise


def _tell(told: Told, job: NewJob, now: int) -> None:
    expires_at = job.expires_at
    if expires_at is None and job.expires_in_ms is not None:
        expires_at = now + job.expires_in_ms
    if expires_at is not None:
        told.expires = _sooner(told.expires, expires_at)
    due = job.scheduled_at if job.scheduled_at is not None else now + job.delay_ms
    if due > now:
        told.due = _sooner(told.due, due)
        return
    lane = spelled(job.queue, job.tenant_id, job.type, job.limit_key or "")
    entries = told.ready.setdefault(lane, [])
    if len(entries) < 4 * told.most:
        entries += (str(rank(due, job.priority)), chr(47 + job.priority) + job.id)
    else:
        told.doubt = True


@lru_cache(maxsize=4096)
def spelled(queue: str, tenant_id: str, type_: str, limit_key: str) -> str:
    """The one spelling of a lane."""
    return encode((queue, tenant_id, type_, limit_key)).decode()


def _sooner(known: int | None, other: int) -> int:
    return other if known is None else min(known, other)
