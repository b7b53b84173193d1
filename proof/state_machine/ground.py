"""What every machine stands on: a store, a model beside it, and a look at both after each step."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from itertools import count
from typing import Any, ClassVar, Generic, TypeVar, cast

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec.structs import replace

from penstock.model.clock import Clock
from penstock.model.job import NewJob
from penstock.model.outcome import Settlement
from penstock.model.states import Status
from penstock.store.contract import Claim, Claimed, Fate, Store
from penstock.testing.clock import FakeClock
from proof.state_machine.choice import check_choice, check_lease
from proof.state_machine.history import History
from proof.state_machine.look import Seen, look
from proof.state_machine.model import MAX_RESCUES, WAITING, StoreModel, Token
from proof.state_machine.strategies import LEASES_MS, TICKS_MS

T = TypeVar("T")
Model = TypeVar("Model", bound=StoreModel)
Draw = st.DataObject

FOLLOWER = "proof.all"
SETTLE = ("complete", "fail", "stop", "bury", "snooze", "hand_back")


class Ground(RuleBasedStateMachine, Generic[Model]):
    """Opens a store, does things to it, and compares it with the model after each."""

    open_store: ClassVar[Callable[[Clock], Store]]
    follows: ClassVar[tuple[str, ...]] = ()
    """The transitions that the end of a job may mean for others."""
    whole: ClassVar[bool] = False
    """Whether executions and log lines are looked at as well, which takes as long as all else."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock()
        self.model: Model = self._model()
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
        self._do(self.store.changes.follow(FOLLOWER, list(Status)))

    def teardown(self) -> None:
        """Close the store and its event loop."""
        try:
            self._do(self.store.close())
        finally:
            self._runner.close()

    @rule(ms=st.sampled_from(TICKS_MS))
    def tick(self, ms: int) -> None:
        """Time passes."""
        self.clock.advance(ms / 1000)

    @rule(data=st.data())
    @precondition(lambda self: self._held())
    def crash(self, data: Draw) -> None:
        """A worker dies, or freezes: its leases are renewed no more, and a new one comes."""
        owner = data.draw(st.sampled_from(self.workers))
        self.crashed.append(owner)
        self.workers.remove(owner)
        self.workers.append(f"worker-{len(self.workers) + len(self.crashed) + 1}")

    @rule(max_rescues=st.sampled_from((MAX_RESCUES, 1)))
    @precondition(lambda self: self._held())
    def outlast_every_lease(self, max_rescues: int) -> None:
        """Nobody renews for a while, and the leader notices."""
        self.clock.advance(max(LEASES_MS) / 1000 + 1)
        self._rescue(None, max_rescues)

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
            call = upkeep.expire()
            assert set(self._do(call, "expire", *self.follows)) == self.model.expire(self._now)
        assert self._do(upkeep.stage(), "stage") == len(self.model.stage(self._now))

    @invariant()
    def every_promise_holds(self) -> None:
        """What is stored is what the model says, and follows from what was seen before."""
        ids = list(self.model.jobs) if self.whole else []
        picture, changes = self._do(look(self.store, ids, FOLLOWER))
        self.history.see([seen.job for seen in picture.values()], self._actions)
        self.history.hear(changes)
        assert set(picture) == set(self.model.jobs)
        for job_id in self._untouched:
            assert picture[job_id] == self._picture[job_id], f"a trace was left on {job_id}"
        self._compare(picture)
        self._picture = picture
        self._untouched.clear()
        self._actions.clear()

    @property
    def _now(self) -> int:
        return self.clock.now()

    def _compare(self, picture: Mapping[str, Seen]) -> None:
        """Every job is as the model says."""
        for job_id, job in self.model.jobs.items():
            picture[job_id].check(job)
            if self.whole:
                picture[job_id].check_executions(job)

    def _model(self) -> Model:
        """A new model; every machine has its own (Hypothesis' metaclass rules out an ABC)."""
        raise NotImplementedError

    def _do(self, call: Coroutine[Any, Any, T], *actions: str) -> T:
        """Make a call that may take these transitions, and only these."""
        self._actions.update(actions)
        return self._runner.get_loop().run_until_complete(call)

    def _leave_alone(self, ids: Iterable[str]) -> None:
        """The call that comes must leave no trace on these jobs."""
        self._untouched.update(ids)

    def _live(self, token: Token) -> bool:
        return self.model.held(token) is not None

    def _waiting(self) -> bool:
        return any(job.status in WAITING for job in self.model.jobs.values())

    def _alive(self) -> int:
        return sum(not job.status.terminal for job in self.model.jobs.values())

    def _held(self) -> list[Token]:
        return [token for token in self.model.granted if self._live(token)]

    def _lost(self) -> list[Token]:
        return [token for token in self.model.granted if not self._live(token)]

    def _named(self, job: NewJob) -> NewJob:
        return replace(job, id=f"{next(self._ids):026d}")

    def _claim(self, owner: str, claim: Claim) -> Claimed:
        call = self.store.jobs.claim(replace(claim, owner=owner))
        claimed = self._do(call, "expire", "stage", "claim", *self.follows)
        self.model.expire(self._now)
        self.model.stage(self._now)
        self._check_claimed(owner, claim, claimed)
        for position, lease in enumerate(claimed.leases):
            job = self.model.jobs[lease.id]
            assert job.status is Status.QUEUED, f"{lease.id} was leased while {job.status}"
            self.history.grant(lease)
            check_lease(lease, job, self._starts(claim, position))
            lasts = claim.type_lease_ms.get(lease.type, claim.lease_ms)
            self.model.grant(lease, owner, self._now + lasts)
        return claimed

    def _starts(self, claim: Claim, position: int) -> bool | None:
        """Whether the lease in this place is to be started; none where that is not said."""
        return position < claim.start

    def _check_claimed(self, owner: str, claim: Claim, claimed: Claimed) -> None:
        """The right jobs were taken, before the model hears of it."""
        check_choice(self.model, claim, claimed.leases)
        assert claimed.next_due_in_ms == self.model.next_due_in(self._now)

    def _settle_with(self, owner: str, settlements: Sequence[Settlement]) -> None:
        """End leases, some of them perhaps lost."""
        tokens = [Token(s.id, s.fence, owner) for s in settlements]
        lost = {token for token in tokens if not self._live(token)}
        self._leave_alone({t.id for t in lost} - {t.id for t in tokens if t not in lost})
        stale = self._do(self.store.jobs.settle(owner, settlements), *SETTLE, *self.follows)
        self.model.settle_all(owner, settlements, self._now)
        self._check_stale(stale, lost)

    def _check_stale(self, stale: list[str], lost: set[Token]) -> None:
        """A store may recognise that a settlement is the repetition of one it has applied."""
        new = {token.id for token in lost - self.model.settled}
        assert new <= set(stale) <= {token.id for token in lost}, f"{stale} of {lost}"

    def _rescue(self, owner: str | None, max_rescues: int) -> None:
        owners = {job.new.id: job.owner for job in self.model.jobs.values()}
        call = self.store.upkeep.rescue(owner=owner, max_rescues=max_rescues)
        rescued = self._do(call, "rescue", "hand_back", "stop", "bury", *self.follows)
        fates: dict[str, Fate] = {taken.id: taken.fate for taken in rescued}
        assert len(fates) == len(rescued), "a lease was taken away twice"
        assert fates == self.model.rescue(owner, max_rescues, self._now)
        assert all(taken.owner == owners[taken.id] for taken in rescued)


Machine = TypeVar("Machine", bound=Ground[Any])


def on(open_store: Callable[[Clock], Store], machine: type[Machine]) -> type[Machine]:
    """The machine for one kind of store."""
    made = type(machine.__name__, (machine,), {"open_store": staticmethod(open_store)})
    return cast("type[Machine]", made)
