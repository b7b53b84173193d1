"""Jobs in somebody's hands: look, explain, cancel, requeue, link, one or many at a time."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.json import encode
from msgspec.structs import asdict, replace

from penstock.app.gates import known
from penstock.extension import Way
from penstock.model.controls import PauseScope
from penstock.model.dependency import Edge
from penstock.model.errors import KeyTaken, ParentNotFound, PenstockError
from penstock.model.explain import Explanation
from penstock.model.ids import ID_LENGTH, is_id
from penstock.model.job import Job
from penstock.model.not_found import AmbiguousId, JobNotFound
from penstock.model.options import check_text
from penstock.model.states import Status, sources
from penstock.model.store_errors import StoreError
from penstock.operate.actor import PROGRAM, Actor
from penstock.operate.explain import explain, named_in, without
from penstock.operate.run_again import repeated
from penstock.store.contract import Dependencies, Dependency, FoundIds, JobFilter

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.store.contract import Store

PAGE = 1_000
MAX_JOBS = 1_000

Progress = Callable[[int, int], None]
"""Called with how many of how many are through."""


class Requeued(Struct, frozen=True):
    """The ids that run again, and why the others do not."""

    done: list[str]
    refused: dict[str, str]


async def requeue_all(
    app: "Penstock",
    ids: Sequence[str],
    *,
    spread_ms: float = 0,
    progress: Progress | None = None,
) -> Requeued:
    """Requeue in pages, each of them atomic, every job due `spread_ms` after the one before."""
    answer = Requeued([], {})
    for start in range(0, len(ids), PAGE):
        page = ids[start : start + PAGE]
        await _requeue(app, page, start * spread_ms, spread_ms, answer)
        if progress is not None:
            progress(start + len(page), len(ids))
    return answer


async def _requeue(
    app: "Penstock", ids: Sequence[str], delay_ms: float, spread_ms: float, answer: Requeued
) -> None:
    """Requeue all; where one is refused, each half by itself, down to that one."""
    try:
        await app.admission.gates.ask_again(ids)
        done = await app.store.jobs.requeue(ids, spread_ms=spread_ms, delay_ms=delay_ms)
        answer.done.extend(done)
    except StoreError:
        raise
    except PenstockError as error:
        if len(ids) == 1:
            answer.refused[ids[0]] = str(error)
            return
        half = len(ids) // 2
        await _requeue(app, ids[:half], delay_ms, spread_ms, answer)
        await _requeue(app, ids[half:], delay_ms + half * spread_ms, spread_ms, answer)


MOST = 100_000
AT_ONCE = 50
_NO_FILTER = JobFilter()
_PLACE = frozenset({"before", "limit", "tenant_id"})


class BulkAction(StrEnum):
    """What may be done to many jobs at once."""

    CANCEL = "cancel"
    PAUSE = "pause"
    RESUME = "resume"
    REQUEUE = "requeue"


STARTS_FROM: Mapping[BulkAction, tuple[Status, ...]] = {
    BulkAction.CANCEL: (*sources("cancel"), Status.IN_PROGRESS),
    BulkAction.PAUSE: sources("pause"),
    BulkAction.RESUME: sources("resume"),
    BulkAction.REQUEUE: sources("requeue"),
}
"""The states in which a job can take an action; others are not found."""


class Bulk(Struct, frozen=True):
    """How many were found, and what became of them; `before` is where to go on, if anywhere."""

    found: int
    done: int
    refused: int
    before: str | None


Step = Callable[[Sequence[str]], Awaitable[int]]


class Family:
    """Jobs and the edges between them, as far as they were looked at."""

    def __init__(self, job: Job) -> None:
        self.asked = job.id
        self.jobs: dict[str, tuple[str | None, str | None]] = {job.id: (job.type, job.status)}
        self.edges: dict[tuple[str, str, str, str | None], Dependency] = {}
        self.more = False

    def learn(self, edge: Dependency) -> None:
        """Take in an edge and the jobs at its ends."""
        parent_id, kind, argument = edge.edge.parent_id, edge.edge.kind, edge.edge.argument
        self.edges[edge.child_id, parent_id, kind, argument] = edge
        self.jobs.setdefault(parent_id, (edge.parent_type, edge.parent_status))
        self.jobs.setdefault(edge.child_id, (edge.child_type, edge.child_status))

    def keep(self, ids: Collection[str]) -> None:
        """Leave out all other jobs and the edges to them."""
        self.jobs = {job_id: found for job_id, found in self.jobs.items() if job_id in ids}
        self.edges = {
            key: edge
            for key, edge in self.edges.items()
            if edge.child_id in ids and edge.edge.parent_id in ids
        }

    @property
    def roots(self) -> list[str]:
        """The jobs that wait for none of the others."""
        waiting = {edge.child_id for edge in self.edges.values()}
        return [job_id for job_id in self.jobs if job_id not in waiting]

    def children(self, job_id: str) -> dict[str, list[Dependency]]:
        """What waits for a job, with the edges to it."""
        found: dict[str, list[Dependency]] = {}
        for edge in self.edges.values():
            if edge.edge.parent_id == job_id:
                found.setdefault(edge.child_id, []).append(edge)
        return found


async def family_of(store: "Store", job: Job, limit: int = MAX_JOBS) -> Family:
    """Follow the edges of a job in both directions, up to a thousand jobs, the nearest first."""
    family = Family(job)
    todo, seen = deque([job.id]), {job.id}
    while todo:
        found = await store.reader.dependencies(todo.popleft(), limit)
        for edge in (*found.parents, *found.children):
            if len(family.jobs) >= limit:
                family.more = True
                return family
            family.learn(edge)
            for job_id in (edge.edge.parent_id, edge.child_id):
                if job_id not in seen:
                    seen.add(job_id)
                    todo.append(job_id)
    return family


MOST_NAMED = 3
_LIKELY = 100


async def find_id(store: "Store", prefix: str) -> str:
    """The id of the one job whose id begins so; JobNotFound or AmbiguousId otherwise."""
    wanted = prefix.strip().upper()
    if is_id(wanted):
        return wanted
    # Ids grow with time, so that those that begin alike stand together.
    last = wanted.ljust(ID_LENGTH, "Z")[:ID_LENGTH]
    found = FoundIds([], None)
    if wanted:
        found = await store.reader.search_ids(JobFilter(before=last, limit=_LIKELY))
    ids = [each for each in found.ids if each.startswith(wanted)]
    ids += [job.id for job in await store.reader.get([last])]  # which `before` leaves out
    if len(ids) > 1:
        raise AmbiguousId(prefix, ids[:MOST_NAMED])
    if not ids:
        raise JobNotFound(prefix)
    return ids[0]


class Jobs:
    """Jobs of an application, as far as they are the actor's business."""

    def __init__(self, app: "Penstock", actor: Actor = PROGRAM) -> None:
        self.app = app
        self.actor = actor

    async def get(self, job_id: str) -> Job:
        """A job, or JobNotFound; one of another tenant is not found."""
        known = await self.known([check_text("job_id", job_id)])
        if not known:
            raise JobNotFound(job_id)
        return known[0]

    async def known(self, ids: Sequence[str]) -> list[Job]:
        """Those of some jobs that are the actor's business, each once, in the order of ids."""
        wanted = list(dict.fromkeys(ids))
        found: dict[str, Job] = {}
        for start in range(0, len(wanted), PAGE):
            for job in await self.app.store.reader.get(wanted[start : start + PAGE]):
                if self.actor.owns(job.tenant_id):
                    found[job.id] = job
        return [found[job_id] for job_id in wanted if job_id in found]

    async def own_ids(self, ids: set[str]) -> set[str]:
        """Those of some ids that are the actor's business; of a job that is gone, nobody's."""
        if self.actor.tenant is None or not ids:
            return ids
        return {job.id for job in await self.known(sorted(ids))}

    async def dependencies(self, job_id: str, limit: int = 100) -> Dependencies:
        """What a job waits for and what waits for it; edges to another tenant's are left out."""
        found = await self.app.store.reader.dependencies(job_id, limit)
        ends = {edge.edge.parent_id for edge in found.parents}
        ends |= {edge.child_id for edge in found.children}
        own = await self.own_ids(ends)

        def kept(edges: list[Dependency]) -> list[Dependency]:
            return [e for e in edges if {e.edge.parent_id, e.child_id} <= own | {job_id}]

        return Dependencies(kept(found.parents), kept(found.children))

    async def family(self, job: Job, limit: int = MAX_JOBS) -> Family:
        """A job with all it waits for and all that waits for it; other tenants' are left out."""
        family = await family_of(self.app.store, job, limit)
        if self.actor.tenant is not None and len(family.jobs) > 1:
            family.keep(await self.own_ids(set(family.jobs)))
        return family

    async def explain(self, job_id: str) -> Explanation:
        """Every reason why a job does, or does not, run now; other tenants' jobs go unnamed."""
        found = await self.app.store.reader.standing(check_text("job_id", job_id))
        if found is None or not self.actor.owns(found.job.tenant_id):
            raise JobNotFound(job_id)
        named = named_in(found)
        kept_out: list[str] = []
        if found.job.status in sources("requeue"):
            gates, job = self.app.admission.gates, found.job
            refusals = await known(lambda: list(gates.refusals([job], Way.REQUEUE)))
            kept_out = [str(refusal) for refusal in refusals]
        return explain(without(found, named - await self.own_ids(named)), kept_out)

    async def cancel(self, job_id: str, reason: str | None = None) -> Status:
        """Cancel a waiting job, or ask a running one to stop; return its status afterwards."""
        async with self.doing("cancel", job_id):
            answers = await self.app.store.jobs.cancel([job_id], reason or self._cancelled)
            return Status(answers[job_id])

    async def cancel_all(self, ids: Sequence[str], reason: str) -> dict[str, Status]:
        """Cancel jobs that all exist, or none; return each one's status afterwards."""
        own = await self._all(ids)
        async with self.actor.on_jobs("cancel", own):
            answers = await self.app.store.jobs.cancel([job.id for job in own], reason)
            return {job_id: Status(status) for job_id, status in answers.items()}

    async def requeue(self, job_id: str) -> Job:
        """Run a cancelled or dead job again, with a fresh retry budget."""
        async with self.doing("requeue", job_id):
            await self.app.admission.gates.ask_again([job_id])
            await self.app.store.jobs.requeue([job_id])
        return await self.get(job_id)

    async def requeue_all(self, ids: Sequence[str]) -> list[str]:
        """Run cancelled or dead jobs again: all of them, or none."""
        own = await self._all(ids)
        async with self.actor.on_jobs("requeue", own):
            await self.app.admission.gates.ask_again([job.id for job in own])
            return await self.app.store.jobs.requeue([job.id for job in own])

    async def run_again(self, job_id: str) -> Job:
        """Enqueue a new job with the call of a finished one; each names the other."""
        job = await self.get(job_id)
        new = await repeated(self.app.store, job, self.actor.signature)
        async with self.actor.on_jobs("run_again", [job], new_id=new.id):
            [answer] = await self.app.admission.enqueue([new], {"wait": False})
            if not answer.created:
                raise KeyTaken(new.key or "", answer.id, new.type)
        return await self.get(answer.id)

    async def add_dependency(self, job_id: str, edges: Sequence[Edge]) -> Job:
        """Have a job that has not been queued yet wait for more; the job afterwards."""
        job = await self.get(job_id)
        parents = {edge.parent_id for edge in edges}
        for parent in sorted(parents - await self.own_ids(parents)):
            raise ParentNotFound(parent)
        async with self.actor.on_jobs("depend", [job], parents=sorted(parents)):
            await self.app.add_dependency(job_id, *edges)
        return await self.get(job_id)

    @asynccontextmanager
    async def doing(self, action: str, job_id: str) -> AsyncGenerator[None]:
        """Record an action on a job of the actor's; a program's is done without looking."""
        if self.actor.is_free:
            check_text("job_id", job_id)
            yield
            return
        async with self.actor.on_jobs(action, [await self.get(job_id)]):
            yield

    async def count(self, action: BulkAction, where: JobFilter, limit: int = MOST) -> Bulk:
        """How many jobs the action would be tried on."""
        return replace(await self._walk(action, where, limit, _left_alone), refused=0)

    async def act(self, action: BulkAction, where: JobFilter, limit: int = MOST) -> Bulk:
        """Try the action on each of them, the newest first."""
        async with await self._doing(action, where):
            return await self._walk(action, where, limit, partial(self._do, action))

    async def act_on(self, action: BulkAction, ids: Sequence[str]) -> Bulk:
        """Try the action on jobs by their ids; those of other tenants are not found."""
        own = await self.known(ids)
        async with self.actor.on_jobs(action, own):
            done = await self._do(action, [job.id for job in own]) if own else 0
        return Bulk(len(ids), done, len(ids) - done, None)

    async def requeue_each(self, ids: Sequence[str]) -> Requeued:
        """Run jobs again by their ids, and why those that are refused do not."""
        own = await self.known(ids)
        async with self.actor.on_jobs(BulkAction.REQUEUE, own):
            return await requeue_all(self.app, [job.id for job in own])

    async def _do(self, action: BulkAction, ids: Sequence[str]) -> int:
        """Act on jobs that exist; how many did not refuse."""
        controls, by = self.app.store.controls, self.actor.signature
        match action:
            case BulkAction.CANCEL:
                return await self._cancel(ids)
            case BulkAction.REQUEUE:
                return len((await requeue_all(self.app, ids)).done)
            case BulkAction.PAUSE:
                return await _each(ids, lambda job: controls.pause(PauseScope.JOB, job, by=by))
            case BulkAction.RESUME:
                return await _each(ids, lambda job: controls.resume(PauseScope.JOB, job))

    async def _walk(self, action: BulkAction, where: JobFilter, limit: int, step: Step) -> Bulk:
        found, done, before = 0, 0, where.before
        while found < limit:
            page = await self._page(action, where, before, limit - found)
            done += await step(page.ids) if page.ids else 0
            found, before = found + len(page.ids), page.before
            if before is None:
                break
        return Bulk(found, done, found - done, before)

    async def _page(
        self, action: BulkAction, where: JobFilter, before: str | None, most: int
    ) -> FoundIds:
        able = STARTS_FROM[action]
        statuses = tuple(status for status in able if status in (where.statuses or able))
        if not statuses:
            return FoundIds([], None)
        limit = min(PAGE, most)
        wanted = replace(where, statuses=statuses, before=before, limit=limit)
        return await self.app.store.reader.search_ids(wanted)

    async def _doing(
        self, action: BulkAction, where: JobFilter
    ) -> AbstractAsyncContextManager[object]:
        given = {
            name: value
            for name, value in asdict(where).items()
            if name not in _PLACE and value != getattr(_NO_FILTER, name)
        }
        hashed = await self.actor.hashed(encode(given, order="sorted").decode())
        return self.actor.doing(
            f"jobs.{action}",
            "jobs",
            tenant_id=where.tenant_id,
            filter=sorted(given),
            filter_hash=hashed,
        )

    async def _cancel(self, ids: Sequence[str]) -> int:
        """Cancel all; where one is gone meanwhile, each half by itself."""
        try:
            return len(await self.app.store.jobs.cancel(ids, self._cancelled))
        except StoreError:
            raise
        except PenstockError:
            if len(ids) == 1:
                return 0
            half = len(ids) // 2
            return await self._cancel(ids[:half]) + await self._cancel(ids[half:])

    async def _all(self, ids: Sequence[str]) -> list[Job]:
        """The jobs, each once, if all of them are the actor's business."""
        known = await self.known(ids)
        found = {job.id for job in known}
        for job_id in ids:
            if job_id not in found:
                raise JobNotFound(job_id)
        return known

    @property
    def _cancelled(self) -> str:
        return f"cancelled by {self.actor.words}"


async def _left_alone(_: Sequence[str]) -> int:
    return 0


async def _each(ids: Sequence[str], act: Callable[[str], Awaitable[object]]) -> int:
    """Act on some at a time, which share a commit; how many did not refuse."""
    done = 0
    for start in range(0, len(ids), AT_ONCE):
        acts = (act(job_id) for job_id in ids[start : start + AT_ONCE])
        answers = await asyncio.gather(*acts, return_exceptions=True)
        for answer in answers:
            refused = isinstance(answer, PenstockError) and not isinstance(answer, StoreError)
            if isinstance(answer, BaseException) and not refused:
                raise answer
            done += bool(answer) and not refused
    return done
