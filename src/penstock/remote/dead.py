"""Dead letters of an installation, through its server."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

import msgspec
from msgspec import Raw

from penstock.app.arguments import encode
from penstock.app.lookups import check_patience, check_rows
from penstock.model.errors import NOT_SHOWN, InvalidOption
from penstock.model.ids import is_id
from penstock.model.job import MAX_PAGE, Job
from penstock.operate.dead import Canaries, DeadView, LetterFields, Replay, standing
from penstock.operate.jobs import Progress, Requeued
from penstock.remote.calls import payload_document
from penstock.remote.controls import refuse_by
from penstock.remote.handle import RemoteHandle
from penstock.remote.wire import Wire, dead_letter, one, quoted, record, several
from penstock.store.contract import DeadGroup, DeadLetter, Resolution

if TYPE_CHECKING:
    from penstock.remote.client import Remote
    from penstock.remote.wire import Document

T = TypeVar("T")


class RemoteDeadLetters:
    """`remote.dead`: what could not be done, and what a person decides about it."""

    def __init__(self, remote: "Remote", wire: Wire) -> None:
        self._remote = remote
        self._wire = wire

    async def groups(
        self,
        type_name: str | None = None,
        *,
        closed: bool = False,
        before: str | None = None,
        limit: int = 50,
    ) -> list[DeadGroup]:
        """What died of the same error in the same place, a page; the latest death first."""
        query = [("closed", str(closed).lower())]
        if type_name is not None:
            query.append(("type", type_name))
        return await self._pages("dead-letters/groups", query, "groups", _group, before, limit)

    async def group(self, group: str) -> DeadGroup:
        """The group of a short id, or of an unmistakable beginning of one."""
        found = await self._wire.ask("GET", _group_path(group))
        with self._wire.understanding():
            return _group(found)

    async def find(
        self,
        *,
        group: str | DeadGroup | None = None,
        type_name: str | None = None,
        tenant: str | None = None,
        resolution: str | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> list[DeadLetter]:
        """A page of dead letters, newest first, without their snapshots."""
        standing(resolution)
        words = {
            "group": group.id if isinstance(group, DeadGroup) else group,
            "type": type_name,
            "tenant": tenant,
            "resolution": resolution,
        }
        query = [(name, value) for name, value in words.items() if value is not None]
        return await self._pages("dead-letters", query, "letters", dead_letter, before, limit)

    async def show(self, job_id: str) -> DeadView:
        """One dead letter, its group, and the traceback of its last execution."""
        found = await self._wire.ask("GET", f"dead-letters/{quoted(job_id)}")
        with self._wire.understanding():
            stack, amended = msgspec.json.decode(found["stack"]), bytes(found["amended"]).decode()
            return DeadView(
                dead_letter(found),
                _group(one(found["alike"])),
                stack,
                None if amended == "null" else amended,
            )

    async def replay(self, group: str, canary: int = 5) -> Replay:
        """Run the newest few of a group again, to see whether the cause is gone."""
        found = await self.group(group)
        answer = await self._requeued(f"{_group_path(found.id)}/replay", {"canary": canary})
        type_ = self._remote.types.get(found.type)
        handles = [RemoteHandle(self._remote, i, type_, created=False) for i in answer.done]
        return Replay(found, [*handles], answer.refused)

    async def wait(self, replay: Replay, timeout: float | None = None) -> Canaries:
        """Wait until canaries have ended, or for so many seconds; how they have fared by then."""
        try:
            async with asyncio.timeout(check_patience(timeout)):
                async for _ in self._remote.watch(*(handle.id for handle in replay.handles)):
                    pass
        except TimeoutError:
            pass
        return await self.canaries(replay.group.id)

    async def canaries(self, group: str | DeadGroup) -> Canaries:
        """How the canaries of a group have fared."""
        name = group.id if isinstance(group, DeadGroup) else group
        found = await self._wire.ask("GET", f"{_group_path(name)}/canaries")
        with self._wire.understanding():
            return record(Canaries, found)

    async def release(
        self,
        group: str,
        rate: str | None = "10/s",
        *,
        force: bool = False,
        progress: Progress | None = None,
    ) -> Requeued:
        """Run the rest of a group again, the oldest first; `progress` hears of it at the end."""
        told = {"rate": rate, "force": force}
        answer = await self._requeued(f"{_group_path(group)}/release", told)
        if progress is not None:
            count = len(answer.done) + len(answer.refused)
            progress(count, count)
        return answer

    async def amend(
        self,
        job_id: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        payload: str | None = None,
        requeue: bool = False,
    ) -> Job:
        """Correct arguments of a dead job: `amend(job_id, {"to": "ann@example.com"})`."""
        told: dict[str, Any] = {"requeue": requeue}
        if arguments is not None:
            told["arguments"] = Raw(encode(arguments))
        if payload is not None:
            told["payload"] = payload_document((await self._remote.get(job_id)).type, payload)
        path = f"dead-letters/{quoted(job_id)}/amend"
        found = await self._wire.ask("POST", path, told, repeatable=not requeue)
        with self._wire.understanding():
            return record(Job, found)

    async def resolve(
        self,
        which: str | Sequence[str],
        resolution: Resolution | str = Resolution.RESOLVED,
        *,
        notes: str | None = None,
        by: str | None = None,
    ) -> list[str]:
        """Record how far a person has got with jobs, or with the open ones of a group."""
        refuse_by(by)
        if resolution not in set(Resolution):
            raise InvalidOption("resolution", resolution, f"one of: {', '.join(Resolution)}")
        told = {"resolution": resolution, "notes": notes}
        done: list[str] = []
        for each in [which] if isinstance(which, str) else which:
            path = f"dead-letters/{quoted(each)}" if is_id(each) else _group_path(each)
            found = await self._wire.ask("POST", f"{path}/resolve", told, repeatable=True)
            with self._wire.understanding():
                done += msgspec.json.decode(found["ids"], type=list[str])
        return done

    async def count(self, **where: Unpack[LetterFields]) -> int:
        """How many letters a purge would delete: `count(resolution="resolved")`."""
        return await self._purge(where, dry_run=True)

    async def purge(
        self, which: str | Sequence[str] | None = None, **where: Unpack[LetterFields]
    ) -> int:
        """Delete letters and their jobs for good: `purge(resolution="ignored", older_than=86_400)`.

        By ids, by a group (its open ones), or by a filter; what was requeued lives on.
        """
        if which is None:
            return await self._purge(where, dry_run=False)
        if where:
            raise InvalidOption("which", NOT_SHOWN, "left out beside a filter")
        purged = 0
        for each in [which] if isinstance(which, str) else which:
            path = f"dead-letters/{quoted(each)}" if is_id(each) else _group_path(each)
            found = await self._wire.ask("DELETE", path, repeatable=False)
            with self._wire.understanding():
                purged += msgspec.json.decode(found["purged"], type=int)
        return purged

    async def _purge(self, where: LetterFields, *, dry_run: bool) -> int:
        told: dict[str, Any] = {**where, "dry_run": dry_run}
        if "type_name" in told:
            told["type"] = told.pop("type_name")
        found = await self._wire.ask("POST", "dead-letters/purge", told, repeatable=dry_run)
        with self._wire.understanding():
            return msgspec.json.decode(found["matched"], type=int)

    async def _pages(
        self,
        path: str,
        query: list[tuple[str, str]],
        name: str,
        made: Callable[["Document"], T],
        before: str | None,
        limit: int,
    ) -> list[T]:
        """As many as are wanted, however many a page of the server has."""
        found: list[T] = []
        while len(found) < check_rows(limit):
            more = [] if before is None else [("before", before)]
            rows = ("limit", str(min(MAX_PAGE, limit - len(found))))
            page = await self._wire.ask("GET", path, query=[*query, rows, *more])
            with self._wire.understanding():
                found += [made(each) for each in several(page[name])]
                before = msgspec.json.decode(page["next"], type=str | None)
            if before is None:
                break
        return found

    async def _requeued(self, path: str, told: Mapping[str, Any]) -> Requeued:
        found = await self._wire.ask("POST", path, told)
        with self._wire.understanding():
            return record(Requeued, found)


def _group_path(group: str) -> str:
    return f"dead-letters/groups/{quoted(group)}"


def _group(document: "Document") -> DeadGroup:
    return record(DeadGroup, document)
