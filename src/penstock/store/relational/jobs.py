"""The life of jobs in SQL."""

from collections.abc import Collection, Sequence

from msgspec.json import encode

from penstock.model.dependency import Edge
from penstock.model.errors import IllegalTransition, KeyTaken
from penstock.model.failure import MESSAGE_LIMIT
from penstock.model.job import KeyScope
from penstock.model.not_found import JobNotFound
from penstock.model.outcome import Settlement
from penstock.model.redact import redact
from penstock.model.states import sources
from penstock.store.contract import Claim, Claimed, Held, Renewal, Report
from penstock.store.relational import settle
from penstock.store.relational.claim import Claims
from penstock.store.relational.endings import Counters
from penstock.store.relational.enqueue import take_key
from penstock.store.relational.release import depend, end
from penstock.store.relational.transaction import (
    Database,
    StorePart,
    Transaction,
    reads,
    reads_now,
    writes,
    writes_now,
)


def hold(tx: Transaction, ids: Sequence[str]) -> None:
    """Keep everybody else from changing these jobs until this transaction ends."""
    held = {row[0] for row in tx.rows("hold_jobs", (tx.listed(sorted(set(ids))),))}
    for job_id in ids:
        if job_id not in held:
            raise JobNotFound(job_id)


def _refusal(tx: Transaction, job_id: str) -> JobNotFound | IllegalTransition | KeyTaken | None:
    found = tx.row("requeueable", (job_id,))
    if found is None:
        return JobNotFound(job_id)
    status, tenant_id, type_, key, scope = found
    if status not in sources("requeue"):
        return IllegalTransition(status, "requeue", job_id)
    if key is not None and scope != KeyScope.WHILE_PENDING:
        holder = tx.value("key_holder", (tenant_id, type_, key, tx.now))
        if holder is not None and holder != job_id:
            return KeyTaken(key, holder, type_)
    return None


def _requeue(tx: Transaction, job_id: str, due: int) -> None:
    _, tenant_id, type_, key, scope = tx.row("requeueable", (job_id,)) or ("",) * 5
    if key is not None and scope == KeyScope.UNTIL_DONE:
        holder = take_key(tx, tenant_id, type_, key, job_id, KeyScope.UNTIL_DONE, None)
        if holder != job_id:  # taken since the look before
            raise KeyTaken(key, holder, type_)
    row = {"id": job_id, "now": tx.now, "due": due}
    tx.run("requeue", row)
    tx.run("resolve_requeued", row)


def _restore_dependents(tx: Transaction, ids: Sequence[str]) -> None:
    """Have children that ended because of a requeued parent wait for it again."""
    frontier = list(ids)
    while frontier:
        children = [row[0] for job_id in frontier for row in tx.rows("reopen_edges", (job_id,))]
        tx.many("raise_waiting", [(1, tx.now, child_id) for child_id in children])
        frontier = []
        for child_id in dict.fromkeys(children):
            restorable = tx.value("restorable", {"id": child_id}) is not None
            if restorable and _refusal(tx, child_id) is None:
                _requeue(tx, child_id, max(tx.now, tx.value("due_of", (child_id,))))
                frontier.append(child_id)


def _cancel_requests(tx: Transaction, owner: str) -> list[str]:
    return [row[0] for row in tx.rows("cancel_requests", (owner,))]


