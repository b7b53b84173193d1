"""The model of jobs that wait for each other, stand in lines, and are held by operators."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.json import decode, encode
from msgspec.structs import replace

from penstock.model.controls import PauseScope
from penstock.model.dependency import Edge, Outcome
from penstock.model.errors import DependencyCycle, IllegalTransition, KeyTaken, PenstockError
from penstock.model.job import Enqueued, NewJob
from penstock.model.states import Status, sources
from penstock.store.contract import Claim
from proof.state_machine.edges import AGAINST, Edges
from proof.state_machine.lines import Lines
from proof.state_machine.model import ModelJob, StoreModel


class FlowModel(StoreModel):
    """`StoreModel` with edges, lines and pauses."""

    def __init__(self) -> None:
        super().__init__()
        self.edges = Edges()
        self.lines = Lines()
        self.paused: set[tuple[PauseScope, str]] = set()
        self.may_be: dict[str, set[Status]] = {}
        """How a job may have ended that several parents ended in one call."""
        self._orphans: set[str] = set()
        self._ended: list[str] = []

    def enqueue_all(self, jobs: Sequence[NewJob], now: int) -> list[Enqueued]:
        """Insert jobs with their edges; parents that have ended count at once."""
        answers = [self.enqueue(job, now) for job in jobs]
        meant = {job.id: answer.id for job, answer in zip(jobs, answers, strict=True)}
        for job, answer in zip(jobs, answers, strict=True):
            if answer.created:
                self._link(
                    job.id,
                    [replace(e, parent_id=meant.get(e.parent_id, e.parent_id)) for e in job.after],
                )
        self._follow()
        return answers

    def depend(self, child_id: str, edges: Sequence[Edge]) -> PenstockError | None:
        """Have a job wait for more parents, or say why not."""
        child = self.jobs[child_id]
        if child.status not in (Status.PENDING, Status.PAUSED) or child.was_queued:
            return IllegalTransition(child.status, "depend", child_id)
        if any(self.edges.leads_to(edge.parent_id, child_id) for edge in edges):
            return DependencyCycle([])
        self._link(child_id, edges)
        self._follow()
        return None

    def waiting_on(self, job_id: str) -> int:
        """How much a job waits for."""
        return len(self.edges.open_of(job_id)) + self.lines.waits(job_id)

    def claimable(self, claim: Claim) -> dict[str, list[ModelJob]]:
        """The queued jobs that nobody has paused."""
        by_tenant = super().claimable(claim)
        free = {tenant: list(filter(self._free, jobs)) for tenant, jobs in by_tenant.items()}
        return {tenant: jobs for tenant, jobs in free.items() if jobs}

    def pause(self, scope: PauseScope, name: str) -> PenstockError | None:
        """Hold something, or say why not."""
        if scope is PauseScope.JOB:
            job = self.jobs[name]
            if job.status not in (*sources("pause"), Status.PAUSED):
                return IllegalTransition(job.status, "pause", name)
            job.status = Status.PAUSED
        self.paused.add((scope, name))
        return None

    def resume(self, scope: PauseScope, name: str) -> bool:
        """Let it go on; whether it was paused."""
        found = (scope, name) in self.paused
        self.paused.discard((scope, name))
        if found and scope is PauseScope.JOB:
            self.jobs[name].status = Status.PENDING
        return found

    def requeue_refusal(self, ids: Sequence[str], now: int) -> PenstockError | None:
        """Why a requeue of all of these must be refused, if it must."""
        keys: dict[tuple[str, str, str], str] = {}
        for job_id in ids:
            new = self.jobs[job_id].new
            refused = self.refusal(job_id, now)
            if refused is not None:
                return refused
            if new.key is not None:
                holder = keys.setdefault((new.tenant_id, new.type, new.key), job_id)
                if holder != job_id:
                    return KeyTaken(new.key, holder, new.type)
        return None

    def requeue_all(self, due: Mapping[str, int], now: int) -> list[str]:
        """Give jobs a fresh budget and a time; all that came back, their dependents included."""
        for job_id, at in due.items():
            self._come_back(job_id, at, now)
        back, todo = list(due), list(due)
        while todo:
            restored = self._reopen(todo.pop(0))
            for job_id in restored:
                self._come_back(job_id, max(now, self.jobs[job_id].scheduled_at), now)
            back += restored
            todo += restored
        return back

    def _reopen(self, parent_id: str) -> list[str]:
        """Have the dependents of a requeued job wait for it again; those that ended with it."""
        children = []
        for known in self.edges.reopenable(parent_id):
            child = self.jobs[known.child_id]
            if child.status in sources("requeue") or not _under_way(child):
                known.outcome = known.value = None
                children.append(known.child_id)
        return [
            child_id
            for child_id in dict.fromkeys(children)
            if child_id in self._orphans and not self.edges.against(child_id)
        ]

    def _come_back(self, job_id: str, due: int, now: int) -> None:
        self.requeue(job_id, now)
        self.jobs[job_id].scheduled_at = due
        self._orphans.discard(job_id)

    def _free(self, job: ModelJob) -> bool:
        names = {
            (PauseScope.QUEUE, job.new.queue),
            (PauseScope.TYPE, job.new.type),
            (PauseScope.TENANT, job.new.tenant_id),
        }
        return not names & self.paused

    def _link(self, child_id: str, edges: Iterable[Edge]) -> None:
        self.edges.add(child_id, edges)
        parents = [known.edge.parent_id for known in self.edges.open_of(child_id)]
        self._ended += [i for i in dict.fromkeys(parents) if self.jobs[i].status.terminal]

    def _begin(self, job: ModelJob) -> None:
        """A job joins its line when it could run, and the queue when it is the first there."""
        if not job.was_queued:
            self.lines.join(job.new)
            job.was_queued = True
        if not self.lines.waits(job.new.id):
            job.status = Status.QUEUED

    def _stageable(self) -> list[ModelJob]:
        return [job for job in super()._stageable() if self.waiting_on(job.new.id) == 0]

    def _end(self, job: ModelJob, status: Status) -> None:
        super()._end(job, status)
        self.lines.leave(job.new.id)
        self.paused.discard((PauseScope.JOB, job.new.id))
        self._ended.append(job.new.id)

    def _follow(self) -> None:
        """Close the edges of all that ended, and end the children that this is the end of."""
        fates: dict[str, set[Status]] = {}
        while self._ended:
            parent = self.jobs[self._ended.pop(0)]
            for known in self.edges.open_to(parent.new.id):
                outcome = known.close(parent.status, parent.result)
                child = self.jobs[known.child_id]
                if not self.edges.open_of(known.child_id):
                    self._give_inputs(child)
                if outcome in AGAINST:
                    self._orphan(child, outcome, fates)
        self.may_be |= {job_id: fate for job_id, fate in fates.items() if len(fate) > 1}

    def _orphan(self, child: ModelJob, outcome: Outcome, fates: dict[str, set[Status]]) -> None:
        job_id = child.new.id
        buried = outcome is Outcome.DEAD and child.status in sources("orphan")
        if child.status in sources("cancel"):
            fates[job_id] = {Status.DEAD_LETTER if buried else Status.CANCELLED}
            self._orphans.add(job_id)
            self._end(child, Status.DEAD_LETTER if buried else Status.CANCELLED)
        elif job_id in fates:
            fates[job_id].add(Status.DEAD_LETTER if outcome is Outcome.DEAD else Status.CANCELLED)

    def _give_inputs(self, child: ModelJob) -> None:
        inputs = self.edges.inputs(child.new.id)
        if inputs:
            given: dict[str, Any] = decode(child.payload)
            child.payload = encode(given | inputs).decode()


def _under_way(job: ModelJob) -> bool:
    """Whether a job has been in the queue since it was last enqueued."""
    return job.was_queued or job.status is Status.COMPLETED
