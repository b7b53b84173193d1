"""Short stories about flows that chance alone would tell too rarely."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from msgspec.structs import replace

from penstock.model.dependency import Edge, EdgeKind, OnFailure
from penstock.model.job import NewJob
from penstock.model.states import sources
from proof.state_machine.flow import ENOUGH, Flow
from proof.state_machine.flow_strategies import flow_jobs
from proof.state_machine.ground import Draw

LINE = "story"


class FlowMachine(Flow):
    """Jobs that wait for each other, stand in lines, and are held by operators."""

    @rule(data=st.data(), child_first=st.booleans())
    @precondition(lambda self: self._parents())
    def lose_a_parent_and_bring_it_back(self, data: Draw, child_first: bool) -> None:
        """A job that others wait for is cancelled and requeued, perhaps after one of those."""
        parent = data.draw(st.sampled_from(self._parents()))
        if child_first:
            children = [known.child_id for known in self.model.edges.open_to(parent)]
            self._cancel_now(data.draw(st.sampled_from(children)))
        self._cancel_now(parent)
        if self.model.jobs[parent].status.terminal:
            self._requeue([parent])

    @rule(job=flow_jobs, again=st.booleans())
    @precondition(lambda self: self._alive() < ENOUGH)
    def step_out_of_a_line(self, job: NewJob, again: bool) -> None:
        """Of three in a line the second goes, or all go one by one and come back together."""
        alike = replace(job, delay_ms=0, expires_in_ms=None, key=None, order_key=LINE)
        line = [self._named(alike) for _ in range(3)]
        self._enqueue(line)
        self.every_promise_holds()
        gone = [other.id for other in line] if again else [line[1].id]
        for job_id in gone:
            self._cancel_now(job_id)
        if again:
            self._requeue(gone)

    @rule(job=flow_jobs, policy=st.sampled_from(OnFailure))
    @precondition(lambda self: self._alive() < ENOUGH)
    def lose_parents_one_by_one(self, job: NewJob, policy: OnFailure) -> None:
        """One of two parents comes back: a list of results is put together anew, or still waits."""
        plain = replace(job, expires_in_ms=None, key=None)
        first, second = self._named(plain), self._named(plain)
        edges = [
            Edge(parent_id=first.id, on_failure=policy, **_listed(1)),
            Edge(parent_id=second.id, **_listed(2)),
        ]
        self._enqueue([first, second, replace(self._named(plain), after=tuple(edges))])
        self.every_promise_holds()
        for job_id in (first.id, second.id):
            self._cancel_now(job_id)
        self._requeue([second.id])
        self.every_promise_holds()
        self._cancel_now(second.id)

    @rule(job=flow_jobs)
    @precondition(lambda self: self._alive() < ENOUGH)
    def wait_the_wrong_way_round(self, job: NewJob) -> None:
        """A parent may not wait for a child that a requeue could have wait for it again."""
        plain = replace(job, delay_ms=0, expires_in_ms=None, key=None, order_key=None)
        parent = self._named(plain)
        child = replace(self._named(plain), after=(Edge(parent_id=parent.id),))
        self._enqueue([parent, child])
        self.every_promise_holds()
        self._cancel_now(parent.id)
        self._requeue([child.id])
        self.every_promise_holds()
        self.sweep(expires=False)
        self._requeue([parent.id])
        self.every_promise_holds()
        self._depend(parent.id, [Edge(parent_id=child.id)])

    def _cancel_now(self, job_id: str) -> None:
        self._cancel([job_id])
        self.every_promise_holds()
        self.everybody_waits_for_the_right_ones()

    def _parents(self) -> list[str]:
        jobs = self.model.jobs.items()
        waiting = [i for i, job in jobs if job.status in sources("cancel")]
        return [i for i in waiting if self.model.edges.open_to(i)]


def _listed(position: int) -> dict[str, Any]:
    return {"kind": EdgeKind.DATA, "argument": "story", "position": position}
