"""The model of jobs behind limits and breakers, and of workers that keep to what they are told."""

from collections import Counter
from collections.abc import Sequence

from penstock.model.controls import Limit, LimitKind, LimitScope
from penstock.model.job import Lease, NewJob
from penstock.model.outcome import Settlement
from penstock.model.states import Status
from penstock.store.contract import Claim, Claimed, Slots
from proof.state_machine.choice import COMES_BACK_OFTEN
from proof.state_machine.gates import Limits, ModelBreaker, Name, Starts, names_of
from proof.state_machine.model import ModelJob, StoreModel, Token


class GateModel(StoreModel):
    """`StoreModel` with limits and breakers.

    What was leased before a limit was set or changed may go on; `_before` holds those leases. Jobs
    that came back often are marked as started whatever a worker does: `_marked` holds them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.limits = Limits()
        self.breakers: dict[str, ModelBreaker] = {}
        self.allowed: dict[str, Slots] = {}
        self._starts: dict[Name, Starts] = {}
        self._before: dict[LimitScope, set[Token]] = {}
        self._marked: set[Token] = set()

    def set_limit(self, limit: Limit) -> None:
        """Set a limit."""
        self.limits.set(limit)
        self._changed(limit.scope)

    def remove_limit(self, limit: Limit) -> bool:
        """Take a limit away; whether there was one."""
        self._changed(limit.scope)
        return self.limits.drop(limit.scope, limit.name, limit.kind)

    def may_start(self, token: Token) -> bool:
        """Whether a worker that obeys its slots may start a lease it has."""
        allowed = self.allowed.get(token.owner, {})
        names = [name for name in names_of(self.jobs[token.id].new) if name in allowed]
        running = self._running(token.owner)
        return all(running[name] < allowed[name] for name in names)

    def start(self, token: Token, now: int) -> None:
        """A lease is started: no limit may be exceeded by it."""
        job = self.jobs[token.id]
        job.started = True
        for name in names_of(job.new):
            bound = not (token in self._marked or token in self._before.get(name[0], ()))
            self._starts.setdefault(name, Starts()).add(now, bound)
        for name, limit in self.limits.on(job.new, LimitKind.CONCURRENCY):
            running, before = self._running(None)[name], len(self._live_before(name))
            assert running <= limit.capacity + before, f"{running} run at once under {limit}"
        for name, limit in self.limits.on(job.new, LimitKind.RATE):
            begun = self._starts[name].bound(limit.interval_ms or 0, now)
            assert begun <= limit.capacity, f"{begun} started in a while under {limit}"

    def note_claim(self, owner: str, claimed: Claimed, now: int) -> None:
        """Leases that are marked start at once; the worker obeys its new slots."""
        self.allowed[owner] = claimed.slots
        for lease in claimed.leases:
            token = Token(lease.id, lease.fence, owner)
            if lease.fence > COMES_BACK_OFTEN:
                self._marked.add(token)
            self.jobs[lease.id].started = False
            if lease.started_at is not None:
                self._note_probe(lease, now)
                self.start(token, now)
            else:
                assert not self._guards(lease.type), f"{lease.id} waits behind a breaker"
        running = self._running(owner)
        for name, slots in claimed.slots.items():
            most = slots + len(self._live_before(name))
            assert running[name] <= most, f"{running[name]} run in {slots} slots of {name}"

    def left_out(self, owner: str, claim: Claim, claimed: Claimed, now: int) -> list[str]:
        """The jobs that a claim could have leased, but did not."""
        if len(claimed.leases) == claim.limit:
            return []
        new = {lease.id for lease in claimed.leases}
        starting = sum(lease.started_at is not None for lease in claimed.leases)
        starting += sum(not job.started for job in self.held_by(owner) if job.new.id not in new)
        left = [job for jobs in self.claimable(claim).values() for job in jobs]
        return [job.new.id for job in left if not self._stopped(job, claim.start - starting, now)]

    def settle(self, owner: str, settlement: Settlement, now: int) -> bool:
        """End a lease, and tell the breakers."""
        held = super().settle(owner, settlement, now)
        if held:
            for breaker in self._guards(settlement.type):
                breaker.heed(settlement, now)
        return held

    def _stopped(self, job: ModelJob, may_start: int, now: int) -> bool:
        """Whether any gate may have kept a queued job back."""
        new = job.new
        leased = Counter(name for other in self._leased(None) for name in names_of(other.new))
        slots = list(self.limits.on(new, LimitKind.CONCURRENCY))
        rates = list(self.limits.on(new, LimitKind.RATE))
        if (slots or rates or self._guards(new.type)) and may_start <= 0:
            return True
        full = any(leased[name] >= limit.capacity for name, limit in slots)
        spent = any(
            self._starts.setdefault(name, Starts()).within(limit.interval_ms or 0, now)
            >= limit.capacity
            for name, limit in rates
        )
        return full or spent or any(self._through(b, now) == 0 for b in self._guards(new.type))

    def _note_probe(self, lease: Lease, now: int) -> None:
        for breaker in self._guards(lease.type):
            through = self._through(breaker, now, lease.id)
            assert through != 0, f"{lease.id} passed {breaker}"
            if through == 1:
                breaker.probe_id = lease.id

    def _through(self, breaker: ModelBreaker, now: int, but: str | None = None) -> int | None:
        probe = breaker.probe_id
        probing = probe is not None and self.jobs[probe].status is Status.IN_PROGRESS
        return breaker.lets_through(now, probing and probe != but)

    def _guards(self, type_: str) -> Sequence[ModelBreaker]:
        return [b for b in self.breakers.values() if type_ in b.breaker.types]

    def _changed(self, scope: LimitScope) -> None:
        """From now on a limit of this scope may be another."""
        self._before[scope] = {token for token in self.granted if self.held(token)}
        for (about, _), starts in self._starts.items():
            if about is scope:
                starts.since = len(starts.at)

    def _live_before(self, name: Name) -> list[Token]:
        live = (token for token in self._before.get(name[0], ()) if self.held(token))
        return [token for token in live if name in names_of(self.jobs[token.id].new)]

    def _running(self, owner: str | None) -> Counter[Name]:
        started = (job for job in self._leased(owner) if job.started and not self._doubtful(job))
        return Counter(name for job in started for name in names_of(job.new))

    def _doubtful(self, job: ModelJob) -> bool:
        return Token(job.new.id, job.fence, job.owner or "") in self._marked

    def _leased(self, owner: str | None) -> list[ModelJob]:
        return [job for job in self.jobs.values() if job.owner and owner in (None, job.owner)]


def lane_of(job: NewJob) -> tuple[str, str, str, str]:
    """What jobs have in common that no gate can tell apart."""
    return job.queue, job.tenant_id, job.type, job.limit_key or ""
