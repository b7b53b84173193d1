"""Questions in SQL over all events, those of the log and those of the archive together.

duckdb answers them from a copy of the rows that may be seen, in a file of its own, which is gone
afterwards: nothing can be changed, and nothing else be read.
"""

import asyncio
import fcntl
import re
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from penstock.events import archive, job_archive, parquet
from penstock.model.clock import LATEST
from penstock.model.errors import NOT_SHOWN, InvalidOption, MissingExtra

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

T = TypeVar("T")

PAGE = 5_000
MADE = ("leaving", "whole")
MOST_ROWS = 10_000

VIEW = """
CREATE VIEW events AS
SELECT {columns}, session_id AS external_id,
    make_timestamp(timestamp * 1000)::DATE AS event_date,
    timestamp // 3600000 % 24 AS event_hour,
    body::JSON ->> '$.hook_type' AS hook_type,
    body::JSON -> '$.payload' AS payload,
    body::JSON -> '$.metadata' AS metadata
FROM found;
CREATE VIEW raw_traces AS SELECT * FROM events;
"""
ARCHIVED = """
INSERT INTO found BY NAME SELECT {columns}, body FROM read_parquet($paths)
WHERE codec <> 'erased' AND timestamp >= $since AND timestamp < $until
    AND ($tenant IS NULL OR tenant_id = $tenant)
"""
ARCHIVED_JOBS = """
INSERT INTO found_jobs BY NAME SELECT * FROM read_parquet($paths)
WHERE completed_at >= $since AND completed_at < $until
    AND ($tenant IS NULL OR tenant_id = $tenant)
QUALIFY row_number() OVER (PARTITION BY id ORDER BY fence DESC, updated_at DESC) = 1
"""
JOB_VIEWS = """
CREATE VIEW jobs AS SELECT * EXCLUDE (executions, logs) FROM found_jobs;
CREATE VIEW job_executions AS
SELECT id AS job_id, tenant_id, unnest(executions, recursive := true) FROM found_jobs;
CREATE VIEW job_logs AS
SELECT id AS job_id, tenant_id, unnest(logs, recursive := true) FROM found_jobs;
"""
OF_JOBS = re.compile(r"\bjob(s|_executions|_logs)\b", re.IGNORECASE)
CLOSED = ("enable_external_access = false", "lock_configuration = true")
"""After these there is no way to a file, nor back."""
FOLDER, LOCK = "penstock-query-", "lock"


class InvalidQuery(InvalidOption):
    """A question that is none, or that cannot be answered."""

    def __init__(self, problem: str) -> None:
        super().__init__("sql", NOT_SHOWN, "one SELECT that can be answered")
        self.problem = problem
        self.args = (f"The query cannot be answered: {problem.rstrip('.')}.",)


class Answer(Struct, frozen=True):
    """The names of columns, and the rows; `more` if there were more than asked for."""

    columns: list[str]
    rows: list[tuple[Any, ...]]
    more: bool = False


async def query(
    app: "Penstock",
    sql: str,
    *,
    since: int = 0,
    until: int = LATEST + 1,
    tenant: str | None = None,
    limit: int = MOST_ROWS,
    seconds: float | None = None,
) -> Answer:
    """Answer one SELECT over the view `events`, live and archived ones together.

    Only events from `since` to `until`, in UTC milliseconds, and of a tenant, are looked at: what
    is narrower is answered sooner. Archived jobs are `jobs`, `job_executions` and `job_logs`; of
    those, the times are when they ended. One that takes more `seconds` is given up.
    """
    _check(sql)
    if not 1 <= limit <= MOST_ROWS:
        raise InvalidOption("limit", limit, f"1 to {MOST_ROWS:,}")
    with _folder() as place:
        question = _Question(place, sql, limit)
        patience = asyncio.timeout(seconds)
        try:
            async with patience:
                return await _answered(app, question, since, until, tenant)
        except TimeoutError as error:
            if not patience.expired():
                raise
            narrower = "narrow it by since, until and tenant, or ask at the terminal"
            raise InvalidQuery(f"it took more than {seconds:g} seconds; {narrower}") from error
        finally:
            question.close()


async def _answered(
    app: "Penstock", question: "_Question", since: int, until: int, tenant: str | None
) -> Answer:
    # The archive before the log: what moves from the one to the other is seen twice, and told.
    before = await _moment(app)
    await question.load(app, since, until, tenant)
    if await _moment(app) != before:
        raise InvalidQuery("something was archived meanwhile; ask again")
    return await question.answer()


async def _moment(app: "Penstock") -> list[str]:
    return [file.file for state in MADE for file in await archive.files(app, state)]


