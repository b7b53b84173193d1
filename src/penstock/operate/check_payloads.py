"""Whether arguments fit the code: of all that waits, before a deploy, or of one job, amended."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.app.arguments import encode
from penstock.model.dependency import Edge, EdgeKind
from penstock.model.errors import (
    InvalidArguments,
    InvalidOption,
    PenstockError,
    UnknownType,
)
from penstock.model.schedule import render
from penstock.operate.notices import TYPE as NOTICE

if TYPE_CHECKING:
    from penstock.app.job_type import JobType
    from penstock.app.penstock import Penstock
    from penstock.model.job import Job
    from penstock.model.schedule import Schedule
    from penstock.store.contract import Store

PAGE = 1_000
SCHEDULES = 100_000

EdgesOf = Callable[[str], Awaitable[Sequence[Edge]]]
"""Tells what a job waits for, by its id."""

Checked = Callable[[int], None]
"""Called with how many jobs were looked at so far."""


class Example(msgspec.Struct, frozen=True):
    """A job or a schedule that does not fit, and what is wrong with it."""

    id: str
    problem: str


class TypeCheck(msgspec.Struct, kw_only=True):
    """What was found of one type, with a few examples."""

    type: str
    known: bool = True
    fitting: int = 0
    unfit: int = 0
    examples: list[Example] = []

    def count(self, name: str, problem: str | None, shown: int) -> None:
        """One more was looked at."""
        if problem is None:
            self.fitting += 1
            return
        self.unfit += 1
        if len(self.examples) < shown:
            self.examples.append(Example(name, problem))


class PayloadCheck(msgspec.Struct):
    """What was found of all that waits, by type."""

    jobs: list[TypeCheck]
    schedules: list[TypeCheck]

    @property
    def fits(self) -> bool:
        """Whether the code can run everything that waits."""
        return not any(each.unfit for each in (*self.jobs, *self.schedules))

    @property
    def checked(self) -> int:
        """How many jobs were looked at."""
        return sum(each.fitting + each.unfit for each in self.jobs)


async def check_payloads(
    app: "Penstock", *, examples: int = 3, progress: Checked | None = None
) -> PayloadCheck:
    """Validate every waiting job and every schedule against the application's types."""
    edges_of = stored_edges(app.store)
    return PayloadCheck(
        await check_jobs(app, _pages(app), edges_of, examples=examples, progress=progress),
        check_schedules(app, await app.store.schedules.known(SCHEDULES), examples=examples),
    )


async def check_jobs(
    app: "Penstock",
    pages: "AsyncIterator[list[Job]]",
    edges_of: EdgesOf,
    *,
    examples: int,
    progress: Checked | None,
) -> list[TypeCheck]:
    """Validate waiting jobs, wherever they are read from."""
    jobs: dict[str, TypeCheck] = {}
    looked_at = 0
    async for page in pages:
        for job in page:
            found = jobs.setdefault(job.type, TypeCheck(type=job.type))
            found.count(job.id, await _problem(app, edges_of, job, found), examples)
        looked_at += len(page)
        if progress is not None:
            progress(looked_at)
    return _by_name(jobs)


def check_schedules(
    app: "Penstock", known: "Iterable[Schedule]", *, examples: int
) -> list[TypeCheck]:
    """Validate what schedules will enqueue."""
    schedules: dict[str, TypeCheck] = {}
    for schedule in known:
        if schedule.enabled and schedule.next_run_at is None:
            continue  # it is over
        found = schedules.setdefault(schedule.type, TypeCheck(type=schedule.type))
        found.count(schedule.name, _template_problem(app, schedule, found), examples)
    return _by_name(schedules)


async def _pages(app: "Penstock") -> "AsyncIterator[list[Job]]":
    after: str | None = None
    while page := await app.store.reader.waiting(after, PAGE):
        yield page
        after = page[-1].id


async def _problem(app: "Penstock", edges_of: EdgesOf, job: "Job", found: TypeCheck) -> str | None:
    if job.type == NOTICE:
        return None
    try:
        type_ = app.find_type(job.type)
    except UnknownType as error:
        found.known = False
        return str(error)
    problem = await misfit(edges_of, type_, job, job.payload)
    return None if problem is None else str(problem)


def _template_problem(app: "Penstock", schedule: "Schedule", found: TypeCheck) -> str | None:
    try:
        arguments = app.find_type(schedule.type).arguments
        for run, previous in ((1, None), (2, 0)):
            arguments.check(render(schedule, 0, run, previous))
    except UnknownType as error:
        found.known = False
        return str(error)
    except PenstockError as error:
        return str(error)
    return None


def _by_name(found: dict[str, TypeCheck]) -> list[TypeCheck]:
    return [found[name] for name in sorted(found)]


async def amended(
    app: "Penstock", job: "Job", arguments: Mapping[str, Any], payload: str | None
) -> str:
    """The payload with the named arguments changed, or a whole new one, if it fits the type."""
    type_ = app.find_type(job.type)
    if bool(arguments) == (payload is not None):
        raise InvalidOption("arguments", "given twice or not at all", "arguments or a payload")
    text = _changed(job, arguments) if payload is None else payload
    type_.check_bounds(text)
    problem = await misfit(stored_edges(app.store), type_, job, text)
    if problem is not None:
        raise problem
    return text


def stored_edges(store: "Store") -> EdgesOf:
    """What a job waits for, read from its store."""

    async def edges_of(job_id: str) -> list[Edge]:
        return [each.edge for each in (await store.reader.dependencies(job_id)).parents]

    return edges_of


async def misfit(
    edges_of: EdgesOf, type_: "JobType[..., ..., Any]", job: "Job", payload: str
) -> PenstockError | None:
    """Why a payload does not fit; an argument that a parent is still to give may be missing."""
    try:
        type_.arguments.check(payload, await _awaited(edges_of, job, payload))
    except PenstockError as error:
        return error
    return None


async def _awaited(edges_of: EdgesOf, job: "Job", payload: str) -> list[str]:
    """The arguments that parents have not given yet."""
    if job.waiting_on == 0:
        return []
    names = {each.argument for each in await edges_of(job.id) if each.kind is EdgeKind.DATA}
    try:
        given = msgspec.json.decode(payload, type=dict[str, msgspec.Raw]).keys()
    except (msgspec.MsgspecError, RecursionError):
        return []
    return [name for name in names if name is not None and name not in given]


def _changed(job: "Job", arguments: Mapping[str, Any]) -> str:
    try:
        given = msgspec.json.decode(job.payload, type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, RecursionError) as error:
        raise InvalidArguments(
            job.type, "payload", "an object, or a whole new payload", str(error)
        ) from error
    try:
        changes = {name: msgspec.Raw(encode(value)) for name, value in arguments.items()}
        return msgspec.json.encode(given | changes).decode()
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise InvalidArguments(
            job.type, "payload", "something JSON can hold", str(error)
        ) from error
