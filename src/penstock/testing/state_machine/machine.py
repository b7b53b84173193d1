"""The rules: whatever clients, workers, operators and time may do to a store."""

import asyncio
from collections.abc import Callable, Coroutine
from itertools import count
from typing import Any, ClassVar, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from msgspec.structs import replace

from penstock.model.clock import Clock
from penstock.model.errors import IllegalTransition, KeyTaken
from penstock.model.job import KeyScope, Lease, NewJob
from penstock.model.states import Status
from penstock.store.contract import Claim, Fate, Held, Report, Store
from penstock.testing.clock import FakeClock
from penstock.testing.state_machine.history import History
from penstock.testing.state_machine.look import Seen, look
from penstock.testing.state_machine.model import MAX_RESCUES, WAITING, ModelJob, StoreModel, Token
from penstock.testing.state_machine.strategies import (
    LEASES_MS,
    TICKS_MS,
    claims,
    every_ending,
    new_jobs,
)

T = TypeVar("T")
Draw = st.DataObject

ENOUGH = 10
COMES_BACK_OFTEN = 6
SETTLE = ("complete", "fail", "stop", "bury", "snooze", "hand_back")


class StoreMachine(RuleBasedStateMachine):
    """Does to a store whatever clients, workers, operators and time may do."""

    open_store: ClassVar[Callable[[Clock], Store]]

    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock()
        self.model = StoreModel()
        self.history = History()
        self.workers = ["worker-1", "worker-2"]
        self.crashed: list[str] = []
        self._actions: set[str] = set()
        self._untouched: set[str] = set()
        self._picture: dict[str, Seen] = {}
        self._ids = count(1)
        self._runner = asyncio.Runner()
        self.store = type(self).open_store(self.clock)
        self._do(self.store.open())

    def teardown(self) -> None:
        """Close the store and its event loop."""
        try:
            self._do(self.store.close())
        finally:
            self._runner.close()

    @initialize(jobs=st.lists(new_jobs, min_size=2, max_size=5))
    def begin(self, jobs: list[NewJob]) -> None:
        """There is work from the beginning."""
        self.enqueue(jobs)

    @rule(jobs=st.lists(new_jobs, min_size=1, max_size=3))
    @precondition(lambda self: len(self.model.jobs) < ENOUGH)
    def enqueue(self, jobs: list[NewJob]) -> None:
        """Insert a batch: with and without keys, delays, expiries."""
        named = [_named(job, next(self._ids)) for job in jobs]
        expected = [self.model.enqueue(job, self._now) for job in named]
        assert self._do(self.store.jobs.enqueue(named)) == expected

    @rule(data=st.data())
    @precondition(lambda self: self._keyed())
    def enqueue_the_same_key(self, data: Draw) -> None:
        """Another client wants the same thing done."""
        released = [new for new in self._keyed() if self.model.holder(new, self._now) is None]
        other = data.draw(st.sampled_from([*released, *self._keyed()]))
        scope = data.draw(st.sampled_from(tuple(KeyScope)))
        self.enqueue([replace(other, key_scope=scope, delay_ms=0, expires_in_ms=None)])

    @rule(data=st.data())
    @precondition(lambda self: self.model.jobs)
    def enqueue_again(self, data: Draw) -> None:
        """A client that lost the answer sends the same job once more."""
        job = data.draw(st.sampled_from(list(self.model.jobs.values())))
        expected = [self.model.enqueue(job.new, self._now)]
        assert self._do(self.store.jobs.enqueue([job.new])) == expected
        self._untouched.add(job.new.id)

    @rule(data=st.data(), claim=claims)
    @precondition(lambda self: self._waiting())
    def claim_to_run(self, data: Draw, claim: Claim) -> None:
        """A worker takes jobs and starts all of them."""
        self._claim(data.draw(st.sampled_from(self.workers)), replace(claim, start=claim.limit))

    @rule(data=st.data(), claim=claims)
    @precondition(lambda self: self._waiting())
    def claim_ahead(self, data: Draw, claim: Claim) -> None:
        """A worker takes jobs, of which it starts some or none."""
        owner = data.draw(st.sampled_from(self.workers))
        self._claim(owner, replace(claim, start=min(claim.start, claim.limit)))

    @rule(data=st.data())
    @precondition(lambda self: self._held())
    def start(self, data: Draw) -> None:
        """A worker marks a lease as started, perhaps once more."""
        token = data.draw(st.sampled_from(self._held()))
        self._do(self.store.jobs.start(token.owner, [token[:2]]))
        self.model.jobs[token.id].started = True

    @rule(data=st.data())
    @precondition(lambda self: self._held())
    def report(self, data: Draw) -> None:
        """An execution tells how far it is."""
        token = data.draw(st.sampled_from(self._held()))
        report = _report(token, self._now)
        assert self._do(self.store.jobs.report(token.owner, [report])) == []
        self.model.report(token.owner, report)

    @rule(owner=st.sampled_from((0, 1)), lease_ms=st.sampled_from(LEASES_MS))
    @precondition(lambda self: self.model.granted)
    def renew(self, owner: int, lease_ms: int) -> None:
        """A worker that is alive extends its leases; lost ones are named."""
        name = self.workers[owner]
        tokens = self._tokens_of(name)
        renewal = self.store.leases.renew(name, [Held(t.id, t.fence, lease_ms) for t in tokens])
        asked = sorted(job.new.id for job in self.model.held_by(name) if job.cancel_requested)
        assert sorted(renewal.cancelled) == asked
        assert sorted(self.store.leases.cancel_requests(name)) == asked
        assert sorted(renewal.lost) == sorted(t.id for t in tokens if not self._live(t))
        for job in filter(None, map(self.model.held, tokens)):
            job.lease_until = self._now + lease_ms

    @rule(data=st.data())
    @precondition(lambda self: self._held())
    def settle(self, data: Draw) -> None:
        """A worker, perhaps one that was thought dead, ends a lease it holds."""
        token = data.draw(st.sampled_from(self._held()))
        self._settle(data, token.owner, [token])

    @rule(data=st.data())
    @precondition(lambda self: self._held())
    def settle_everything(self, data: Draw) -> None:
        """A worker ends all it ever leased in one batch, as after a long freeze."""
        owner = data.draw(st.sampled_from(self._held())).owner
        self._settle(data, owner, self._tokens_of(owner))

    @rule(data=st.data())
    @precondition(lambda self: self._lost())
    def write_too_late(self, data: Draw) -> None:
        """A worker writes under a lease it has lost, or has ended before."""
        # Where it has the job again, only the fence tells the two leases apart; a job that it has
        # not started yet shows even a start mark.
        again = {(token.id, token.owner) for token in self._held()}
        returned = [token for token in self._lost() if (token.id, token.owner) in again]
        fresh = [token for token in returned if not self.model.jobs[token.id].started]
        self._write_in_vain(data.draw(st.sampled_from(fresh or returned or self._lost())))

    @rule(data=st.data())
    @precondition(lambda self: self._held())
    def write_in_a_wrong_name(self, data: Draw) -> None:
        """Somebody writes with the right fence, but as another owner."""
        token = data.draw(st.sampled_from(self._held()))
        others = [name for name in (*self.workers, *self.crashed) if name != token.owner]
        self._write_in_vain(token._replace(owner=data.draw(st.sampled_from(others))))

    @rule(data=st.data())
    @precondition(lambda self: self.model.jobs)
    def cancel(self, data: Draw) -> None:
        """An operator cancels a job, wherever it stands."""
        running = [token.id for token in self._held()]
        job_id = data.draw(st.sampled_from([*running, *self.model.jobs]))
        if self.model.jobs[job_id].status.terminal:
            self._untouched.add(job_id)
        answer = self._do(self.store.jobs.cancel([job_id], "not wanted"), "cancel")
        assert answer == {job_id: self.model.cancel(job_id)}

    @rule(data=st.data())
    @precondition(lambda self: self.model.jobs)
    def requeue(self, data: Draw) -> None:
        """An operator gives a job a fresh budget, where that is legal."""
        ended = [i for i, job in self.model.jobs.items() if job.status.terminal]
        job_id = data.draw(st.sampled_from(ended or list(self.model.jobs)))
        expected = self.model.refusal(job_id, self._now)
        try:
            answer: object = self._do(self.store.jobs.requeue([job_id]), "requeue")
        except (IllegalTransition, KeyTaken) as refused:
            answer = refused
        if expected is None:
            assert answer == [job_id]
            self.model.requeue(job_id, self._now)
            self.history.requeued(job_id)
        else:
            assert str(answer) == str(expected)
            self._untouched.add(job_id)

    @rule(data=st.data())
    @precondition(lambda self: self._held())
    def crash(self, data: Draw) -> None:
        """A worker dies, or freezes: its leases are renewed no more, and a new one comes."""
        owner = data.draw(st.sampled_from(self.workers))
        self.crashed.append(owner)
        self.workers.remove(owner)
        self.workers.append(f"worker-{len(self.workers) + len(self.crashed) + 1}")

    @rule(ms=st.sampled_from(TICKS_MS))
    def tick(self, ms: int) -> None:
        """Time passes."""
        self.clock.advance(ms / 1000)

    @rule(max_rescues=st.sampled_from((MAX_RESCUES, 1)))
    @precondition(lambda self: self._held())
    def outlast_every_lease(self, max_rescues: int) -> None:
        """Nobody renews for a while, and the leader notices."""
        self.clock.advance(max(LEASES_MS) / 1000 + 1)
        self._rescue(None, max_rescues)

    @rule(data=st.data(), claim=claims)
    @precondition(lambda self: self._held())
    def freeze_and_return(self, data: Draw, claim: Claim) -> None:
        """A worker sleeps past its leases, takes new ones, and still writes under the old."""
        lost = data.draw(st.sampled_from(self._held()))
        self.outlast_every_lease(MAX_RESCUES)
        self._claim(lost.owner, replace(claim, start=min(claim.start, claim.limit)))
        self.every_promise_holds()
        self._write_in_vain(lost)

    @rule(data=st.data(), max_rescues=st.sampled_from((MAX_RESCUES, MAX_RESCUES, 1)))
    @precondition(lambda self: self._held())
    def rescue(self, data: Draw, max_rescues: int) -> None:
        """The leader takes away leases that ran out, or those of a worker known to be dead."""
        self._rescue(data.draw(st.sampled_from((None, *self.crashed[-2:]))), max_rescues)

    @rule(expires=st.booleans())
    @precondition(lambda self: self._waiting())
    def sweep(self, expires: bool) -> None:
        """The leader queues what fell due and buries what nobody needs any more."""
        upkeep = self.store.upkeep
        if expires:
            assert set(self._do(upkeep.expire(), "expire")) == self.model.expire(self._now)
        assert self._do(upkeep.stage(), "stage") == len(self.model.stage(self._now))

    @invariant()
    def every_promise_holds(self) -> None:
        """What is stored is what the model says, and follows from what was seen before."""
        picture = self._do(look(self.store, list(self.model.jobs)))
        self.history.see([seen.job for seen in picture.values()], self._actions)
        assert set(picture) == set(self.model.jobs)
        for job_id in self._untouched:
            assert picture[job_id] == self._picture[job_id], f"a trace was left on {job_id}"
        for job_id, job in self.model.jobs.items():
            picture[job_id].check(job)
        self._picture = picture
        self._untouched.clear()
        self._actions.clear()

    @property
    def _now(self) -> int:
        return self.clock.now()

    def _do(self, call: Coroutine[Any, Any, T], *actions: str) -> T:
        """Make a call that may take these transitions, and only these."""
        self._actions.update(actions)
        return self._runner.run(call)

    def _live(self, token: Token) -> bool:
        return self.model.held(token) is not None

    def _keyed(self) -> list[NewJob]:
        return [job.new for job in self.model.jobs.values() if job.new.key is not None]

    def _waiting(self) -> bool:
        return any(job.status in WAITING for job in self.model.jobs.values())

    def _held(self) -> list[Token]:
        return [token for token in self.model.granted if self._live(token)]

    def _lost(self) -> list[Token]:
        return [token for token in self.model.granted if not self._live(token)]

    def _tokens_of(self, owner: str) -> list[Token]:
        return [token for token in self.model.granted if token.owner == owner][-6:]

    def _claim(self, owner: str, claim: Claim) -> None:
        call = self.store.jobs.claim(replace(claim, owner=owner))
        claimed = self._do(call, "expire", "stage", "claim")
        self.model.expire(self._now)
        self.model.stage(self._now)
        self._check_choice(claim, claimed.leases)
        for position, lease in enumerate(claimed.leases):
            self._check_lease(lease, self.model.jobs[lease.id], position < claim.start)
            lasts = claim.type_lease_ms.get(lease.type, claim.lease_ms)
            self.model.grant(lease, owner, self._now + lasts)
        assert claimed.next_due_in_ms == self.model.next_due_in(self._now)

    def _settle(self, data: Draw, owner: str, tokens: list[Token]) -> None:
        """End live leases, some tokens among them perhaps stale."""
        settlements = [data.draw(st.sampled_from(every_ending(t, self._now))) for t in tokens]
        lost = {token for token in tokens if not self._live(token)}
        self._untouched |= {t.id for t in lost} - {t.id for t in tokens if t not in lost}
        stale = self._do(self.store.jobs.settle(owner, settlements), *SETTLE)
        for settlement in settlements:
            self.model.settle(owner, settlement, self._now)
        self._check_stale(stale, lost)

    def _write_in_vain(self, token: Token) -> None:
        """Every write of a worker, with a token that is not a live lease."""
        self._untouched.add(token.id)
        jobs, owner = self.store.jobs, token.owner
        stale = self._do(jobs.settle(owner, every_ending(token, self._now)), *SETTLE)
        self._check_stale(stale, {token})
        assert self._do(jobs.report(owner, [_report(token, self._now)])) == [token.id]
        self._do(jobs.start(owner, [token[:2]]))
        held = [Held(token.id, token.fence, max(LEASES_MS) + 60_000)]
        assert self.store.leases.renew(owner, held).lost == [token.id]

    def _check_stale(self, stale: list[str], lost: set[Token]) -> None:
        """A store may recognise that a settlement is the repetition of one it has applied."""
        new = {token.id for token in lost - self.model.settled}
        assert new <= set(stale) <= {token.id for token in lost}, f"{stale} of {lost}"

    def _rescue(self, owner: str | None, max_rescues: int) -> None:
        owners = {job.new.id: job.owner for job in self.model.jobs.values()}
        call = self.store.upkeep.rescue(owner=owner, max_rescues=max_rescues)
        rescued = self._do(call, "rescue", "hand_back", "stop", "bury")
        fates: dict[str, Fate] = {taken.id: taken.fate for taken in rescued}
        assert len(fates) == len(rescued), "a lease was taken away twice"
        assert fates == self.model.rescue(owner, max_rescues, self._now)
        assert all(taken.owner == owners[taken.id] for taken in rescued)

    def _check_choice(self, claim: Claim, leases: list[Lease]) -> None:
        """As many as there are, the most urgent of each tenant, tenants in turns."""
        waiting = self.model.claimable(claim)
        total = sum(map(len, waiting.values()))
        assert len(leases) == min(claim.limit, total), f"{len(leases)} leases of {total} jobs"
        taken = {tenant: [i.rank for i in jobs] for tenant, jobs in waiting.items()}
        shares = {
            tenant: [self.model.jobs[i.id].rank for i in leases if i.tenant_id == tenant]
            for tenant in waiting
        }
        for tenant, share in shares.items():
            assert sorted(share) == taken[tenant][: len(share)], "a less urgent job went first"
            left = len(waiting[tenant]) > len(share)
            assert not left or len(share) >= max(map(len, shares.values())) - 1, "a turn was missed"

    def _check_lease(self, lease: Lease, job: ModelJob, starts: bool) -> None:
        assert job.status is Status.QUEUED, f"{lease.id} was leased while {job.status}"
        self.history.grant(lease)
        assert lease.fence == job.fence + 1
        found = (lease.attempts, lease.snoozes, lease.rescues, lease.checkpoint, lease.expires_at)
        assert found == (job.attempts, job.snoozes, job.rescues, job.checkpoint, job.expires_at)
        assert (lease.type, lease.tenant_id, lease.key) == (
            job.new.type,
            job.new.tenant_id,
            job.new.key,
        )
        marked = lease.started_at is not None
        assert marked or not starts, "a lease to be started has no mark"
        assert starts or not marked or job.fence >= COMES_BACK_OFTEN, "a prefetch has a mark"


def store_machine(open_store: Callable[[Clock], Store]) -> type[StoreMachine]:
    """The machine for one kind of store."""

    class Machine(StoreMachine):
        """The rules of `StoreMachine` on the given store."""

    Machine.open_store = staticmethod(open_store)
    return Machine


def _report(token: Token, now: int) -> Report:
    return Report(
        id=token.id,
        fence=token.fence,
        progress_percent=50.0,
        checkpoint=f"{token.fence} by {token.owner}",
        logs=((now, "info", "halfway"),),
    )


def _named(job: NewJob, number: int) -> NewJob:
    return replace(job, id=f"{number:026d}")
