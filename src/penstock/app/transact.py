"""A unit of work: an extension's rows and the jobs that belong to them, all in one commit."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.app import tracing
from penstock.app.extensions import loaded_part
from penstock.app.flow import Batch
from penstock.app.handle import JobHandle
from penstock.app.sync import in_work
from penstock.extension import Extension, NotKnownYet, Tables, Way
from penstock.model.errors import InvalidOption
from penstock.model.job import Enqueued, NewJob
from penstock.model.redact import without_password
from penstock.model.store_errors import NoTables
from penstock.outbox.extension import TABLES as OUTBOX
from penstock.outbox.extension import deliver, warn, write

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.store.contract.tables import TableStore, TableTransaction

T = TypeVar("T")


class _Lacking(BaseException):
    """Tables that are not there yet; past every `except Exception` of the work that asks."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables


class _Unmeasured(BaseException):
    """Jobs whose queues may be full, which only somebody who can wait finds out."""

    def __init__(self, jobs: list[NewJob]) -> None:
        self.jobs = jobs


class Unit:
    """One commit in the making, given to `work(tx)`.

    `tx.NAME` are the queries of the extension of that name, or what it offers in their place.
    """

    def __init__(
        self,
        app: "Penstock",
        raw: "TableTransaction",
        measured: set[str],
        found_out: dict[str, Any],
    ) -> None:
        self._app = app
        self._raw = raw
        self._measured = measured
        self._found_out = found_out
        self._spaces: dict[str, Any] = {}
        self._jobs: list[NewJob] = []
        self._undone_by: list[Callable[[], object]] = []

    @property
    def now(self) -> int:
        """The store's time in milliseconds, the same throughout."""
        return self._raw.now

    def enqueue(self, prepared: Any) -> Any:
        """Enqueue a call made with `new`, or a chain or group of them, in this commit."""
        return self.enqueue_many([prepared])[0]

    def enqueue_many(self, prepared: list[Any]) -> list[Any]:
        """Enqueue all of them in this commit; it never waits, and a full queue refuses."""
        batch = Batch(prepared)
        jobs = [call.job for call in batch.calls]
        if not self._app.admission.admit_now(jobs, self._measured):
            raise _Unmeasured(jobs)
        self._count(jobs)
        with tracing.sending(jobs) as sent:
            answers = self._insert(sent)
        self._jobs += jobs
        handles: list[JobHandle[Any]] = [
            JobHandle(self._app, answer.id, call.type, answer.created)
            for call, answer in zip(batch.calls, answers, strict=True)
        ]
        return batch.handles(self._app, handles)

    def _count(self, jobs: list[NewJob]) -> None:
        gates = self._app.admission.gates
        gates.take(jobs, Way.ENQUEUE)
        if self._app.extensions.counters:
            Unit.undo_by(self, partial(gates.give_back, jobs))

    def set_column(self, table: str, column: str, value: Any, where: Mapping[str, Any]) -> int:
        """Write one column of the rows with these values in these columns; how many.

        For a table that settings name, of an extension or of your own.
        """
        return self._raw.set_column(table, column, value, where)

    @classmethod
    def jobs_of(cls, unit: "Unit") -> list[NewJob]:
        """What was enqueued; no name that an extension might have."""
        return unit._jobs

    @classmethod
    def found_out(cls, unit: "Unit") -> dict[str, Any]:
        """What earlier runs of the same work found out between them, by who keeps it."""
        return unit._found_out

    @classmethod
    def undo_by(cls, unit: "Unit", undo: Callable[[], object]) -> None:
        """Have something called if the unit is repeated, or is not committed."""
        unit._undone_by.append(undo)

    @classmethod
    def undo(cls, unit: "Unit") -> None:
        """Call all of it."""
        while unit._undone_by:
            unit._undone_by.pop()()

    def _insert(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        if self._app.beside is None:
            return self._raw.enqueue(jobs)
        return write(self._queries(OUTBOX), jobs, self._raw.now)

    def _queries(self, tables: Tables) -> Any:
        if tables.extension not in self._app.made_tables:
            raise _Lacking(tables)
        return self._raw.of(tables)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._spaces:
            extension = self._app.extensions.find(name)
            if extension is None or extension.tables is None:
                raise AttributeError(f"There is no extension {name!r} with tables")
            self._spaces[name] = self._space(extension, extension.tables)
        return self._spaces[name]

    def _space(self, extension: Extension, tables: Tables) -> Any:
        queries = self._queries(tables)
        if extension.in_transaction is None:
            return queries
        return loaded_part(extension, extension.in_transaction)(queries, self._app, self)


async def transact(app: "Penstock", work: Callable[[Any], T]) -> T:
    """Run `work(tx)` in one commit; it may be repeated, and so has no effects outside `tx`."""
    jobs: list[NewJob] = []
    units: list[Unit] = []
    here = copy_context()  # the writer has a thread of its own

    def run(unit: Unit) -> T:
        _undo(units)
        units.append(unit)
        answer = here.run(_plain, work, unit)
        jobs[:] = Unit.jobs_of(unit)
        return answer

    try:
        answer = await _repeated(app, run, table_store(app, "A unit of work").write)
    except Exception:
        _undo(units)
        raise
    app.admission.took(jobs)
    if jobs and app.beside is not None:
        await _deliver_soon(app, [job.id for job in jobs])
    return answer


def _undo(units: list[Unit]) -> None:
    """Undo what units did elsewhere that were not committed."""
    while units:
        Unit.undo(units.pop())


async def _deliver_soon(app: "Penstock", ids: list[str]) -> None:
    """Deliver what was committed, or leave it to the leader: the work is done in either case."""
    try:
        await deliver(app, ids)
    except Exception as error:
        warn("delivered_later", jobs=len(ids), error=str(error))


async def read(app: "Penstock", question: Callable[[Any], T]) -> T:
    """Ask `question(tx)` of one state of the database."""
    perform = table_store(app, "A question to tables").read
    return await _repeated(app, lambda unit: _plain(question, unit), perform)


def _plain(work: Callable[[Any], T], unit: Unit) -> T:
    """Run it, and refuse what would go on after its transaction has ended."""
    token = in_work.set(True)
    try:
        answer = work(unit)
    finally:
        in_work.reset(token)
    if inspect.isawaitable(answer) or inspect.isgenerator(answer):
        if inspect.iscoroutine(answer) or inspect.isgenerator(answer):
            answer.close()
        raise InvalidOption("work", work, "a plain function: it runs inside a transaction")
    return answer


async def _repeated(app: "Penstock", work: Callable[[Unit], T], perform: Any) -> T:
    """Run it again whenever it turns out to need what is not there yet."""
    measured: set[str] = set()
    found_out: dict[str, Any] = {}
    while True:
        try:
            found: T = await perform(lambda raw: work(Unit(app, raw, measured, found_out)))
        except _Lacking as lacking:
            await make_tables(app, lacking.tables)
        except _Unmeasured as unmeasured:
            measured.update(await app.admission.find_room(unmeasured.jobs))
        except NotKnownYet as lacking:
            await lacking.look()
        else:
            return found


async def make_tables(app: "Penstock", tables: Tables) -> None:
    """Bring an extension's tables up to date, where they are used for the first time."""
    await app.table_store(tables.extension).make(tables)
    app.made_tables.add(tables.extension)


def table_store(app: "Penstock", what: str) -> "TableStore":
    """Where tables are: in the store of jobs, or in the one beside it; NoTables if in neither."""
    found = (app.beside or app.store).tables
    if found is None:
        raise NoTables(what, without_password(app.settings.url))
    return found
