"""The rules about gates: limits on what runs and starts, and breakers."""

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from msgspec.structs import replace

from penstock.model.controls import Breaker, Limit
from penstock.model.job import NewJob
from penstock.store.contract import Claim, Claimed
from proof.state_machine.choice import COMES_BACK_OFTEN
from proof.state_machine.finish import Finish
from proof.state_machine.gate_model import GateModel, lane_of
from proof.state_machine.gate_strategies import (
    COOL_DOWN_MS,
    GUARDED,
    breakers,
    gate_claims,
    gate_jobs,
    limits,
)
from proof.state_machine.gates import ModelBreaker
from proof.state_machine.ground import Draw
from proof.state_machine.model import Token
from proof.state_machine.strategies import LEASES_MS, WAYS, endings, every_ending

ENOUGH = 10
MANY_LIMITS = 3


class GateMachine(Finish[GateModel]):
    """Several workers, of which none may run or start more than the limits say."""

    def _model(self) -> GateModel:
        return GateModel()

    @initialize(jobs=st.lists(gate_jobs, min_size=4, max_size=8), limit=limits(), breaker=breakers)
    def begin(self, jobs: list[NewJob], limit: Limit, breaker: Breaker) -> None:
        """There is work, and a limit and a breaker before it, from the beginning."""
        self.set_limit(limit)
        self.define_breaker(breaker)
        self.enqueue(jobs)

    @rule(jobs=st.lists(gate_jobs, min_size=1, max_size=4))
    @precondition(lambda self: self._alive() < ENOUGH)
    def enqueue(self, jobs: list[NewJob]) -> None:
        """Insert jobs."""
        named = [self._named(job) for job in jobs]
        expected = [self.model.enqueue(job, self._now) for job in named]
        assert self._do(self.store.jobs.enqueue(named)) == expected

    @rule(limit=limits())
    @precondition(lambda self: len(self.model.limits.known) < MANY_LIMITS)
    def set_limit(self, limit: Limit) -> None:
        """A limit is set or changed, by code or by an operator."""
        self._do(self.store.controls.set_limits([limit]))
        self.model.set_limit(limit)

    @rule(data=st.data(), capacity=st.sampled_from((1, 2, 3)))
    @precondition(lambda self: self.model.limits.known)
    def declare_again(self, data: Draw, capacity: int) -> None:
        """A deploy sets a limit that is there already, perhaps an operator's."""
        limit = data.draw(st.sampled_from(list(self.model.limits.known.values())))
        self.set_limit(replace(limit, capacity=capacity, by_operator=False))

    @rule(data=st.data())
    @precondition(lambda self: self.model.limits.known)
    def remove_limit(self, data: Draw) -> None:
        """A limit is taken away."""
        limit = data.draw(st.sampled_from(list(self.model.limits.known.values())))
        call = self.store.controls.remove_limit(limit.scope, limit.name, limit.kind)
        assert self._do(call) == self.model.remove_limit(limit)

    @rule(breaker=breakers)
    @precondition(lambda self: self._broken())
    def define_breaker(self, breaker: Breaker) -> None:
        """Code sets up a breaker, or changes one, which keeps its position."""
        self._do(self.store.controls.define_breakers([breaker]))
        self.model.breakers.setdefault(breaker.name, ModelBreaker(breaker)).breaker = breaker

    @rule()
    @precondition(lambda self: self._broken())
    def reset_breaker(self) -> None:
        """An operator closes a breaker by hand."""
        assert self._do(self.store.controls.reset_breaker("api"))
        self.model.breakers["api"].reset()

    @rule(data=st.data(), claim=gate_claims)
    @precondition(lambda self: self._waiting())
    def claim(self, data: Draw, claim: Claim) -> None:
        """A worker takes jobs, some to start and some in advance."""
        owner = data.draw(st.sampled_from(self.workers))
        self._claim(owner, replace(claim, start=min(claim.start, claim.limit)))

    @rule(data=st.data())
    @precondition(lambda self: self._prefetched())
    def start(self, data: Draw) -> None:
        """A worker goes on with leases it took in advance, as far as its slots allow."""
        self._start_waiting(data.draw(st.sampled_from(self._prefetched())).owner)

    @rule(data=st.data(), way=st.sampled_from(WAYS))
    @precondition(lambda self: self._held())
    def settle(self, data: Draw, way: str) -> None:
        """A worker ends some of what it holds, well or in any other way."""
        owner = data.draw(st.sampled_from(self._held())).owner
        ended = []
        for token in self._held():
            if token.owner == owner and data.draw(st.booleans()):
                every = every_ending(token, self._now, self.model.jobs[token.id].new.type)
                ended.append(data.draw(endings(way, every)))
        self._settle_with(owner, ended)

    @rule(data=st.data(), claim=gate_claims, way=st.sampled_from(WAYS))
    @precondition(lambda self: self._waiting())
    def work(self, data: Draw, claim: Claim, way: str) -> None:
        """A worker takes jobs, and some of what is leased then ends."""
        self.claim(data, claim)
        self.every_promise_holds()
        if self._held():
            self.settle(data, way)

    @rule(data=st.data(), claim=gate_claims)
    @precondition(lambda self: self._waiting())
    def go_on_while_another_asks(self, data: Draw, claim: Claim) -> None:
        """A worker asks just when another has ended its jobs and goes on with those it took."""
        owner, other = data.draw(st.permutations(self.workers))
        self._claim(owner, replace(claim, start=1))
        self.every_promise_holds()
        over = [t for t in self._held() if t.owner == owner and self.model.jobs[t.id].started]
        self._settle_with(owner, [self._well_done(token) for token in over])
        self._claim(other, replace(claim, start=claim.limit))
        self.every_promise_holds()
        self._start_waiting(owner)

    @rule(jobs=st.lists(gate_jobs, min_size=3, max_size=3))
    @precondition(lambda self: self._alive() < ENOUGH)
    def fail_and_try_again(self, jobs: list[NewJob]) -> None:
        """What a breaker guards fails until it opens; later two workers ask at the same time."""
        self.enqueue([replace(job, type=GUARDED[0], delay_ms=0) for job in jobs])
        owner, other = self.workers
        everything = Claim(owner="", types=GUARDED, limit=4, start=4, lease_ms=max(LEASES_MS))
        for _ in range(2):
            self._claim(owner, everything)
            self.every_promise_holds()
            guarded = [t for t in self._held() if self.model.jobs[t.id].new.type in GUARDED]
            mine = [token for token in guarded if token.owner == owner]
            self._settle_with(owner, [every_ending(t, self._now, GUARDED[0])[1] for t in mine])
        self.clock.advance(COOL_DOWN_MS / 1000)
        self._claim(owner, everything)
        self.every_promise_holds()
        self._claim(other, everything)

    @invariant()
    def every_gate_is_where_it_should_be(self) -> None:
        """Limits and breakers are what the model says."""
        found = [state.limit for state in self._do(self.store.controls.limits())]
        assert sorted(map(repr, found)) == sorted(map(repr, self.model.limits.known.values()))
        states = {s.breaker.name: s for s in self._do(self.store.controls.breakers())}
        assert states.keys() == self.model.breakers.keys()
        for name, expected in self.model.breakers.items():
            state = states[name]
            assert state.breaker == expected.breaker
            assert (state.failed, state.opened_at) == (expected.failed, expected.opened_at)

    def _claim(self, owner: str, claim: Claim) -> Claimed:
        claimed = super()._claim(owner, claim)
        self.model.note_claim(owner, claimed, self._now)
        left = self.model.left_out(owner, claim, claimed, self._now)
        assert not left, f"nothing kept {left} from being leased"
        return claimed

    def _start_waiting(self, owner: str) -> None:
        for token in self._prefetched():
            if token.owner == owner and self.model.may_start(token):
                self._do(self.store.jobs.start(owner, [token[:2]]))
                self.model.start(token, self._now)

    def _broken(self) -> bool:
        return any(breaker.failed for breaker in self.model.breakers.values())

    def _prefetched(self) -> list[Token]:
        return [token for token in self._held() if not self.model.jobs[token.id].started]

    def _starts(self, claim: Claim, position: int) -> bool | None:
        return None

    def _check_claimed(self, owner: str, claim: Claim, claimed: Claimed) -> None:
        """Of jobs that no gate can tell apart, the most urgent go first."""
        waiting: dict[object, list[int]] = {}
        for job in (job for jobs in self.model.claimable(claim).values() for job in jobs):
            waiting.setdefault(lane_of(job.new), []).append(job.rank)
        taken: dict[object, list[int]] = {}
        for job in (self.model.jobs[lease.id] for lease in claimed.leases):
            taken.setdefault(lane_of(job.new), []).append(job.rank)
        for lane, ranks in taken.items():
            assert sorted(ranks) == sorted(waiting[lane])[: len(ranks)], "a less urgent went first"
        fresh = (lease for lease in claimed.leases if lease.fence <= COMES_BACK_OFTEN)
        assert sum(lease.started_at is not None for lease in fresh) <= claim.start
        due = self.model.next_due_in(self._now)
        assert due is None or (claimed.next_due_in_ms or 0) <= due