@contextmanager
def _folder() -> Generator[Path, None, None]:
    """A folder for one question, which the next one deletes if we are killed."""
    _sweep()
    with TemporaryDirectory(prefix=FOLDER) as place, Path(place, "new").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        Path(place, "new").rename(Path(place, LOCK))  # nobody finds it before it is locked
        yield Path(place)


def _sweep() -> None:
    """Delete what questions left behind whose process was killed."""
    for path in Path(gettempdir()).glob(f"{FOLDER}*/{LOCK}"):
        try:
            with path.open() as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path.parent, ignore_errors=True)
        except OSError:  # it is in use, or somebody else's
            continue


def _check(sql: str) -> None:
    """Refuse all but one question."""
    duckdb = _duckdb()
    try:
        statements = duckdb.extract_statements(sql)
    except duckdb.Error as error:
        raise InvalidQuery(str(error)) from error
    if len(statements) != 1 or statements[0].type is not duckdb.StatementType.SELECT:
        raise InvalidQuery("it takes one SELECT")


class _Question:
    """One question, and the place where it is answered."""

    def __init__(self, place: Path, sql: str, limit: int) -> None:
        self._sql = sql
        self._limit = limit
        self._connection = _duckdb().connect(str(place / "events.duckdb"))

    async def load(self, app: "Penstock", since: int, until: int, tenant: str | None) -> None:
        """Copy the rows that may be seen, of the archive and of the log; then close all else."""
        kinds = ", ".join(
            f"{name} {'BIGINT' if name in parquet.WHOLE_NUMBERS else 'VARCHAR'}"
            for name in parquet.COLUMNS
        )
        columns = ", ".join(parquet.COLUMNS[:-1])
        self._connection.execute(f"CREATE TABLE found ({kinds})")
        narrowed = {"since": since, "until": until, "tenant": tenant}
        paths = [str(path) for path in await archive.paths(app)]
        if paths:
            copy = partial(self._connection.execute, ARCHIVED.format(columns=columns))
            await self._in_thread(copy, {**narrowed, "paths": paths})
        name = "live_rows_of_tenant" if tenant else "live_rows"
        after, full = 0, True
        while full:
            asked = {**narrowed, "after": after, "limit": PAGE}
            page = partial(archive.decoded, name=name, asked=asked)
            rows = await app.read(page)
            full = len(rows) == PAGE
            if rows:
                after = rows[-1]["sequence"]
                await self._in_thread(self._take, parquet.table_of(rows))
        self._connection.execute(VIEW.format(columns=columns))
        if OF_JOBS.search(self._sql):
            await self._load_jobs(app, narrowed)
        for setting in CLOSED:
            self._connection.execute(f"SET {setting}")

    async def _load_jobs(self, app: "Penstock", narrowed: dict[str, Any]) -> None:
        """Copy the archived jobs that may be seen."""
        self._connection.register("page", job_archive.schema().empty_table())
        self._connection.execute("CREATE TABLE found_jobs AS SELECT * FROM page")
        self._connection.unregister("page")
        paths = [str(path) for path in archive.paths_of(app, await job_archive.files(app))]
        if paths:
            copy = partial(self._connection.execute, ARCHIVED_JOBS)
            await self._in_thread(copy, {**narrowed, "paths": paths})
        self._connection.execute(JOB_VIEWS)

    def _take(self, page: Any) -> None:
        self._connection.register("page", page)
        self._connection.execute("INSERT INTO found BY NAME SELECT * FROM page")
        self._connection.unregister("page")

    async def answer(self) -> Answer:
        """Ask it, and read the first rows of the answer."""
        duckdb = _duckdb()
        try:
            return await self._in_thread(self._ask)
        except duckdb.Error as error:
            raise InvalidQuery(str(error)) from error

    def _ask(self) -> Answer:
        found = self._connection.execute(self._sql)
        columns = [str(column[0]) for column in found.description or ()]
        rows = found.fetchmany(self._limit + 1)
        return Answer(columns, rows[: self._limit], len(rows) > self._limit)

    async def _in_thread(self, work: Callable[..., T], *given: Any) -> T:
        """Do something that takes long; whoever gives it up waits until it has stopped."""
        task = asyncio.create_task(asyncio.to_thread(work, *given))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            self._connection.interrupt()
            await asyncio.gather(task, return_exceptions=True)
            raise

    def close(self) -> None:
        """Let go of its place."""
        self._connection.close()


def plain(answer: Answer) -> list[list[Any]]:
    """The rows of an answer as JSON has them; what JSON has no word for is a text."""
    return [[_plain(value) for value in row] for row in answer.rows]


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, int | float | str) else str(value)


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError as error:
        raise MissingExtra("archive", "duckdb") from error
    return duckdb
