"""A Hypothesis state machine over the store contract; every store must survive it.

`run_state_machine_as_test(store_machine(open_store))`, where `open_store(clock)` gives a store that
nobody else uses and that has not been opened yet.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from itertools import count
from typing import Any, ClassVar, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from penstock.model.clock import Clock
from penstock.model.errors import IllegalTransition, JobNotFound, KeyTaken
from penstock.model.job import KeyScope, Lease, NewJob
from penstock.model.settlement import Settlement
from penstock.model.states import Status
from penstock.store.contract import Claim, Fate, Held, JobFilter, Report, Store
from penstock.testing.clock import FakeClock
from penstock.testing.state_endings import endings
from penstock.testing.state_history import History
from penstock.testing.state_model import MAX_RESCUES, ModelJob, StoreModel, Token

T = TypeVar("T")
Draw = st.DataObject

TYPES = ("build", "mail")
EVERYTHING = 10_000
COMES_BACK_OFTEN = 6
SETTLE = ("complete", "fail", "stop", "bury", "snooze", "hand_back")

# Leases, expiries and key windows end between two ticks: whether a moment belongs to what it ends
# is the store's own affair.
TICKS_MS = (100, 1_000, 3_000, 12_000)
LEASES_MS = (2_007, 10_007)

new_jobs = st.builds(
    NewJob,
    id=st.just(""),
    type=st.sampled_from(TYPES),
    tenant_id=st.sampled_from(("", "acme")),
    priority=st.sampled_from((1, 5, 10)),
    delay_ms=st.sampled_from((0, 0, 0, 1_000, 5_000)),
    expires_in_ms=st.sampled_from((None, None, None, 2_007)),
    key=st.sampled_from((None, "order-1")),
    key_scope=st.sampled_from((None, *KeyScope)),
    key_window_ms=st.just(3_007),
)


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
        self._actions: Sequence[str] = ()
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

    @rule(jobs=st.lists(new_jobs, min_size=1, max_size=3))
    def enqueue(self, jobs: list[NewJob]) -> None:
        """Insert a batch: with and without keys, delays, expiries."""
        named = [_named(job, next(self._ids)) for job in jobs]
        expected = [self.model.enqueue(job, self._now) for job in named]
        assert self._do(self.store.jobs.enqueue(named)) == expected

    @rule(data=st.data())
    @precondition(lambda self: self.model.jobs)
    def enqueue_again(self, data: Draw) -> None:
        """A client that lost the answer sends the same job once more."""
        job = data.draw(st.sampled_from(list(self.model.jobs.values())))
        expected = [self.model.enqueue(job.new, self._now)]
        with_no_trace = self._picture(job.new.id)
        assert self._do(self.store.jobs.enqueue([job.new])) == expected
        assert self._picture(job.new.id) == with_no_trace

    @rule(
        data=st.data(),
        types=st.sampled_from((TYPES, TYPES, TYPES[:1])),
        limit=st.integers(1, 4),
        starts=st.integers(0, 4),
        lease_ms=st.sampled_from(LEASES_MS),
        max_priority=st.sampled_from((None, None, 5)),
    )
    def claim(
        self,
        data: Draw,
        types: tuple[str, ...],
        limit: int,
        starts: int,
        lease_ms: int,
        max_priority: int | None,
    ) -> None:
        """A worker takes jobs: some to start at once, some to prefetch."""
        claim = Claim(
            owner=data.draw(st.sampled_from(self.workers)),
            types=types,
            limit=limit,
            start=min(starts, limit),
            lease_ms=lease_ms,
            max_priority=max_priority,
            type_lease_ms={"mail": 5_007},
        )
        claimed = self._do(self.store.jobs.claim(claim), "expire", "stage", "claim")
        self.model.expire(self._now)
        self.model.stage(self._now)
        self._check_choice(claim, claimed.leases)
        for position, lease in enumerate(claimed.leases):
            self._check_lease(lease, self.model.jobs[lease.id], position < claim.start)
            lasts = claim.type_lease_ms.get(lease.type, claim.lease_ms)
            self.model.grant(lease, claim.owner, self._now + lasts)
        assert claimed.next_due_in_ms == self.model.next_due_in(self._now)

    @rule(data=st.data())
    @precondition(lambda self: self.model.granted)
    def start(self, data: Draw) -> None:
        """A worker marks leases it still holds, or believes to hold, as started."""
        owner, tokens = self._some_tokens(data, self.workers)
        untouched = [t.id for t in tokens if not any(self._live(u) for u in tokens if u.id == t.id)]
        before = self._picture(*untouched)
        self._do(self.store.jobs.start(owner, [token[:2] for token in tokens]))
        for job in filter(None, map(self.model.held, tokens)):
            job.started = True
        assert self._picture(*untouched) == before

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
    @precondition(lambda self: self._lost())
    def settle_too_late(self, data: Draw) -> None:
        """A worker ends leases it has lost, or has ended before, perhaps among ones it holds."""
        token = self._draw_lost(data)
        held = [t for t in self._held() if t.owner == token.owner]
        also = data.draw(st.lists(st.sampled_from(held), max_size=1)) if held else []
        self._settle(data, token.owner, [token, *also])

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
        before = self._picture(token.id)
        stale = self._do(self.store.jobs.report(owner, [report]))
        if self.model.report(owner, report):
            assert stale == []
        else:
            assert stale == [token.id]
            assert self._picture(token.id) == before

    @rule(data=st.data())
    @precondition(lambda self: self.model.jobs)
    def cancel(self, data: Draw) -> None:
        """An operator cancels a job, wherever it stands."""
        job_id = data.draw(st.sampled_from(list(self.model.jobs)))
        before = self._picture(job_id)
        ended = self.model.jobs[job_id].status.terminal
        answer = self._do(self.store.jobs.cancel([job_id], "not wanted"), "cancel")
        assert answer == {job_id: self.model.cancel(job_id)}
        assert not ended or self._picture(job_id) == before

    @rule(data=st.data())
    @precondition(lambda self: self.model.jobs)
    def requeue(self, data: Draw) -> None:
        """An operator gives a job a fresh budget, where that is legal."""
        ended = [i for i, job in self.model.jobs.items() if job.status.terminal]
        job_id = data.draw(st.sampled_from(ended or list(self.model.jobs)))
        refusal = self.model.refusal(job_id, self._now)
        if refusal is None:
            assert self._do(self.store.jobs.requeue([job_id]), "requeue") == [job_id]
            self.model.requeue(job_id, self._now)
            self.history.requeued(job_id)
            return
        before = self._picture(job_id)
        try:
            self._do(self.store.jobs.requeue([job_id]))
        except (IllegalTransition, KeyTaken) as error:
            assert type(error) is refusal
        else:
            raise AssertionError(f"the requeue of {job_id} should end in {refusal.__name__}")
        assert self._picture(job_id) == before

    @rule()
    def ask_for_an_unknown_job(self) -> None:
        """Cancel and requeue say so when there is no such job."""
        for call in (self.store.jobs.cancel(["0"], "why not"), self.store.jobs.requeue(["0"])):
            try:
                self._do(call)
            except JobNotFound:
                continue
            raise AssertionError("an unknown job was accepted")

    @rule(data=st.data())
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
    def stage(self) -> None:
        """The leader queues what fell due."""
        assert self._do(self.store.upkeep.stage(), "stage") == len(self.model.stage(self._now))

    @rule()
    def expire(self) -> None:
        """The leader buries what nobody needs any more."""
        assert set(self._do(self.store.upkeep.expire(), "expire")) == self.model.expire(self._now)

    @rule(data=st.data(), max_rescues=st.sampled_from((1, MAX_RESCUES, MAX_RESCUES)))
    def rescue(self, data: Draw, max_rescues: int) -> None:
        """The leader takes away leases that ran out, or those of a worker known to be dead."""
        owner = data.draw(st.sampled_from((None, *self.crashed[-2:])))
        owners = {job.new.id: job.owner for job in self.model.jobs.values()}
        rescued = self._do(
            self.store.upkeep.rescue(owner=owner, max_rescues=max_rescues),
            *("rescue", "hand_back", "stop", "bury"),
        )
        fates: dict[str, Fate] = {taken.id: taken.fate for taken in rescued}
        assert len(fates) == len(rescued)
        assert fates == self.model.rescue(owner, max_rescues, self._now)
        assert all(taken.owner == owners[taken.id] for taken in rescued)

    @invariant()
    def every_promise_holds(self) -> None:
        """What is stored is what the model says, and follows from what was seen before."""
        jobs = self._do(self.store.reader.find(JobFilter(limit=EVERYTHING)), *self._actions)
        self.history.see(jobs, self._actions)
        self._actions = ()
        assert {job.id for job in jobs} == set(self.model.jobs)
        for job in jobs:
            expected = self.model.jobs[job.id]
            found = {
                "status": job.status,
                "fence": job.fence,
                "attempts": job.attempts,
                "snoozes": job.snoozes,
                "rescues": job.rescues,
                "scheduled_at": job.scheduled_at,
                "expires_at": job.expires_at,
                "owner": job.lease_owner,
                "lease_until": job.lease_until,
                "checkpoint": job.checkpoint,
            }
            assert found == {name: getattr(expected, name) for name in found}, job.id
            if job.status is Status.IN_PROGRESS:
                assert expected.started == (job.started_at is not None), job.id
                assert expected.cancel_requested == (job.cancel_requested_at is not None), job.id

    @invariant()
    def every_execution_has_a_fence_of_its_own(self) -> None:
        """One row per execution, the running one included, and the log lines beside them."""
        for job_id, job in self.model.jobs.items():
            executions = self._do(self.store.reader.executions(job_id))
            assert [execution.fence for execution in executions] == job.fences
            running = [execution.fence for execution in executions if execution.ended_at is None]
            assert running == ([job.fence] if job.started else [])
            assert len(self._do(self.store.reader.logs(job_id))) == job.log_lines

    @property
    def _now(self) -> int:
        return self.clock.now()

    def _do(self, call: Coroutine[Any, Any, T], *actions: str) -> T:
        """Make a call that may take these transitions, and only these."""
        self._actions = actions
        return self._runner.run(call)

    def _picture(self, *job_ids: str) -> list[object]:
        """All that is stored about some jobs, to compare it with what is stored later."""
        actions = self._actions
        reader = self.store.reader
        picture: list[object] = [*self._do(reader.get(job_ids))]
        for job_id in job_ids:
            picture += self._do(reader.executions(job_id))
            picture += self._do(reader.logs(job_id))
        self._actions = actions
        return picture

    def _live(self, token: Token) -> bool:
        return self.model.held(token) is not None

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

    def _settle(self, data: Draw, owner: str, tokens: list[Token]) -> None:
        settlements: list[Settlement] = [data.draw(endings(t, self._now)) for t in tokens]
        lost = [t.id for t in tokens if not self._live(t._replace(owner=owner))]
        repeated = {t.id for t in tokens if t._replace(owner=owner) in self.model.settled}
        untouched = set(lost) - {t.id for t in tokens if self._live(t._replace(owner=owner))}
        before = self._picture(*sorted(untouched))
        stale = self._do(self.store.jobs.settle(owner, settlements), *SETTLE)
        for settlement in settlements:
            self.model.settle(owner, settlement, self._now)
        # A store may recognise that a settlement is the repetition of one it has applied.
        assert set(lost) - repeated <= set(stale) <= set(lost), f"{stale} for {lost}"
        assert self._picture(*sorted(untouched)) == before, "a stale settlement left a trace"

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
    from msgspec.structs import replace

    return replace(job, id=f"{number:026d}")
