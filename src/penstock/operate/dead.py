"""Dead letters in groups: look, try a few, release the rest, correct arguments, take notes."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import msgspec
from msgspec import Struct

from penstock.app.handle import JobHandle
from penstock.app.lookups import check_patience, check_rows, check_words
from penstock.model.controls import parse_rate
from penstock.model.errors import NOT_SHOWN, CanariesUnproven, IllegalTransition, InvalidOption
from penstock.model.failure import group_id
from penstock.model.not_found import GroupNotFound, JobNotFound
from penstock.model.options import check_text
from penstock.model.states import Status
from penstock.operate.actor import PROGRAM, Actor, listed, shared
from penstock.operate.check_payloads import amended
from penstock.operate.jobs import PAGE, Jobs, Progress, Requeued, requeue_all
from penstock.store.contract import DeadGroup, DeadLetter, Resolution

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.model.job import Job
    from penstock.store.contract import Store

MOST_CANARIES = 1_000


RESOLUTIONS = ("open", *(resolution.value for resolution in Resolution))
"""The words that letters are listed by; `open` is pending or investigating."""


class Standing(TypedDict, total=False):
    """Which letters a store is asked for."""

    resolution: Resolution
    only_open: bool


def standing(word: str | None) -> Standing:
    """What one of these words asks a store for; none is any."""
    if word is None:
        return {}
    if word not in RESOLUTIONS:
        raise InvalidOption("resolution", word, f"one of: {', '.join(RESOLUTIONS)}")
    return {"only_open": True} if word == "open" else {"resolution": Resolution(word)}


class LetterFields(TypedDict, total=False):
    """Which dead letters are meant; what is left out does not matter.

    `resolution` is one of `RESOLUTIONS` or `any`; `older_than` are seconds since the death.
    """

    type_name: str | None
    group: str | None
    tenant: str | None
    resolution: str | None
    older_than: float | None


class DeadView(Struct, frozen=True):
    """A dead letter with what its group has in common and where its code broke.

    `amended` are the arguments the job has now, where those it died with were corrected.
    """

    letter: DeadLetter
    group: DeadGroup
    stack: str | None
    amended: str | None


class Replay(Struct, frozen=True):
    """The canaries that run again, and why others of those chosen do not."""

    group: DeadGroup
    handles: list[JobHandle[Any]]
    refused: dict[str, str]


class Canaries(Struct, frozen=True):
    """How the jobs replayed ahead of their group have fared."""

    completed: list[str]
    failed: list[str]
    unfinished: list[str]


class _Chosen(Struct, frozen=True):
    """The jobs of some letters, the tenant they have in common, and their group if it was named."""

    ids: list[str]
    tenant_id: str | None = None
    group: str | None = None


class DeadLetters:
    """`app.dead`: what could not be done, and what a person decides about it."""

    def __init__(self, app: "Penstock", actor: Actor = PROGRAM) -> None:
        self._app = app
        self._actor = actor
        self._jobs = Jobs(app, actor)

    async def groups(
        self,
        type_name: str | None = None,
        *,
        closed: bool = False,
        before: str | None = None,
        limit: int = 50,
    ) -> list[DeadGroup]:
        """What died of the same error in the same place, a page; the latest death first.

        `before` is the `newest_id` of the group to continue after.
        """
        for option, given in (("type_name", type_name), ("before", before)):
            if given is not None:
                check_text(option, given)
        return await self._store.dead.groups(
            type=type_name,
            tenant_id=self._actor.tenant,
            only_open=not closed,
            before=before,
            limit=check_rows(limit),
        )

    async def group(self, group: str) -> DeadGroup:
        """The group of a short id, or of an unmistakable beginning of one."""
        return await find_group(self._store, group, tenant_id=self._actor.tenant)

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
        """A page of dead letters, newest first, of a group or a type or all.

        `resolution` is one of `RESOLUTIONS`.
        """
        rows, wanted = check_rows(limit), standing(resolution)
        for option, given in (("type_name", type_name), ("tenant", tenant), ("before", before)):
            if given is not None:
                check_text(option, given)
        found = None if group is None else await self._group(group)
        return await self._store.dead.find(
            type=type_name if found is None else found.type,
            fingerprint=None if found is None else found.fingerprint,
            tenant_id=self._actor.tenant_of(tenant),
            before=before,
            limit=rows,
            **wanted,
        )

    async def show(self, job_id: str) -> DeadView:
        """One dead letter, its group, and the traceback of its last execution."""
        return await view(self._store, job_id, self._actor.tenant)

    async def replay(self, group: str, canary: int = 5) -> Replay:
        """Run the newest few of a group again, to see whether the cause is gone.

        They are remembered as the canaries of the group, in place of those of an earlier try that
        have ended. The newest are chosen because they met the code as it is now.
        """
        counted: object = canary
        if not isinstance(counted, int) or not 1 <= canary <= MOST_CANARIES:
            raise InvalidOption("canary", canary, f"a number from 1 to {MOST_CANARIES:,}")
        found = await self.group(group)
        tenant = await self._tenant_of(found)
        async with self._actor.doing(
            "dead.replay", f"group:{found.id}", tenant_id=tenant, canary=canary
        ):
            return await self._replay(found, canary)

    async def _replay(self, found: DeadGroup, canary: int) -> Replay:
        chosen = await open_ids(self._store, found, canary, tenant_id=self._actor.tenant)
        earlier = await canaries_of(self._store, found.id, self._actor.tenant)
        await self._store.dead.mark_canaries([*earlier.completed, *earlier.failed], None)
        await self._store.dead.mark_canaries(chosen, found.id)
        answer = await requeue_all(self._app, chosen)
        # One that somebody else replayed at the same moment is refused too, and is their canary.
        still_dead = await self._store.reader.get(list(answer.refused))
        over = [job.id for job in still_dead if job.status.terminal]
        await self._store.dead.mark_canaries(over, None)
        type_ = self._app.types.get(found.type)
        handles = [JobHandle(self._app, job_id, type_, created=False) for job_id in answer.done]
        return Replay(found, handles, answer.refused)

    async def wait(self, replay: Replay, timeout: float | None = None) -> Canaries:
        """Wait until canaries have ended, or for so many seconds; how they have fared by then."""
        try:
            async with asyncio.timeout(check_patience(timeout)):
                ids = [handle.id for handle in replay.handles]
                async for _ in self._store.reader.watch(ids):
                    pass
        except TimeoutError:
            pass
        return await canaries_of(self._store, replay.group.id, self._actor.tenant)

    async def canaries(self, group: str | DeadGroup) -> Canaries:
        """How the canaries of a group have fared."""
        return await canaries_of(self._store, (await self._group(group)).id, self._actor.tenant)

    async def release(
        self,
        group: str,
        rate: str | None = "10/s",
        *,
        force: bool = False,
        progress: Progress | None = None,
    ) -> Requeued:
        """Run the rest of a group again, the oldest first: `release(group, "100/min")`.

        Without a rate all at once. Refused while canaries of the group have not ended, or ended
        badly, unless `force`. What is released is durable at once; the rate is in the times at
        which the jobs fall due.
        """
        spread_ms = 0.0
        if rate is not None:
            count, interval_ms = parse_rate(rate)
            spread_ms = interval_ms / count
        found = await self.group(group)
        subject, tenant = f"group:{found.id}", await self._tenant_of(found)
        details = {"rate": rate, "force": force}
        async with self._actor.doing("dead.release", subject, tenant_id=tenant, **details):
            tried = await canaries_of(self._store, found.id, self._actor.tenant)
            if not force and (tried.failed or tried.unfinished):
                raise CanariesUnproven(found.id, tried.failed, tried.unfinished)
            ids = (await open_ids(self._store, found, tenant_id=self._actor.tenant))[::-1]
            return await requeue_all(self._app, ids, spread_ms=spread_ms, progress=progress)

    async def amend(
        self,
        job_id: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        payload: str | None = None,
        requeue: bool = False,
    ) -> "Job":
        """Correct arguments of a dead job: `amend(job_id, {"to": "ann@example.com"})`.

        Those that are not named stay; `payload` replaces them all. The type must be registered.
        """
        given: object = arguments
        if given is not None and not isinstance(given, Mapping):
            raise InvalidOption("arguments", given, "a mapping of arguments by name")
        job = await self._jobs.get(job_id)
        details = {"arguments": sorted(arguments or {}), "requeue": requeue}
        async with self._actor.on_jobs("amend", [job], **details):
            text = await amended(self._app, job, arguments or {}, payload)
            await self._store.jobs.amend(job_id, text)
            if requeue:
                await self._app.admission.gates.ask_again([job_id])
                await self._store.jobs.requeue([job_id])
        return await self._jobs.get(job_id)

    async def resolve(
        self,
        which: str | Sequence[str],
        resolution: Resolution | str = Resolution.RESOLVED,
        *,
        notes: str | None = None,
        by: str | None = None,
    ) -> list[str]:
        """Record how far a person has got with jobs, or with the open ones of a group.

        `by` is whom others see, if not the actor.
        """
        if resolution not in list(Resolution):
            raise InvalidOption("resolution", resolution, f"one of: {', '.join(Resolution)}")
        for option, words in (("notes", notes), ("by", by)):
            check_words(option, words)
        state, who = Resolution(resolution), by or self._actor.signature
        chosen = await self._chosen(which)
        details = {"resolution": state.value, "notes_hash": await self._actor.hashed(notes)}
        done: list[str] = []
        async with self._doing("dead.resolve", chosen, **details):
            for page in _pages(chosen.ids):
                done += await self._store.dead.resolve(page, state, notes=notes, by=who)
        return done

    async def matching(
        self,
        *,
        type_name: str | None = None,
        group: str | None = None,
        tenant: str | None = None,
        resolution: str | None = None,
        older_than: float | None = None,
    ) -> list[str]:
        """The letters that a filter names, newest first, but for what was requeued and lives.

        At least one part of the filter has to be given; `resolution="any"` means all of them.
        """
        if all(part is None for part in (type_name, group, tenant, resolution, older_than)):
            expected = f"at least one of: {', '.join(LetterFields.__annotations__)}"
            raise InvalidOption("filter", "empty", expected)
        age: object = older_than or 0
        if not isinstance(age, int | float) or not 0 <= age < 1e10:
            raise InvalidOption("older_than", older_than, "a number of seconds, 0 or more")
        tenant_id = self._actor.tenant_of(tenant)
        found = None if group is None else await find_group(self._store, group, tenant_id)
        if found is not None and type_name not in (None, found.type):
            return []
        latest = self._store.clock.now() - int(age * 1000)
        ids: list[str] = []
        before: str | None = None
        while page := await self._store.dead.find(
            type=type_name if found is None else found.type,
            fingerprint=None if found is None else found.fingerprint,
            tenant_id=tenant_id,
            before=before,
            limit=PAGE,
            **standing(None if resolution == "any" else resolution),
        ):
            before = page[-1].job_id
            old = [letter.job_id for letter in page if letter.created_at <= latest]
            jobs = await self._store.reader.get(old)
            alive = {job.id for job in jobs if not job.status.terminal}
            ids += [job_id for job_id in old if job_id not in alive]
        return ids

    async def count(self, **where: Unpack[LetterFields]) -> int:
        """How many letters a purge would delete: `count(resolution="resolved")`."""
        return len(await self.matching(**where))

    async def purge(
        self, which: str | Sequence[str] | None = None, **where: Unpack[LetterFields]
    ) -> int:
        """Delete letters and their jobs for good: `purge(resolution="ignored", older_than=86_400)`.

        By ids, by a group (its open ones), or by a filter; what was requeued lives on.
        """
        if which is None:
            return await self._purge_where(where)
        if where:
            raise InvalidOption("which", NOT_SHOWN, "left out beside a filter")
        chosen = await self._chosen(which)
        if isinstance(which, str) and chosen.group is None:
            await self._refuse_alive(which)
        async with self._doing("dead.purge", chosen):
            return await self._purge(chosen.ids)

    async def _purge_where(self, where: LetterFields) -> int:
        ids = await self.matching(**where)
        given = {name: value for name, value in where.items() if value is not None}
        told = {"filter": given, **listed(ids)}
        tenant = where.get("tenant")
        async with self._actor.doing("dead.purge", "jobs", tenant_id=tenant, **told):
            return await self._purge(ids)

    async def _purge(self, ids: Sequence[str]) -> int:
        return sum([await self._store.dead.purge(page) for page in _pages(ids)])

    async def _chosen(self, which: str | Sequence[str]) -> _Chosen:
        """The letters that are meant: one, several, or the open ones of a group."""
        named: object = which
        if not isinstance(named, Sequence):
            raise InvalidOption("which", named, "the id of a job or a group, or a list of job ids")
        ids = [check_text("which", each) for each in ([which] if isinstance(which, str) else which)]
        if isinstance(which, str):
            letter = await self._store.dead.get(which)
            if letter is not None and self._actor.owns(letter.tenant_id):
                return _Chosen(ids, letter.tenant_id)
            group = await self.group(which)
            ids = await open_ids(self._store, group, tenant_id=self._actor.tenant)
            return _Chosen(ids, await self._tenant_of(group), group.id)
        if self._actor.is_free:
            return _Chosen(ids)
        known = await self._jobs.known(ids)
        return _Chosen([job.id for job in known], shared(job.tenant_id for job in known))

    def _doing(
        self, action: str, chosen: _Chosen, **details: Any
    ) -> AbstractAsyncContextManager[object]:
        if chosen.group is not None:
            subject, told = f"group:{chosen.group}", {"count": len(chosen.ids)}
        elif len(chosen.ids) == 1:
            subject, told = f"job:{chosen.ids[0]}", {}
        else:
            subject, told = "jobs", listed(chosen.ids)
        return self._actor.doing(action, subject, tenant_id=chosen.tenant_id, **told, **details)

    async def _group(self, group: str | DeadGroup) -> DeadGroup:
        """A group, looked up unless it is at hand."""
        return group if isinstance(group, DeadGroup) else await self.group(group)

    async def _tenant_of(self, group: DeadGroup) -> str | None:
        """The tenant to whom all of a group belongs, as far as an entry is to tell it."""
        if self._actor.tenant is not None or self._actor.is_free:
            return None
        newest = await self._store.dead.get(group.newest_id)
        if newest is None:
            return None
        theirs = await self._store.dead.group(
            group.type, group.fingerprint, tenant_id=newest.tenant_id
        )
        whole = theirs is not None and theirs.count == group.count
        return newest.tenant_id if whole else None

    async def _refuse_alive(self, job_id: str) -> None:
        """One that was requeued lives on: its dead letter is its history."""
        for job in await self._store.reader.get([job_id]):
            if not job.status.terminal:
                raise IllegalTransition(job.status, "purge", job_id)

    @property
    def _store(self) -> "Store":
        return self._app.store


def _pages(ids: Sequence[str]) -> list[Sequence[str]]:
    return [ids[start : start + PAGE] for start in range(0, len(ids), PAGE)]


async def view(store: "Store", job_id: str, tenant_id: str | None = None) -> DeadView:
    """One dead letter, its group, and the traceback of its last execution."""
    letter = await store.dead.get(check_text("job_id", job_id))
    if letter is None or tenant_id not in (None, letter.tenant_id):
        raise JobNotFound(job_id)
    runs = await store.reader.executions(job_id)
    stack = next((run.error_stack for run in reversed(runs) if run.error_stack), None)
    group = await store.dead.group(letter.type, letter.fingerprint, tenant_id=tenant_id)
    if group is None:  # purged a moment ago
        raise JobNotFound(job_id)
    return DeadView(letter, group, stack, await _amended(store, letter))


async def _amended(store: "Store", letter: DeadLetter) -> str | None:
    jobs = await store.reader.get([letter.job_id])
    try:
        died_with = msgspec.json.decode(letter.snapshot)["payload"]
        same = not jobs or msgspec.json.decode(jobs[0].payload) == died_with
    except (msgspec.MsgspecError, RecursionError, KeyError, TypeError):
        return None
    return None if same else jobs[0].payload


async def find_group(store: "Store", group: str, tenant_id: str | None = None) -> DeadGroup:
    """The group of a short id, or of an unmistakable beginning of one."""
    beginning = check_text("group", group).lower()
    names = await store.dead.group_names(tenant_id=tenant_id)
    ids = {group_id(*name): name for name in names}
    like = [each for each in ids if beginning and each.startswith(beginning)]
    if len(like) == 1:
        found = await store.dead.group(*ids[like[0]], tenant_id=tenant_id)
        if found is not None:
            return found
    raise GroupNotFound(group, like)


async def open_ids(
    store: "Store", group: DeadGroup, limit: int | None = None, *, tenant_id: str | None = None
) -> list[str]:
    """The open dead letters of a group, newest first."""
    found: list[str] = []
    while limit is None or len(found) < limit:
        page = await store.dead.find(
            type=group.type,
            fingerprint=group.fingerprint,
            tenant_id=tenant_id,
            only_open=True,
            before=found[-1] if found else None,
            limit=PAGE if limit is None else min(PAGE, limit - len(found)),
        )
        if not page:
            break
        found += [letter.job_id for letter in page]
    return found


async def canaries_of(store: "Store", group: str, tenant_id: str | None = None) -> Canaries:
    """How the canaries of a group have fared; one that died again counts, whatever it died of."""
    marked = await store.dead.find(canary_of=group, tenant_id=tenant_id, limit=2 * MOST_CANARIES)
    answer = Canaries([], [], [])
    for job in await store.reader.get([letter.job_id for letter in marked]):
        if job.status is Status.COMPLETED:
            answer.completed.append(job.id)
        elif job.status.terminal:
            answer.failed.append(job.id)
        else:
            answer.unfinished.append(job.id)
    return answer
