"""The rules about flows: edges, order lines, pauses, and requeues that bring dependents back."""

from collections.abc import Coroutine, Iterable, Mapping
from itertools import count
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from msgspec.structs import replace

from penstock.model.controls import PauseScope
from penstock.model.dependency import Edge
from penstock.model.errors import IllegalTransition, ParentNotFound, PenstockError
from penstock.model.job import NewJob
from penstock.model.states import sources
from penstock.store.contract import Claim
from proof.state_machine.finish import ANYTHING, Finish
from proof.state_machine.flow_look import check_edges, check_jobs, waits
from proof.state_machine.flow_model import FlowModel
from proof.state_machine.flow_strategies import RESULTS, edges, flow_jobs, pauses
from proof.state_machine.ground import Draw
from proof.state_machine.look import Seen
from proof.state_machine.strategies import WAYS, claims, endings, every_ending

ENOUGH = 8
NOBODY = "01JD0000000000000000000000"


class Flow(Finish[FlowModel]):
    """All that may be done to jobs that wait for each other."""

    follows = ("cancel", "orphan")

    def __init__(self) -> None:
        super().__init__()
        self._numbers = count(1)

    def _model(self) -> FlowModel:
        return FlowModel()

    @initialize(data=st.data())
    def begin(self, data: Draw) -> None:
        """There is a flow from the beginning."""
        self.enqueue_flow(data)

    @rule(data=st.data())
    @precondition(lambda self: self._alive() < ENOUGH)
    def enqueue_flow(self, data: Draw) -> None:
        """Insert a batch whose jobs wait for each other and for others, in any order."""
        batch: list[NewJob] = []
        for drawn in data.draw(st.lists(flow_jobs, min_size=1, max_size=4)):
            job = self._named(drawn)
            parents = [*(other.id for other in batch), *self.model.jobs]
            waits = data.draw(st.booleans())
            if parents and waits:
                after = self._edges(data, parents)
                job = replace(job, key=None, after=tuple(after))
            batch.append(job)
        if data.draw(st.booleans()):
            batch.reverse()
        self._enqueue(batch)

    @rule(job=flow_jobs)
    @precondition(lambda self: len(self.model.jobs) < ENOUGH)
    def enqueue_after_nobody(self, job: NewJob) -> None:
        """A job whose parent is not in the store is refused, with all that came with it."""
        strays = Edge(parent_id=NOBODY)
        batch = [self._named(job), replace(self._named(job), key=None, after=(strays,))]
        try:
            self._do(self.store.jobs.enqueue(batch))
        except ParentNotFound:
            return
        raise AssertionError("a job was to wait for nobody")

    @rule(data=st.data())
    @precondition(lambda self: self._waiting())
    def depend(self, data: Draw) -> None:
        """Have a job wait for more, where that is still possible."""
        fresh = [i for i, job in self.model.jobs.items() if not job.was_queued]
        child = data.draw(st.sampled_from(fresh or list(self.model.jobs)))
        after = self._edges(data, list(self.model.jobs))
        self._depend(child, after)

    @rule(data=st.data(), claim=claims)
    @precondition(lambda self: self._waiting())
    def claim(self, data: Draw, claim: Claim) -> None:
        """A worker takes jobs and starts all of them."""
        self._claim(data.draw(st.sampled_from(self.workers)), replace(claim, start=claim.limit))

    @rule(data=st.data(), claim=claims, way=st.sampled_from(WAYS))
    @precondition(lambda self: self._waiting())
    def work(self, data: Draw, claim: Claim, way: str) -> None:
        """A worker takes jobs, and some of what is leased then ends."""
        self.claim(data, claim)
        self.every_promise_holds()
        if self._held():
            self.settle(data, way)

    @rule(data=st.data(), way=st.sampled_from(WAYS))
    @precondition(lambda self: self._held())
    def settle(self, data: Draw, way: str) -> None:
        """A worker ends some of what it holds, well or in any other way."""
        owner = data.draw(st.sampled_from(self._held())).owner
        ended = []
        for token in self._held():
            if token.owner == owner and data.draw(st.booleans()):
                result = data.draw(st.sampled_from(RESULTS))
                every = every_ending(token, self._now, result=result)
                ended.append(data.draw(endings(way, every)))
        self._settle_with(owner, ended)

    @rule(data=st.data())
    @precondition(lambda self: self.model.jobs)
    def cancel(self, data: Draw) -> None:
        """An operator cancels some jobs, wherever they stand."""
        self._cancel(self._some(data, list(self.model.jobs)))

    @rule(data=st.data(), spread_ms=st.sampled_from((0, 1_000)), delay_ms=st.sampled_from((0, 500)))
    @precondition(lambda self: self._ended())
    def requeue(self, data: Draw, spread_ms: int, delay_ms: int) -> None:
        """An operator brings jobs back, and with them those that ended because of them."""
        self._requeue(self._some(data, self._ended()), spread_ms, delay_ms)

    @rule(data=st.data())
    @precondition(lambda self: self._ended())
    def amend(self, data: Draw) -> None:
        """An operator gives a job other arguments, where it has ended."""
        job_id = data.draw(st.sampled_from([*self._ended(), *self.model.jobs]))
        job = self.model.jobs[job_id]
        expected = None
        if job.status not in sources("requeue"):
            expected = IllegalTransition(job.status, "amend", job_id)
        payload = f'{{"own": {next(self._numbers)}}}'
        self._expect(self._refusal(self.store.jobs.amend(job_id, payload)), expected, job_id)
        if expected is None:
            job.payload = payload

    @rule(data=st.data())
    @precondition(lambda self: self._waiting())
    def pause_job(self, data: Draw) -> None:
        """An operator holds one job back."""
        waiting = [i for i, job in self.model.jobs.items() if job.status in sources("pause")]
        job_id = data.draw(st.sampled_from(waiting or list(self.model.jobs)))
        self._pause(PauseScope.JOB, job_id)

    @rule(pause=pauses, job=flow_jobs)
    @precondition(lambda self: self._alive() < ENOUGH)
    def pause(self, pause: tuple[PauseScope, str], job: NewJob) -> None:
        """An operator holds back what a job that waits belongs to, and the next claim obeys."""
        scope, name = pause
        about = {"tenant_id" if scope is PauseScope.TENANT else scope.value: name}
        self._enqueue([replace(self._named(job), delay_ms=0, **about)])
        self._pause(scope, name)
        self._claim(self.workers[0], ANYTHING)

    @rule(data=st.data(), other=pauses)
    @precondition(lambda self: self.model.paused)
    def resume(self, data: Draw, other: tuple[PauseScope, str]) -> None:
        """An operator lets something go on, perhaps something that was not paused."""
        self._resume(*data.draw(st.sampled_from([*sorted(self.model.paused), other])))

    @invariant()
    def everybody_waits_for_the_right_ones(self) -> None:
        """Edges, lines and pauses are what the model says, and the sweep never finds anything."""
        found = self._do(waits(self.store, self.model.jobs))
        check_edges(found.edges, self.model)
        paused = [(pause.scope, pause.name) for pause in found.pauses]
        assert sorted(paused) == sorted(self.model.paused)
        assert found.swept == 0, "the sweep found a forgotten edge"

    def _compare(self, picture: Mapping[str, Seen]) -> None:
        for job_id, allowed in self.model.may_be.items():
            found = picture[job_id].job.status
            assert found in allowed, f"{job_id} ended as {found}"
            self.model.jobs[job_id].status = found
        self.model.may_be.clear()
        super()._compare(picture)
        check_jobs((seen.job for seen in picture.values()), self.model)

    def _leave_alone(self, ids: Iterable[str]) -> None:
        """A job that has ended may still see the ends of its parents."""
        super()._leave_alone(i for i in ids if not self.model.edges.open_of(i))

    def _let_everything_go_on(self) -> None:
        for scope, name in sorted(self.model.paused):
            self._resume(scope, name)

    def _pause(self, scope: PauseScope, name: str) -> None:
        expected = self.model.pause(scope, name)
        call = self.store.controls.pause(scope, name)
        self._expect(self._refusal(call, "pause"), expected, name)

    def _resume(self, scope: PauseScope, name: str) -> None:
        answer = self._do(self.store.controls.resume(scope, name), "resume")
        assert answer == self.model.resume(scope, name)

    def _refusal(self, call: Coroutine[Any, Any, Any], *actions: str) -> PenstockError | None:
        """Why the store refuses a call, if it does."""
        try:
            self._do(call, *actions, *self.follows)
        except PenstockError as refused:
            return refused
        return None

    def _expect(
        self, found: PenstockError | None, expected: PenstockError | None, *ids: str
    ) -> None:
        """Refused for the same reason, without a trace, or not at all."""
        assert type(found) is type(expected), f"{found!r}, not {expected!r}"
        if expected is not None:
            self._leave_alone(job_id for job_id in ids if job_id in self.model.jobs)

    def _edges(self, data: Draw, parents: list[str]) -> list[Edge]:
        drawn = edges(parents, self._numbers)
        return data.draw(st.lists(drawn, min_size=1, max_size=3))

    def _enqueue(self, batch: list[NewJob]) -> None:
        expected = self.model.enqueue_all(batch, self._now)
        assert self._do(self.store.jobs.enqueue(batch), *self.follows) == expected

    def _depend(self, child: str, after: list[Edge]) -> None:
        expected = self.model.depend(child, after)
        self._expect(self._refusal(self.store.jobs.depend(child, after)), expected, child)

    def _cancel(self, ids: list[str]) -> None:
        self._leave_alone(i for i in ids if self.model.jobs[i].status.terminal)
        answer = self._do(self.store.jobs.cancel(ids, "not wanted"), *self.follows)
        assert answer == self.model.cancel(ids)

    def _requeue(self, ids: list[str], spread_ms: int = 0, delay_ms: int = 0) -> None:
        expected = self.model.requeue_refusal(ids, self._now)
        call = self.store.jobs.requeue(ids, spread_ms=spread_ms, delay_ms=delay_ms)
        self._expect(self._refusal(call, "requeue"), expected, *ids)
        if expected is None:
            due = [self._now + delay_ms + place * spread_ms for place in range(len(ids))]
            for job_id in self.model.requeue_all(dict(zip(ids, due, strict=True)), self._now):
                self.history.requeued(job_id)

    def _ended(self) -> list[str]:
        return [i for i, job in self.model.jobs.items() if job.status in sources("requeue")]

    def _some(self, data: Draw, ids: list[str]) -> list[str]:
        return data.draw(st.lists(st.sampled_from(ids), min_size=1, max_size=3, unique=True))