class RelationalLeases(StorePart):
    """`Leases` in SQL."""

    @writes_now
    def renew(
        self,
        tx: Transaction,
        owner: str,
        held: Sequence[Held],
        *,
        unheard_ms: int | None = None,
        given_up: Collection[str] = (),
    ) -> Renewal:
        """Extend what the owner still holds, and what it was granted without knowing it yet."""
        rows = [(tx.monotonic + h.lease_ms, h.id, h.fence, owner) for h in held]
        kept = tx.fenced("renew", rows)
        lost = [h.id for h, ok in zip(held, kept, strict=True) if not ok]
        if unheard_ms is not None:
            known = tx.listed([*(h.id for h in held), *given_up])
            tx.run("renew_unheard", (tx.monotonic + unheard_ms, owner, known))
        return Renewal(lost, _cancel_requests(tx, owner))

    @reads_now
    def held(self, tx: Transaction, owner: str) -> list[str]:
        """The ids of all jobs the owner has leased."""
        return [row[0] for row in tx.rows("held", (owner,))]

    @reads_now
    def cancel_requests(self, tx: Transaction, owner: str) -> list[str]:
        """The owner's running jobs that somebody asked to stop."""
        return _cancel_requests(tx, owner)


class RelationalJobs(StorePart):
    """`JobStore` in SQL, but for `enqueue`, which knows the connections of its dialect."""

    def __init__(self, database: Database, claims: Claims) -> None:
        super().__init__(database)
        self._claims = claims

    @writes
    def depend(self, tx: Transaction, child_id: str, edges: Sequence[Edge]) -> None:
        """Have a job that has not been queued yet wait for more parents."""
        depend(tx, child_id, edges)

    @reads
    def depth(self, tx: Transaction, queue: str, up_to: int) -> int:
        """How many jobs are queued there, counted no further than asked."""
        return int(tx.value("queue_depth", (queue, up_to)))

    async def claim(self, claim: Claim) -> Claimed:
        """Lease the most urgent jobs."""
        return await self.db.write(lambda tx: self._claims.claim(tx, claim))

    @writes
    def start(self, tx: Transaction, owner: str, leases: Sequence[tuple[str, int]]) -> None:
        """Mark prefetched leases as started."""
        started = encode(list(leases)).decode()
        tx.run("start", {"started": started, "owner": owner, "now": tx.now})

    async def settle(self, owner: str, settlements: Sequence[Settlement]) -> list[str]:
        """End leases."""
        return await self.db.write(lambda tx: settle.settle(tx, owner, settlements))

    @writes
    def report(self, tx: Transaction, owner: str, reports: Sequence[Report]) -> list[str]:
        """Write progress, checkpoints and logs."""
        return settle.report(tx, owner, reports)

    @writes
    def cancel(self, tx: Transaction, ids: Sequence[str], reason: str) -> dict[str, str]:
        """Cancel waiting jobs, ask running ones to stop; the status each has then."""
        counters = Counters()
        reason = redact(str(reason))[:MESSAGE_LIMIT]
        hold(tx, ids)
        row = {"ids": tx.listed(ids), "reason": reason, "now": tx.now}
        ended = counters.end_all(tx.rows("cancel_waiting", row), "cancelled")
        tx.run("forget_job_pause", (tx.listed(ended),))
        tx.run("request_cancel", row)
        statuses: dict[str, str] = dict(tx.rows("statuses_of", (row["ids"],)))
        end(tx, ended)
        counters.write(tx)
        tx.changed = True
        return {job_id: statuses[job_id] for job_id in ids}

    @writes
    def requeue(
        self, tx: Transaction, ids: Sequence[str], *, spread_ms: float = 0, delay_ms: float = 0
    ) -> list[str]:
        """Give ended jobs a fresh budget, all of them or none."""
        hold(tx, ids)
        for place, job_id in enumerate(ids):
            refusal = _refusal(tx, job_id)
            if refusal is not None:
                raise refusal
            _requeue(tx, job_id, tx.now + round(delay_ms + place * spread_ms))
        _restore_dependents(tx, ids)
        tx.changed = True
        return list(ids)

    @writes
    def amend(self, tx: Transaction, job_id: str, payload: str) -> None:
        """Give an ended job other arguments."""
        hold(tx, (job_id,))
        status = tx.value("status_of", (job_id,))
        if status not in sources("requeue"):
            raise IllegalTransition(status, "amend", job_id)
        tx.run("set_payload", (payload, job_id))
        tx.changed = True
