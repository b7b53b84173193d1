"""The rules: whatever clients, workers, operators and time may do to a store."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
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
from penstock.model.settlement import Settlement
from penstock.model.states import Status
from penstock.store.contract import Claim, Fate, Held, Report, Store
from penstock.testing.clock import FakeClock
from penstock.testing.state_machine.history import History
from penstock.testing.state_machine.look import Seen, look
from penstock.testing.state_machine.model import MAX_RESCUES, WAITING, ModelJob, StoreModel, Token
from penstock.testing.state_machine.strategies import LEASES_MS, TICKS_MS, claims, endings, new_jobs

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
        other = data.draw(st.sampled_from(self._keyed()))
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
        self._claim(data, replace(claim, start=claim.limit))

    @rule(data=st.data(), claim=claims)
    @precondition(lambda self: self._waiting())
    def claim_ahead(self, data: Draw, claim: Claim) -> None:
        """A worker takes jobs, of which it starts some or none."""
        self._claim(data, replace(claim, start=min(claim.start, claim.limit)))

    @rule(data=st.data())
    @precondition(lambda self: self.model.granted)
    def start(self, data: Draw) -> None:
        """A worker marks leases it still holds, or believes to hold, as started."""
        owner, tokens = self._some_tokens(data, self.workers)
        self._untouched |= {token.id for token in tokens}
        self._do(self.store.jobs.start(owner, [token[:2] for token in tokens]))
        for job in filter(None, map(self.model.held, tokens)):
            job.started = True
            self._untouched.discard(job.new.id)

    @rule(data=st.data())
    @precondition(lambda self: self.model.granted)
    def renew(self, data: Draw) -> None:
        """A worker that is alive extends its leases; lost ones are named."""
        owner, tokens = self._some_tokens(data, self.workers)
        lease_ms = data.draw(st.sampled_from(LEASES_MS))
        renewal = self.store.leases.renew(owner, [Held(t.id, t.fence, lease_ms) for t in tokens])
        asked = sorted(j.new.id for j in self.model.held_by(owner) if j.cancel_requested)
        assert sorted(renewal.cancelled) == asked
        assert sorted(self.store.leases.cancel_requests(owner)) == asked
        lost = []
        for token in tokens:
            job = self.model.held(token)
            if job is None:
                lost.append(token.id)
            else:
                job.lease_until = self._now + lease_ms
        assert sorted(renewal.lost) == sorted(lost)

    @rule(data=st.data())
    @precondition(lambda self: self._held())
    def settle(self, data: Draw) -> None:
        """A worker, perhaps one that was thought dead, ends leases it holds."""
        first = data.draw(st.sampled_from(self._held()))
        more = [t for t in self._held() if t.owner == first.owner and t != first]
        tokens = [first, *data.draw(st.lists(st.sampled_from(more or [first]), max_size=2))]
        self._settle(data, first.owner, list(dict.fromkeys(tokens)))

    @rule(data=st.data())
    @precondition(lambda self: self._held())
    def settle_everything(self, data: Draw) -> None:
        """A worker ends all it ever leased in one batch, as after a long freeze."""
        owner = data.draw(st.sampled_from(self._held())).owner
        tokens = [token for token in self.model.granted if token.owner == owner]
        self._settle(data, owner, tokens[-6:])

    @rule(data=st.data())
    @precondition(lambda self: self._lost())
    def settle_too_late(self, data: Draw) -> None:
        """A worker ends a lease it has lost, or has ended before."""
        token = self._draw_lost(data)
        self._settle(data, token.owner, [token])

    @rule(data=st.data())
    @precondition(lambda self: self._held())
    def settle_for_another(self, data: Draw) -> None:
        """Somebody with the right fence but a wrong name ends a lease."""
        token = data.draw(st.sampled_from(self._held()))
        others = [name for name in (*self.workers, *self.crashed) if name != token.owner]
        self._settle(data, data.draw(st.sampled_from(others)), [token])

    @rule(data=st.data())
    @precondition(lambda self: self.model.granted)
    def report(self, data: Draw) -> None:
        """An execution tells how far it is; one whose lease is gone is not heard."""
        token = data.draw(st.sampled_from(self._held() or self._lost()))
        if data.draw(st.booleans()) and self._lost():
            token = self._draw_lost(data)
        owner = data.draw(st.sampled_from((token.owner, token.owner, *self.workers)))
        report = Report(
            id=token.id,
            fence=token.fence,
            progress_percent=50.0,
            checkpoint=f"{token.fence}",
            logs=((self._now, "info", "halfway"),),
        )
        stale = self._do(self.store.jobs.report(owner, [report]))
        if self.model.report(owner, report):
            assert stale == []
        else:
            assert stale == [token.id]
            self._untouched.add(token.id)

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

    @rule()
    @precondition(lambda self: self._held())
    def outlast_every_lease(self) -> None:
        """Nobody renews for a while, and the leader notices."""
        self.clock.advance(max(LEASES_MS) / 1000 + 1)
        self._rescue(None, MAX_RESCUES)

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

    def _draw_lost(self, data: Draw) -> Token:
        """Prefer a token whose owner has the job again: only the fence tells the two apart."""
        again = {(token.id, token.owner) for token in self._held()}
        returned = [token for token in self._lost() if (token.id, token.owner) in again]
        return data.draw(st.sampled_from(returned or self._lost()))

    def _some_tokens(self, data: Draw, owners: Sequence[str]) -> tuple[str, list[Token]]:
        """A few of an owner's tokens, live or not."""
        owner = data.draw(st.sampled_from(owners))
        own = [token for token in self.model.granted if token.owner == owner][-6:]
        chosen = data.draw(st.lists(st.sampled_from(own), max_size=3, unique=True)) if own else []
        return owner, chosen

    def _claim(self, data: Draw, claim: Claim) -> None:
        owner = data.draw(st.sampled_from(self.workers))
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
        settlements: list[Settlement] = [data.draw(endings(t, self._now)) for t in tokens]
        mine = [token._replace(owner=owner) for token in tokens]
        lost = {token.id for token in mine if not self._live(token)}
        repeated = {token.id for token in mine if token in self.model.settled}
        self._untouched |= lost - {token.id for token in mine if self._live(token)}
        stale = self._do(self.store.jobs.settle(owner, settlements), *SETTLE)
        for settlement in settlements:
            self.model.settle(owner, settlement, self._now)
        # A store may recognise that a settlement is the repetition of one it has applied.
        assert lost - repeated <= set(stale) <= lost, f"{stale} for {lost}"

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


def _named(job: NewJob, number: int) -> NewJob:
    return replace(job, id=f"{number:026d}")
