"""The rules about leases and keys: what clients, workers, operators and time may do to a store."""

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule
from msgspec.structs import replace

from penstock.model.errors import IllegalTransition, KeyTaken
from penstock.model.job import KeyScope, NewJob
from penstock.store.contract import Claim, Held, Report
from proof.state_machine.ground import SETTLE, Draw, Ground
from proof.state_machine.model import MAX_RESCUES, StoreModel, Token
from proof.state_machine.strategies import LEASES_MS, claims, every_ending, new_jobs

ENOUGH = 10


class StoreMachine(Ground[StoreModel]):
    """Jobs that have nothing to do with each other: leases, fences, keys, retries, rescues."""

    whole = True

    def _model(self) -> StoreModel:
        return StoreModel()

    @initialize(jobs=st.lists(new_jobs, min_size=2, max_size=5))
    def begin(self, jobs: list[NewJob]) -> None:
        """There is work from the beginning."""
        self.enqueue(jobs)

    @rule(jobs=st.lists(new_jobs, min_size=1, max_size=3))
    @precondition(lambda self: len(self.model.jobs) < ENOUGH)
    def enqueue(self, jobs: list[NewJob]) -> None:
        """Insert a batch: with and without keys, delays, expiries."""
        named = [self._named(job) for job in jobs]
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
        fresh = [token for token in self._held() if not self.model.jobs[token.id].started]
        token = data.draw(st.sampled_from(fresh or self._held()))
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
        assert answer == self.model.cancel([job_id])

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

    @rule(data=st.data(), claim=claims)
    @precondition(lambda self: self._held())
    def freeze_and_return(self, data: Draw, claim: Claim) -> None:
        """A worker sleeps past its leases, takes new ones, and still writes under the old."""
        lost = data.draw(st.sampled_from(self._held()))
        self.outlast_every_lease(MAX_RESCUES)
        self._claim(lost.owner, replace(claim, start=min(claim.start, claim.limit)))
        self.every_promise_holds()
        self._write_in_vain(lost)

    def _keyed(self) -> list[NewJob]:
        return [job.new for job in self.model.jobs.values() if job.new.key is not None]

    def _tokens_of(self, owner: str) -> list[Token]:
        return [token for token in self.model.granted if token.owner == owner][-6:]

    def _settle(self, data: Draw, owner: str, tokens: list[Token]) -> None:
        """End live leases, some tokens among them perhaps stale."""
        endings = [data.draw(st.sampled_from(every_ending(t, self._now))) for t in tokens]
        self._settle_with(owner, endings)

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


def _report(token: Token, now: int) -> Report:
    return Report(
        id=token.id,
        fence=token.fence,
        progress_percent=50.0,
        checkpoint=f"{token.fence} by {token.owner}",
        logs=((now, "info", "halfway"),),
    )
