"""The methods of an application, done by its server."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

import msgspec

from penstock.app.admission import How
from penstock.app.after import After, Input, edges_of, ids_of
from penstock.app.extensions import installed, loaded_part
from penstock.app.flow import Batch, Flow, FlowHandle
from penstock.app.handle import JobHandle
from penstock.app.job_type import JobType, Partial, Prepared
from penstock.app.lookups import job_filter
from penstock.app.options import AwaitingFields
from penstock.app.schedules import ScheduleView, TimeFields
from penstock.config import Settings
from penstock.model.dependency import Edge
from penstock.model.explain import Explanation
from penstock.model.ids import new_id
from penstock.model.job import MAX_IDS, MAX_PAGE, OPTIONS, Job
from penstock.model.not_found import JobNotFound
from penstock.model.options import check_text
from penstock.model.states import Status
from penstock.operate.check_payloads import (
    Checked,
    PayloadCheck,
    TypeCheck,
    check_jobs,
    check_schedules,
)
from penstock.operate.health import Health
from penstock.operate.stats import Stats
from penstock.remote.calls import Enqueuer, named_document, query_of
from penstock.remote.connect import SyncRemote
from penstock.remote.controls import RemoteControls, RemoteFollowers
from penstock.remote.dead import RemoteDeadLetters
from penstock.remote.handle import RemoteHandle, follow, follow_all
from penstock.remote.schedules import RemoteSchedules, put_schedule
from penstock.remote.wire import (
    Document,
    Query,
    S,
    Wire,
    explanation,
    quoted,
    record,
    several,
    stats,
)
from penstock.store.contract import Execution, LogLine, WorkerInfo

if TYPE_CHECKING:
    from penstock.app.after import Parent
    from penstock.app.penstock import Penstock
    from penstock.extension import Extension
    from penstock.remote.schedules import RemoteSchedules

WAITING = (Status.PENDING, Status.QUEUED, Status.FAILED, Status.PAUSED)


async def check_here(
    wire: Wire,
    app: "Penstock",
    schedules: "RemoteSchedules",
    *,
    examples: int,
    progress: Checked | None,
) -> PayloadCheck:
    """Read what waits, page by page, and compare it with the types of this very process."""

    async def edges_of(job_id: str) -> list[Edge]:
        found = await wire.ask("GET", f"jobs/{quoted(job_id)}")
        with wire.understanding():
            return [record(Edge, each) for each in several(found["parents"])]

    return PayloadCheck(
        await check_jobs(app, _pages(wire), edges_of, examples=examples, progress=progress),
        check_schedules(app, (each.schedule for each in await schedules.list()), examples=examples),
    )


async def check_there(wire: Wire, *, examples: int, progress: Checked | None) -> PayloadCheck:
    """Have the server compare it with the types it knows."""
    found = await wire.ask("GET", "payload-check", query=[("examples", str(examples))])
    with wire.understanding():
        jobs, schedules = (
            msgspec.json.decode(found[name], type=list[TypeCheck]) for name in ("jobs", "schedules")
        )
    checked = PayloadCheck(jobs, schedules)
    if progress is not None:
        progress(checked.checked)
    return checked


async def _pages(wire: Wire) -> AsyncGenerator[list[Job], None]:
    words = [("status", status.value) for status in WAITING]
    before: str | None = None
    while True:
        page = [("limit", str(MAX_PAGE)), *([("before", before)] if before else [])]
        answer = await wire.ask("GET", "jobs", query=[*words, *page])
        with wire.understanding():
            yield [record(Job, each) for each in several(answer["jobs"])]
            before = msgspec.json.decode(answer["next"])
        if before is None:
            return


R = TypeVar("R")


class Remote:
    """What `penstock.connect` gives: `async with connect(url, token="pk_…", app=app) as jobs:`."""

    def __init__(self, wire: Wire, app: "Penstock | None" = None) -> None:
        settings = Settings() if app is None else app.settings
        self._wire = wire
        self._app = app
        self._enqueuer = Enqueuer(wire, settings.enqueue_timeout)

    def __repr__(self) -> str:
        return f"<penstock at {self.url}>"

    if not TYPE_CHECKING:  # where it would hide every misspelt name

        def __getattr__(self, name: str) -> Any:
            """What an extension offers under its own name: `remote.events`."""
            known = {} if name.startswith("_") else self._extensions()
            extension = known.get(name)
            if extension is None or extension.on_remote is None:
                raise AttributeError(f"'Remote' object has no attribute {name!r}")
            return loaded_part(extension, extension.on_remote)(self)

    def _extensions(self) -> dict[str, "Extension"]:
        return installed() if self._app is None else self._app.extensions.known()

    async def ask(
        self, method: str, path: str, document: Any = None, *, repeatable: bool | None = None
    ) -> Any:
        """Ask a route of an extension: its path below `/api/`, and its answer as plain data.

        A POST is sent again after a lost answer only if it is `repeatable`.
        """
        body = None if document is None else msgspec.json.encode(document)
        reply = await self._wire.send(method, path, body, repeatable=repeatable)
        with self._wire.understanding():
            return msgspec.json.decode(reply.body or b"null")

    @property
    def url(self) -> str:
        """Where the server is."""
        return self._wire.url

    @cached_property
    def sync(self) -> SyncRemote:
        """The same methods for code without an event loop."""
        return SyncRemote(self)

    @property
    def types(self) -> dict[str, JobType[..., ..., Any]]:
        """Every registered name and alias of the application that was given; they type results."""
        return {} if self._app is None else self._app.types

    async def __aenter__(self) -> "Remote":
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def open(self) -> None:
        """Make ready to connect; calls nest, and the last close closes."""
        await self._wire.open()

    async def close(self) -> None:
        """Undo one `open`."""
        await self._wire.close()

    @overload
    async def enqueue(self, prepared: Prepared[R], **how: Unpack[How]) -> JobHandle[R]: ...
    @overload
    async def enqueue(self, prepared: Flow[R], **how: Unpack[How]) -> FlowHandle[R]: ...

    async def enqueue(self, prepared: Any, **how: Unpack[How]) -> Any:
        """Enqueue a call made with `new`, or a chain or group of them; durable on return.

        It waits while the queue is full: up to `wait` seconds, or not at all with `wait=False`.
        """
        return (await self.enqueue_many([prepared], **how))[0]

    @overload
    async def enqueue_many(
        self, prepared: Sequence[Prepared[R]], **how: Unpack[How]
    ) -> list[JobHandle[R]]: ...
    @overload
    async def enqueue_many(
        self, prepared: Sequence[Prepared[Any] | Flow[Any]], **how: Unpack[How]
    ) -> list[Any]: ...

    async def enqueue_many(self, prepared: Sequence[Any], **how: Unpack[How]) -> list[Any]:
        """Enqueue all of them in one transaction, or none; however often it has to be sent."""
        batch = Batch(prepared)
        answers = await self._enqueuer.enqueue([call.job for call in batch.calls], how)
        handles: list[JobHandle[Any]] = [
            RemoteHandle(self, answer.id, call.type, answer.created, answer.estimated_start)
            for call, answer in zip(batch.calls, answers, strict=True)
        ]
        return batch.handles(self, handles)

    def enqueue_now(self, prepared: Sequence[Any], how: How) -> list[Any] | None:
        """None, with nothing done: it takes an event loop to speak to the server."""
        return None

    async def enqueue_payload(
        self, type_name: str, payload: str = "{}", **options: Unpack[AwaitingFields]
    ) -> JobHandle[Any]:
        """Enqueue by name with arguments as JSON text; the server checks them."""
        call = named_document(new_id(), type_name, payload, options)
        seconds = self._enqueuer.patience_for(options.get("priority"))
        [answer] = await self._enqueuer.hand_in([call], seconds)
        type_ = self.types.get(type_name)
        return RemoteHandle(self, answer.id, type_, answer.created, answer.estimated_start)

    @cached_property
    def controls(self) -> RemoteControls:
        """What holds work back: pauses, limits and breakers, changed while everything runs."""
        return RemoteControls(self._wire)

    @cached_property
    def followers(self) -> RemoteFollowers:
        """Who is told what becomes of jobs, and how much waits to be told."""
        return RemoteFollowers(self._wire)

    @cached_property
    def schedules(self) -> RemoteSchedules:
        """What is scheduled: look at it, pause, resume, remove, run now."""
        return RemoteSchedules(self._wire)

    async def schedule(
        self,
        name: str,
        call: Partial[Any] | JobType[..., ..., Any],
        arguments: Mapping[str, Any] | None = None,
        **times: Unpack[TimeFields],
    ) -> ScheduleView:
        """Enqueue a call again and again: `schedule("nightly", report.new(), cron="0 3 * * *")`."""
        return await put_schedule(self._wire, name, call, arguments, times)

    async def get(self, job_id: str) -> Job:
        """Return the job; raise `JobNotFound` if there is none of this id."""
        found = await self._detail(job_id)
        with self._wire.understanding():
            return record(Job, found)

    async def find(self, **where: Any) -> list[Job]:
        """Return a page of jobs, newest first: `await remote.find(status="failed")`."""
        wanted = job_filter(where)
        return await self._jobs(query_of(wanted), wanted.before, wanted.limit)

    async def explain(self, job_id: str) -> Explanation:
        """Return every reason why a job does, or does not, run now, the most important first."""
        found = await self._wire.ask("GET", f"{_path(job_id)}/explain")
        with self._wire.understanding():
            return explanation(found)

    @cached_property
    def dead(self) -> RemoteDeadLetters:
        """Dead letters in groups: try a few, release the rest, correct arguments, take notes."""
        return RemoteDeadLetters(self, self._wire)

    async def check_payloads(
        self, *, examples: int = 3, progress: "Checked | None" = None
    ) -> PayloadCheck:
        """Check, before a deploy, that everything that waits fits this application's types.

        Without an application of its own, it asks about the types that the server knows.
        """
        if self._app is None:
            return await check_there(self._wire, examples=examples, progress=progress)
        return await check_here(
            self._wire, self._app, self.schedules, examples=examples, progress=progress
        )

    async def executions(self, job_id: str) -> list[Execution]:
        """Return the newest hundred executions of a job, oldest first."""
        return await self._parts(job_id, "executions", Execution)

    async def logs(self, job_id: str, limit: int = 1000) -> list[LogLine]:
        """Return the latest lines its handler logged, a thousand at most."""
        return (await self._parts(job_id, "logs", LogLine))[-limit:]

    async def handle(self, job_id: str) -> JobHandle[Any]:
        """Return a handle on a job enqueued elsewhere."""
        job = await self.get(job_id)
        return RemoteHandle(self, job.id, self.types.get(job.type), created=False)

    def watch(self, *job_ids: str) -> AsyncGenerator[Job, None]:
        """Yield each job now and whenever it changes, through reconnects, until all have ended."""
        if len(job_ids) == 1:
            return follow(self._wire, self.get, check_text("job_id", job_ids[0]))
        return follow_all(
            self._wire, self.get, [check_text("job_id", job_id) for job_id in job_ids]
        )

    async def cancel(self, job_id: str, reason: str = "cancelled by the caller") -> Status:
        """Cancel a waiting job, or ask a running one to stop; return its status afterwards."""
        return (await self._act(job_id, "cancel", {"reason": reason}, repeatable=True)).status

    async def cancel_many(
        self, ids: Sequence[str], reason: str = "cancelled by the caller"
    ) -> dict[str, Status]:
        """Cancel jobs, one after the other; return each one's status afterwards."""
        return {job_id: await self.cancel(job_id, reason) for job_id in ids}

    async def add_dependency(
        self, child: "Parent", *parents: "Parent | After | Input | Edge"
    ) -> None:
        """Make a job that has not been queued yet wait for more: `add_dependency(send, fetch)`."""
        [child_id] = ids_of(child)
        more = {"after": OPTIONS["after"].written(edges_of(parents))}
        await self._act(child_id, "dependencies", more, repeatable=True)

    async def requeue(self, job_id: str) -> Job:
        """Run a cancelled or dead job again, with a fresh retry budget."""
        return await self._act(job_id, "requeue", None, repeatable=False)

    async def run_again(self, job_id: str) -> Job:
        """Enqueue a new job with the call of a finished one, and return it."""
        return await self._act(job_id, "run-again", None, repeatable=False)

    async def workers(self) -> list[WorkerInfo]:
        """Return all known workers, the freshest first."""
        found = await self._wire.ask("GET", "workers")
        with self._wire.understanding():
            return [record(WorkerInfo, each) for each in several(found["workers"])]

    async def stats(self, window: str = "1h") -> Stats:
        """What happened in the last `15m`, `1h` or `7d`."""
        found = await self._wire.ask("GET", "stats", query=[("window", window)])
        with self._wire.understanding():
            return stats(found)

    async def health(self) -> Health:
        """How the installation is; one that is unhealthy is an answer, not an error."""
        found = await self._wire.ask("GET", "health", also=(503,))
        with self._wire.understanding():
            return record(Health, found)

    async def get_many(self, ids: Sequence[str]) -> list[Job]:
        """Return the jobs that exist, in the order of their ids."""
        found: list[Job] = []
        for first in range(0, len(ids), MAX_IDS):
            some = [("id", check_text("job_id", each)) for each in ids[first : first + MAX_IDS]]
            found += await self._jobs(some, None, MAX_IDS)
        return found

    async def _jobs(self, words: Query, before: str | None, most: int) -> list[Job]:
        """As many as are wanted, however many a page of the server has."""
        found: list[Job] = []
        while len(found) < most:
            limit = ("limit", str(min(MAX_PAGE, most - len(found))))
            place = [limit] if before is None else [limit, ("before", before)]
            answer = await self._wire.ask("GET", "jobs", query=[*words, *place])
            with self._wire.understanding():
                found += [record(Job, each) for each in several(answer["jobs"])]
                before = msgspec.json.decode(answer["next"])
            if before is None:
                break
        return found

    async def _detail(self, job_id: str) -> Document:
        return await self._wire.ask("GET", _path(job_id))

    async def _parts(self, job_id: str, name: str, kind: type[S]) -> list[S]:
        """Of a job that is not there, nothing, as an application has it."""
        try:
            found = await self._detail(job_id)
        except JobNotFound:
            return []
        with self._wire.understanding():
            return [record(kind, each) for each in several(found[name])]

    async def _act(self, job_id: str, action: str, told: object, *, repeatable: bool) -> Job:
        path = f"{_path(job_id)}/{action}"
        found = await self._wire.ask("POST", path, told, repeatable=repeatable)
        with self._wire.understanding():
            return record(Job, found)


def _path(job_id: str) -> str:
    return f"jobs/{quoted(check_text('job_id', job_id))}"
