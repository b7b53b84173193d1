"""One action on many jobs, by their ids or by a filter, on record as one."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.json import encode
from msgspec.structs import asdict, replace

from penstock.model.audit import Entry
from penstock.model.controls import PauseScope
from penstock.model.errors import PenstockError, StoreError
from penstock.model.states import Status, sources
from penstock.store.contract import FoundIds, JobFilter

if TYPE_CHECKING:
    from penstock.operate.operating.actor import Acting
    from penstock.store.contract import Store

PAGE = 1_000

Progress = Callable[[int, int], None]
"""Called with how many of how many are through."""


class Requeued(Struct, frozen=True):
    """The ids that run again, and why the others do not."""

    done: list[str]
    refused: dict[str, str]


async def requeue_all(
    store: "Store",
    ids: Sequence[str],
    *,
    spread_ms: float = 0,
    progress: Progress | None = None,
) -> Requeued:
    """Requeue in pages, each of them atomic, every job due `spread_ms` after the one before."""
    answer = Requeued([], {})
    for start in range(0, len(ids), PAGE):
        page = ids[start : start + PAGE]
        await _requeue(store, page, start * spread_ms, spread_ms, answer)
        if progress is not None:
            progress(start + len(page), len(ids))
    return answer


async def _requeue(
    store: "Store", ids: Sequence[str], delay_ms: float, spread_ms: float, answer: Requeued
) -> None:
    """Requeue all; where one is refused, each half by itself, down to that one."""
    try:
        answer.done.extend(await store.jobs.requeue(ids, spread_ms=spread_ms, delay_ms=delay_ms))
    except StoreError:
        raise
    except PenstockError as error:
        if len(ids) == 1:
            answer.refused[ids[0]] = str(error)
            return
        half = len(ids) // 2
        await _requeue(store, ids[:half], delay_ms, spread_ms, answer)
        await _requeue(store, ids[half:], delay_ms + half * spread_ms, spread_ms, answer)


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


class BulkOperator:
    """Finds and acts; one job that refuses does not stop the others."""

    def __init__(self, acting: "Acting") -> None:
        self._acting = acting
        self._store = acting.app.store

    async def count(self, action: BulkAction, where: JobFilter, limit: int = MOST) -> Bulk:
        """How many jobs the action would be tried on."""
        return replace(await self._walk(action, where, limit, _left_alone), refused=0)

    async def act(self, action: BulkAction, where: JobFilter, limit: int = MOST) -> Bulk:
        """Try the action on each of them, the newest first."""
        async with await self._doing(action, where):
            return await self._walk(action, where, limit, self._steps[action])

    async def act_on(self, action: BulkAction, ids: Sequence[str]) -> Bulk:
        """Try the action on jobs by their ids; those of other tenants are not found."""
        own = await self._acting.known(ids)
        async with self._acting.on_jobs(action, own):
            done = await self._steps[action]([job.id for job in own]) if own else 0
        return Bulk(len(ids), done, len(ids) - done, None)

    async def requeue(self, ids: Sequence[str]) -> Requeued:
        """Run jobs again by their ids, and why those that are refused do not."""
        own = await self._acting.known(ids)
        async with self._acting.on_jobs(BulkAction.REQUEUE, own):
            return await requeue_all(self._store, [job.id for job in own])

    @property
    def _steps(self) -> dict[BulkAction, Step]:
        return {
            BulkAction.CANCEL: self._cancel,
            BulkAction.PAUSE: self._pause,
            BulkAction.RESUME: self._resume,
            BulkAction.REQUEUE: self._requeue,
        }

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
        return await self._store.reader.search_ids(wanted)

    async def _doing(
        self, action: BulkAction, where: JobFilter
    ) -> AbstractAsyncContextManager[Entry]:
        given = {
            name: value
            for name, value in asdict(where).items()
            if name not in _PLACE and value != getattr(_NO_FILTER, name)
        }
        hashed = await self._acting.journal.keyed_hash(encode(given, order="sorted").decode())
        return self._acting.doing(
            f"jobs.{action}",
            "jobs",
            tenant_id=where.tenant_id,
            filter=sorted(given),
            filter_hash=hashed,
        )

    async def _cancel(self, ids: Sequence[str]) -> int:
        """Cancel all; where one is gone meanwhile, each half by itself."""
        try:
            return len(await self._store.jobs.cancel(ids, f"cancelled by {self._acting.name}"))
        except StoreError:
            raise
        except PenstockError:
            if len(ids) == 1:
                return 0
            half = len(ids) // 2
            return await self._cancel(ids[:half]) + await self._cancel(ids[half:])

    async def _requeue(self, ids: Sequence[str]) -> int:
        return len((await requeue_all(self._store, ids)).done)

    async def _pause(self, ids: Sequence[str]) -> int:
        controls = self._store.controls
        actor = self._acting.name
        return await _each(ids, lambda job: controls.pause(PauseScope.JOB, job, by=actor))

    async def _resume(self, ids: Sequence[str]) -> int:
        return await _each(ids, lambda job: self._store.controls.resume(PauseScope.JOB, job))


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
